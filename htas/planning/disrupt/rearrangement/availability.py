"""Which pods of services may leave their nodes now, so that no service is missed for work no better than it.

A suggestion's pods wait while their service is starting; how many go at once its planning has counted already. Pods
that make room for work of their own priority, or lower, wait for both: four of five replicas evicted in one step would
be an outage of the one for the start of the other. For more important work nobody waits. They may leave once
others have become Ready; the rearrangement that waits for it ends after `timeouts.drain` at the latest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from htas.model.moves import MigrationMethod
from htas.model.pods import Pod, WorkKind
from htas.model.rearrangement import OpenRearrangement
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import services_starting
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.max_unavailable import share_of


class AvailabilityGuard:
    """Who may leave at one moment. `try_leave` counts those that it lets through."""

    def __init__(self, current: OpenRearrangement, snapshot: ClusterSnapshot) -> None:
        self._is_suggestion = current.is_suggestion
        self._starting = services_starting(snapshot.cluster)
        self._ledger = BudgetLedger(snapshot.cluster.budgets)
        self._left = _left(current, snapshot)

    def hold(self, pod: Pod, priority: int) -> bool:
        """Whether a pod waits, for work of a priority, until all of its service that have nodes are Ready."""
        return self.asks(pod, priority) and pod.service in self._starting

    def try_leave(self, pod: Pod, priority: int, method: MigrationMethod, spare: int = 0) -> bool:
        """Let a pod leave by a method for work of a priority; False: too many of its service are missing already.

        `spare` is how many more of it have to be able to leave before this one comes back.
        """
        if not self.asks(pod, priority):
            return True
        if pod.service in self._starting:
            return False
        if self._is_suggestion or method.makes_twin or self._ledger.has_budget(pod):
            return True
        if self._left[pod.service] < 1 + spare:
            return False
        self._left[pod.service] -= 1
        return True

    def asks(self, pod: Pod, priority: int) -> bool:
        """Whether a pod is one of a service's, and has to ask before it leaves for work of a priority."""
        if pod.kind is not WorkKind.SERVICE or pod.service is None:
            return False
        return self._is_suggestion or priority <= pod.priority


def _left(current: OpenRearrangement, snapshot: ClusterSnapshot) -> Counter[str | None]:
    """How many more of each service may be missing.

    Missing is what has left since the rearrangement began: slots that pods have left for, what its controller has made
    since and waits, and what ends and is still to be made again. Pods that waited before are what room may be made for:
    were they counted, a service that is short of room would never let a pod be moved for its own sake.
    """
    by_service: dict[str | None, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        if pod.kind is WorkKind.SERVICE and pod.service is not None:
            by_service.setdefault(pod.service, []).append(pod)
    away = Counter(slot.pod.service for slot in current.slots if slot.source is not None and slot.is_away)
    began = math.floor(current.started_at)  # creation times are whole seconds
    left = Counter[str | None]()
    for service, pods in by_service.items():
        alive = [pod for pod in pods if not pod.is_terminating]
        wanted = _wanted(pods)
        waiting = sum(pod.node is None and pod.created_at >= began for pod in alive)
        to_be_made = min(wanted - len(alive), len(pods) - len(alive))
        left[service] = share_of(wanted) - max(away[service], waiting + to_be_made)
    return left


def _wanted(pods: Iterable[Pod]) -> int:
    """How many pods the controllers of a service want. Where that is not known each one that ends is made again."""
    owned: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.owner is not None:
            owned.setdefault(pod.owner.uid or pod.owner.name, []).append(pod)
    return sum(map(_wanted_by_one, owned.values()))


def _wanted_by_one(pods: list[Pod]) -> int:
    alive = sum(not pod.is_terminating for pod in pods)
    newest = max(pods, key=lambda pod: pod.created_at)
    replicas = newest.owner.replicas if newest.owner is not None else None
    return len(pods) if replicas is None else max(replicas, alive)
