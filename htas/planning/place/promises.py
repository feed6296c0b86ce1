"""Promises: the room on a machine to come is kept for the service's pod that waits for it.

By size alone the room is the largest pod's in each plan anew, and so a small one's machine was given to larger ones
that came as it was Ready, and so was the next one bought for it: with starts of 120 s a pod of 0.2 cores waited 526 s.
It is the machine that is kept, and no place in the queue: were those who wait longest placed first wherever they fit,
they would take what comes sooner than their own from whom that was bought for, and some still waited two starts.

Whoever was promised a machine and has room sooner on what is there gets that. Batch work has no promises: it goes to
the node of its time bin, and who waits too long is placed before all others (`Policy.overdue`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from htas.model.pods import WorkKind
from htas.planning.cluster.classes import PodClass
from htas.planning.place.context import PlanContext
from htas.planning.place.placing import BestFit, Placer, fill

Held = tuple[PodClass, int, int]
"""Pods of a class on a row, so many."""


class Promises:
    """What the last plan promised (`Memory.promised`), as rows of this one."""

    def __init__(self, context: PlanContext) -> None:
        self._sim = sim = context.simulated.sim
        self._policy = context.policy
        self._pools = context.simulated.pools
        coming = {claim.id: claim.created_at for claim in context.snapshot.claims if claim.is_coming}
        rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        self._row_of = {pod: rows[claim] for pod, claim in context.snapshot.memory.promised.items() if claim in rows}
        self._coming = {rows[claim]: since for claim, since in coming.items() if claim in rows}

    def keep(self, classes: Sequence[PodClass], counts: dict[int, int]) -> None:
        """Place what was promised to pods of one priority; `counts` (by a class's id) are placed, and grow by it."""
        asked = [(cls, wanted) for cls in classes if (wanted := self._wanted(cls))] if self._row_of else []
        if not asked:
            return
        most = {id(cls): len(cls.pods) - counts.get(id(cls), 0) for cls, _ in asked}
        with self._sim.fork():
            held = self._held(asked, most)
        coming = [each for each in held if each[1] in self._coming]
        with self._sim.fork():
            there = self._on_what_is_there([each for each in held if each[1] not in self._coming], coming)
        left = Counter[int]()
        for cls, _, count in held:
            left[id(cls)] += count
        for cls, row, count in (*there, *coming):
            placed = fill(self._sim, cls, min(count, left[id(cls)]), slice(row, row + 1), BestFit())
            left[id(cls)] -= placed
            counts[id(cls)] = counts.get(id(cls), 0) + placed

    def _wanted(self, cls: PodClass) -> Counter[int]:
        if cls.kind is not WorkKind.SERVICE or not cls.is_ours:
            return Counter()
        return Counter(self._row_of[pod.key] for pod in cls.pods if pod.key in self._row_of)

    def _held(self, asked: Sequence[tuple[PodClass, Counter[int]]], most: dict[int, int]) -> list[Held]:
        """Who still fits the machine promised; of each class those on machines that are there first, then by age."""
        held: list[Held] = []
        for cls, wanted in asked:
            for row in sorted(wanted, key=lambda row: (self._coming.get(row, 0.0), row)):
                count = fill(self._sim, cls, min(wanted[row], most[id(cls)]), slice(row, row + 1), BestFit())
                most[id(cls)] -= count
                held.append((cls, row, count))
        return held

    def _on_what_is_there(self, there: Sequence[Held], coming: Sequence[Held]) -> list[Held]:
        """Those whose machine has come, where they fit best if all find room so; else each on its own. Then, beside all
        that is held, those whose machine has not come, the oldest first."""
        sim = self._sim
        for cls, row, count in coming:
            sim.place(cls, row, count)
        mark = len(sim.log)
        with sim.fork() as branch:
            if all(self._place(*each) == each[2] for each in there):
                branch.commit()
        if len(sim.log) == mark:
            for cls, row, count in there:
                sim.place(cls, row, count)
        for each in sorted(coming, key=lambda each: each[0].pods[0].created_at):
            self._place(*each)
        return list(sim.assignments(mark))

    def _place(self, cls: PodClass, row: int, count: int) -> int:
        """How many of those that a row is for found room on what is there and comes before it or with it."""
        pools = [pool for pool in self._pools if not pool.is_coming and pool.rows.start <= row]
        return Placer(self._policy, pools).place(self._sim, cls, count)
