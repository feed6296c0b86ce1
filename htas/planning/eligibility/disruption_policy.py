"""Which running pods may be disturbed so that other work finds room: one rule for preemption and the optimiser.

DaemonSet, mirror and terminating pods never are. For the others the drain rules speak (`drain_rules`), with
two differences, both for work of strictly higher priority alone, as Kubernetes preempts: a service that has not opted
in may be moved or evicted, and a pod without a controller may be evicted. What users promise themselves in so many
words (`do-not-disrupt`, `safe-to-evict`, `htas.io/migrate: "false"`, data on the node) holds against any priority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from htas.model.moves import MigrationMethod
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import CleaningRules, Policy, Promises
from htas.model.reasons import Blocking
from htas.model.snapshot import ClusterView
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import MOVES, Context, Verdict
from htas.planning.eligibility.migration_methods import MigrationMethods

_NO_GROUP = CleaningRules()
_ANY_NUMBER = 2**31
"""Disruptions that a budget allows while only its existence is asked for."""


class DisruptionKind(StrEnum):
    MOVE = "move"
    """It leaves its node for another one, where room is kept for it."""
    EVICT = "evict"
    """It leaves its node for nowhere."""


class AllowedFor(StrEnum):
    """For whom a pod may be disturbed."""

    ANYBODY = "anybody"
    HIGHER_PRIORITY = "higher priority"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class DisruptionTerms:
    """`why` tells what forbids it, or what limits it to work of higher priority."""

    allowed_for: AllowedFor
    why: str = ""

    def allow(self, pod: Pod, priority: float) -> bool:
        """Whether work of a priority may have the pod disturbed."""
        return self.allowed_for is AllowedFor.ANYBODY or (
            self.allowed_for is AllowedFor.HIGHER_PRIORITY and priority > pod.priority
        )


class DisruptionPolicy:
    """Whether pods may be disrupted, and for whom. What budgets still allow is the ledger's to say."""

    def __init__(self, view: ClusterView, policy: Policy, now: float) -> None:
        self._methods = MigrationMethods(view, policy)
        self._rules: Mapping[str, CleaningRules] = {
            node.name: group.cleaning for node in view.nodes if (group := policy.group(node.group)) is not None
        }
        self._budgets = BudgetLedger(
            msgspec.structs.replace(budget, disruptions_allowed=_ANY_NUMBER) for budget in view.budgets
        )
        self._promises = policy.fallback.promises
        self._now = now

    def terms(self, pod: Pod, kind: DisruptionKind, target: str | None = None) -> DisruptionTerms:
        """For whom a running pod may be disturbed, as long as its budget allows it; `target`: where it is moved to.

        What cannot be moved with its progress is evicted and starts again at the target (`migration_methods`): the
        rules judge it as that, so that a pod without a controller stays where it would be lost.
        A pod that two budgets cover is never disturbed: the Eviction API refuses it. `as-kube-scheduler` lets
        preemption alone past the promises; the optimiser asks for moves and evictions under `keep`.
        """
        if (why := _why_it_stays(pod)) is not None:
            return DisruptionTerms(AllowedFor.NOBODY, why)
        method = self._methods.method(pod, target) if kind is DisruptionKind.MOVE else MigrationMethod.EVICT
        verdict = self._verdict(pod, method, frozenset())
        if verdict is MOVES:
            return DisruptionTerms(AllowedFor.ANYBODY if kind is DisruptionKind.MOVE else AllowedFor.HIGHER_PRIORITY)
        waived = {Blocking.SERVICE_NOT_OPTED_IN}
        if kind is DisruptionKind.EVICT:
            waived |= {Blocking.NOT_REPLICATED, Blocking.UNKNOWN_CONTROLLER}
        holding = self._verdict(pod, method, frozenset(waived))
        return (
            DisruptionTerms(AllowedFor.HIGHER_PRIORITY, verdict.message)
            if holding is MOVES
            else DisruptionTerms(AllowedFor.NOBODY, holding.message)
        )

    def may_move(self, pod: Pod, method: MigrationMethod) -> bool:
        """Whether a pod may be moved by a method for anybody's sake: as `terms`, in half the time, but not why."""
        return _why_it_stays(pod) is None and self._verdict(pod, method, frozenset()) is MOVES

    def terms_of_victim(self, pod: Pod) -> DisruptionTerms:
        """The terms under which a pod may be preempted, by the policy's `promises`."""
        if self._promises is Promises.AS_KUBE_SCHEDULER and pod.is_work and not pod.is_terminating:
            return DisruptionTerms(AllowedFor.HIGHER_PRIORITY)
        return self.terms(pod, DisruptionKind.EVICT)

    def _verdict(self, pod: Pod, method: MigrationMethod, waived: frozenset[Blocking]) -> Verdict:
        rules = self._rules.get(pod.node or "", _NO_GROUP)
        if rules.migration is not method:
            rules = msgspec.structs.replace(rules, migration=method)
        context = Context(rules, self._budgets, self._now)
        for rule in drain_rules.RULES:
            if rule is drain_rules.not_movable:  # the method was chosen by what it asks
                continue
            verdict = rule(pod, context)
            if verdict is not None and verdict.blocked not in waived:
                return verdict
        return MOVES


def _why_it_stays(pod: Pod) -> str | None:
    """Why a pod is not disturbed for anybody, whatever it is moved by; None: it may be."""
    if not pod.is_work or pod.is_terminating:
        return f"{pod.key} {'ends already' if pod.is_terminating else 'belongs to its node'}"
    if pod.twin_of:
        return f"{pod.key} has only just started there, by a move that is not over"
    if pod.disruption.get(MAY_MIGRATE) == "false":
        return f'{pod.key} opted out with {MAY_MIGRATE}="false"'
    return None
