"""Nominated pods: room that a preemption makes is kept for the pod it was made for, until that pod is bound.

As kube-scheduler has it, a nominated pod counts as present for pods of its own priority and lower ones, and those of
higher priority may take its room. One of ours is bound as soon as it fits: to its node, else to any other. Its
nomination lapses where it would not fit even once everything that ends there is gone: then it waits like any other pod.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from htas.model.holds import HoldReason
from htas.model.pods import Pod, priority_sort
from htas.model.policy import Policy
from htas.planning.cluster.ending import ends_soon
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.simulation import KeptRoom
from htas.planning.place.placing import Placer


class Nominations:
    """The nominated pods of an opening, to be settled in the order of their priority.

    Until then none of them counts as present. `lapsed` are to be placed like other waiting pods.
    """

    def __init__(self, simulated: SimulatedCluster, policy: Policy) -> None:
        self._opening = simulated
        self._sim = sim = simulated.sim
        self._scheduler = policy.scheduler_name
        nodes = sim.table.nodes
        there = [pool for pool in simulated.pools if nodes[pool.rows.start].name not in simulated.coming]
        self._placer = Placer(policy, there)
        found = [self._nominee(pod) for pod in sorted(simulated.nominated, key=priority_sort)]
        for nominee in found:
            sim.unplace(nominee.cls, nominee.row)
        with sim.fork():
            held = [nominee for nominee in found if self._takes_its_room(nominee)]
        self._held = self._unsettled = held
        self.lapsed = tuple(nominee.pod for nominee in found if nominee not in held)

    def begin(self) -> None:
        """From the first priority on; again where all is placed anew."""
        self._unsettled = self._held

    def settle(self, priority: float = -math.inf) -> None:
        """Place those of at least a priority that fit, and keep room for the others."""
        now = [nominee for nominee in self._unsettled if nominee.pod.priority >= priority]
        self._unsettled = self._unsettled[len(now) :]
        for nominee in now:
            if self._is_ours(nominee) and self._sim.fits(nominee.cls, nominee.row):
                self._sim.place(nominee.cls, nominee.row)
            elif not self._is_ours(nominee) or not self._placer.place(self._sim, nominee.cls, 1):
                self._sim.keep_room(nominee)

    @contextmanager
    def all_kept(self) -> Iterator[None]:
        """Room is kept for all that are not settled yet, too: who preempts meanwhile sees whose room it takes."""
        unsettled = self._unsettled
        self._sim.keep_room(*unsettled)
        yield
        self._unsettled = [nominee for nominee in unsettled if nominee in self._sim.nominees]
        self._sim.drop_room(*self._unsettled)

    def _nominee(self, pod: Pod) -> KeptRoom:
        # A class of its own: waiting pods of the same class are handed out in order, and this one is not among them.
        book = self._opening.book
        cls = book.twin(book.class_of(pod), [pod])
        return KeptRoom(pod, cls, self._sim.table.row_of[pod.nominated_node or ""], HoldReason.NOMINATED)

    def _is_ours(self, nominee: KeptRoom) -> bool:
        return nominee.pod.scheduler == self._scheduler

    def _takes_its_room(self, nominee: KeptRoom) -> bool:
        """Whether a pod fits its node, or will once what ends there is gone; other schedulers judge theirs."""
        holds = not self._is_ours(nominee) or self._sim.fits(nominee.cls, nominee.row) or self._fits_once_ended(nominee)
        if holds:
            self._sim.keep_room(nominee)
        return holds

    def _fits_once_ended(self, nominee: KeptRoom) -> bool:
        sim, row = self._sim, nominee.row
        ending = [pod for pod in self._opening.running.get(row, ()) if ends_soon(pod, sim.now)]
        with sim.fork():
            for pod in ending:
                sim.unplace(self._opening.book.class_of(pod), row)
            return bool(ending) and sim.fits(nominee.cls, row)
