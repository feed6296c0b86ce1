"""Whether a pod that waits could be helped by what others leave to it: some node would hold it then."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility import host_ports
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy

FEW_NODES = 16
"""Of a class that so few nodes could hold it is asked who on them has to stay; of others hope is taken for granted."""


class BestCase:
    """Of classes that nothing can be bought for: what neither preemption nor another placement can help is told apart.

    A search for a better placement was announced, cycle after cycle, for pods that no placement could take in.
    """

    def __init__(self, simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, is_there: Bools) -> None:
        self._opening = simulated
        self._snapshot = snapshot
        self._policy = policy
        self._is_there = is_there
        self._known: dict[int, bool] = {}

    def fits(self, pod: Pod) -> bool:
        """Whether some node would hold it were all work gone from it, and whoever it must be near may be there."""
        cls = self._opening.book.class_of(pod)
        found = self._known.get(id(cls))
        if found is None:
            found = self._known[id(cls)] = bool(self._rows(cls).any()) and self._has_friends(cls)
        return found

    def fits_by_moves(self, pod: Pod) -> bool:
        """Whether some node would hold it were those gone that may be moved, or are less important."""
        cls = self._opening.book.class_of(pod)
        among = np.flatnonzero(self._rows(cls)).tolist()
        return len(among) > FEW_NODES or any(self._has_room_beside_those_that_stay(cls, row) for row in among)

    def _rows(self, cls: PodClass) -> Bools:
        """Rows of nodes that would hold a class beside what belongs to them."""
        rows = self._opening.sim.could_hold(cls)[: len(self._is_there)] & self._is_there
        return rows & fits(self._beside_daemons[:, : len(rows)], cls)

    def _has_friends(self, cls: PodClass) -> bool:
        """Whether there is, or may come, a pod that its required affinity asks for; its like count, too."""
        terms = cls.constraints.affinity
        if not terms:
            return True
        counts = self._opening.sim.filter_context.counts
        watch = counts.watches[counts.affinity_watch(cls.namespace, terms)]
        if watch in cls.watches or counts.watched[watch].any():
            return True
        return any(watch in each.watches for each in self._classes_to_come)

    @cached_property
    def _classes_to_come(self) -> list[PodClass]:
        opening = self._opening
        pods = (*opening.waiting, *opening.gated, *opening.nominated, *opening.withheld)
        return list({id(cls := opening.book.class_of(pod)): cls for pod in pods}.values())

    @cached_property
    def _beside_daemons(self) -> Ints:
        """What rows offer beside the pods that belong to their nodes."""
        table = self._opening.sim.table
        room = table.allocatable[:, : len(table)].copy()
        for row, pods in self._opening.running.items():
            for pod in pods:
                if not pod.is_work:
                    room[:, row] -= self._opening.book.class_of(pod).requests
        return room

    def _has_room_beside_those_that_stay(self, cls: PodClass, row: int) -> bool:
        sim, book = self._opening.sim, self._opening.book
        with sim.fork():
            for pod in self._leavers(cls, row):
                sim.unplace(book.class_of(pod), row)
            at = slice(row, row + 1)
            has_room = bool(fits(sim.table.free[:, at], cls)[0])
            return has_room and bool(accepted(sim.filter_context, (host_ports.refuse,), cls, at)[0])

    def _leavers(self, cls: PodClass, row: int) -> Iterable[Pod]:
        """Pods on a row that end, may be moved by the optimiser, or give way to more important work."""
        for pod in self._opening.running.get(row, ()):
            if pod.is_work and (
                pod.is_terminating or self._may_move(pod) or (pod.priority < cls.priority and self._gives_way(pod))
            ):
                yield pod

    def _gives_way(self, pod: Pod) -> bool:
        terms = self._disturbing.terms_of_victim(pod), self._disturbing.terms(pod, DisruptionKind.MOVE)
        return any(each.allowed_for is not AllowedFor.NOBODY for each in terms)

    def _may_move(self, pod: Pod) -> bool:
        """Whether a search for a better placement may move it: what depends on its neighbours stays in each."""
        is_known = pod.scheduler == self._policy.scheduler_name and not self._opening.book.class_of(pod).is_dynamic
        return is_known and self._disturbing.terms(pod, DisruptionKind.MOVE).allowed_for is AllowedFor.ANYBODY

    @cached_property
    def _disturbing(self) -> DisruptionPolicy:
        return DisruptionPolicy(self._snapshot.cluster, self._policy, self._snapshot.taken_at)
