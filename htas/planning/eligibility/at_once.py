"""How many pods of a service may be down at a time where no disruption budget says: a rolling update's share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from htas.model.pods import Pod
from htas.model.policy import MigrationMethod
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.leaving import Leaving

SHARE = 4
"""A quarter of a service's pods, rounded down, but one at least: a Deployment's maxUnavailable, 25 %."""


def share_of(count: int) -> int:
    """How many of a service's pods may be missing at once."""
    return max(1, count // SHARE)


class AtOnce:
    """Counts evictions of one suggestion. Pods whose twin starts first are not counted, as they are not missed."""

    def __init__(self, pods: Iterable[Pod], leaving: Leaving, ledger: BudgetLedger) -> None:
        pods = list(pods)
        self._leaving = leaving
        self._ledger = ledger
        there = Counter(pod.service for pod in pods)
        waiting = Counter(pod.service for pod in pods if pod.node is None)
        self._left = {service: share_of(count) - waiting[service] for service, count in there.items()}

    def try_spend(self, pod: Pod, target: str | None = None) -> bool:
        """Count one more pod that leaves its node; False: there would be too many. `target` None: not chosen yet."""
        if self._leaving.method(pod, target) is not MigrationMethod.EVICT or self._ledger.has_budget(pod):
            return True
        if self._left[pod.service] < 1:
            return False
        self._left[pod.service] -= 1
        return True


def at_most_at_once(
    movable: Collection[str], some: Iterable[Pod], pods: Iterable[Pod], leaving: Leaving, ledger: BudgetLedger
) -> set[str]:
    """Of the pods (uids) that may be moved all but those of `some` that are too many at once, the last ones of them.

    So what is decided on them need not be decided again without these.
    """
    at_once = AtOnce(pods, leaving, ledger)
    surplus = {pod.uid for pod in some if pod.uid in movable and not at_once.try_spend(pod)}
    return set(movable) - surplus
