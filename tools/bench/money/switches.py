"""HTAS as shipped with one rule switched off: what each rule brings is told against HTAS as shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from htas.model.policy import CleaningRules, EmptyRelease, NodeGroup, Policy
from tools.lab.designs import SWITCHES, each_group

HTAS = "htas"


def _cleaned(change: Callable[[CleaningRules], CleaningRules]) -> Callable[[Policy], Policy]:
    def changed(group: NodeGroup) -> NodeGroup:
        return msgspec.structs.replace(group, cleaning=change(group.cleaning))

    return lambda policy: each_group(policy, changed)


def _without_shrinking(rules: CleaningRules) -> CleaningRules:
    return msgspec.structs.replace(rules, consolidation=msgspec.structs.replace(rules.consolidation, shrinks=False))


def _given_back_at_once(rules: CleaningRules) -> CleaningRules:
    return msgspec.structs.replace(rules, empty_release=EmptyRelease.AT_ONCE)


def _without_longer_rentals(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, max_rental_lengthening=None)


CHANGES: Mapping[str, Callable[[Policy], Policy]] = {
    "look-ahead": SWITCHES["no-look-ahead"][1],
    "zero-bin": SWITCHES["no-zero-bin"][1],
    "time-bins": SWITCHES["no-time-bins"][1],
    "two-groups": SWITCHES["no-bundling"][1],
    "rescheduling": SWITCHES["no-rescheduling"][1],
    "longer-rentals": _without_longer_rentals,
    "shrinking": _cleaned(_without_shrinking),
    "paid-periods": _cleaned(_given_back_at_once),
}
"""By what is switched off: expected work, waiting for what ends, packing by time, services and
jobs apart, moves, refusing what is rented too long, smaller machines for what is left, keeping what is paid for."""
MOVES_SERVICES = f"{HTAS}-moves-services"
"""HTAS with `cleaning.moveServices`: services that have not opted in are moved, as the peers evict them."""
EVICTS = f"{HTAS}-evicts"
"""HTAS as it is by default where nothing keeps the progress of moved jobs, as with OpenStack: they begin again."""
WITHOUT = f"{HTAS}-without-"
ABLATED = tuple(f"{WITHOUT}{name}" for name in CHANGES)


def with_services_moved(policy: Policy) -> Policy:
    """The policy of MOVES_SERVICES."""
    return _cleaned(lambda rules: msgspec.structs.replace(rules, moves_services=True))(policy)


def by_eviction(policy: Policy) -> Policy:
    """The policy of EVICTS."""
    return _cleaned(lambda _: CleaningRules())(policy)


def without(contender: str, policy: Policy) -> Policy:
    """The policy of a contender named `htas-without-RULE`; raises KeyError for rules that there are not."""
    return CHANGES[contender.removeprefix(WITHOUT)](policy)
