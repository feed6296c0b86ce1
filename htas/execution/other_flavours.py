"""Machines of another flavour than was ordered, and resized ones: the claim is of what the cloud runs. Pure."""

from __future__ import annotations

import msgspec

from htas.execution.bill_life import price_of
from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.flavours import Catalogue
from htas.model.money import price_text
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node

_UNTRIED = frozenset({ClaimState.WANTED, ClaimState.REQUESTED, ClaimState.ACTIVE})


def as_it_is(claim: NodeClaim, machine: Instance, catalogue: Catalogue) -> NodeClaim:
    """The claim with the flavour and zone that its machine has, at their price, and since when it is charged for.

    A later `launched_at` without another flavour is a rebuild: it is charged for as before.
    """
    flavour, ordered = machine.flavour or claim.flavour, claim.ordered or claim.flavour
    rented_at = claim.rented_at
    if machine.launched_at is not None and (rented_at is None or flavour != claim.flavour):
        rented_at = machine.launched_at
    known = catalogue.named(flavour)
    # Nova may say nothing of the zone while it builds.
    zone = machine.zone if machine.zone is not None and known is not None and known.prices else claim.zone
    if (flavour, zone, rented_at) == (claim.flavour, claim.zone, claim.rented_at):
        return claim
    price = claim.price
    if (flavour, zone) != (claim.flavour, claim.zone):
        price, _ = price_of(flavour, claim, catalogue, zone)
    return msgspec.structs.replace(
        claim,
        flavour=flavour,
        zone=zone,
        nanos_per_hour=price.nanos_per_hour,
        cap=price.cap,
        ordered=ordered if ordered != flavour else "",
        rented_at=rented_at,
    )


def was_not_ordered(before: NodeClaim, after: NodeClaim) -> bool:
    """Whether the cloud started another flavour than it was asked for; else a machine that ran was resized."""
    return before.flavour != after.flavour and before.state in _UNTRIED


def told(before: NodeClaim, after: NodeClaim, catalogue: Catalogue) -> str:
    """What people are told of it, once."""
    price, currency = price_text(after.nanos_per_hour), catalogue.currency
    what = (
        f"HTAS launched {before.flavour}, and the cloud started {after.flavour}"
        if was_not_ordered(before, after)
        else f"its machine was resized from {before.flavour} to {after.flavour}"
    )
    if catalogue.named(after.flavour) is not None:
        return f"{what}: billed at {price} {currency}/h ({before.flavour}: {price_text(before.nanos_per_hour)})"
    guess = f"billed at the price of {before.flavour}, {price} {currency}/h"
    return f"{what}, which is not in the price file: {guess}; add {after.flavour} to it"


def true_type(claim: NodeClaim, node: Node) -> dict[str, str]:
    """The label that names a node's true flavour, where it names the one that was ordered; else none."""
    is_told_wrong = bool(claim.ordered) and node.flavour == claim.ordered
    return {INSTANCE_TYPE_LABEL: claim.flavour} if is_told_wrong else {}
