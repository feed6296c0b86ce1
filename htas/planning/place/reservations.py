"""Reservations: room on a launched machine is kept for the pods that the last plan put there.

Without them every plan gives free room to the largest pod first. A small pod's new machine is then taken by larger pods
that arrive while it boots: with starts of 120 s a pod of 0.2 cores waited 526 s, a job of four minutes eleven.

A pod whose machine is still to come takes room on a node that is there as soon as there is some. A more important pod
takes a reserved room; the reservation's pod is then placed like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from htas.planning.cluster.classes import PodClass
from htas.planning.place.context import PlanContext
from htas.planning.place.placing import BestFit, fill

Reserved = tuple[PodClass, int, int]
"""Pods of a class on a row: how many."""


class Reservations:
    """The last plan's reservations, as rows of this one."""

    def __init__(self, context: PlanContext) -> None:
        self._sim = sim = context.simulated.sim
        self._placer = context.placer
        self._pools = context.simulated.pools
        rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        reserved = context.snapshot.memory.reservations
        self._row_of = {pod: rows[each.claim] for pod, each in reserved.items() if each.claim in rows}
        created = {rows[claim.id]: claim.created_at for claim in context.snapshot.claims if claim.id in rows}
        coming = [pool.rows for pool in self._pools if pool.is_coming] if self._row_of else []
        self._coming = {row: created.get(row, 0.0) for some in coming for row in range(some.start, some.stop)}
        """Rows of machines that take no pods yet, and when each was requested."""

    def place(self, classes: Sequence[PodClass]) -> Counter[int]:
        """Place the pods of these classes that have reservations; returns how many of each class, by its id."""
        placed = Counter[int]()
        wanted = [(cls, rows) for cls in classes if (rows := self._rows(cls))] if self._row_of else []
        if not wanted:
            return placed
        with self._sim.fork():
            reserved = [each for cls, rows in wanted for each in self._on_their_machines(cls, rows)]
        with self._sim.fork():
            sooner = self._on_what_is_there(reserved)
        left = Counter[int]()
        for cls, _, count in reserved:
            left[id(cls)] += count
        for cls, row, count in (*sooner, *reserved):
            # Asked again: what was found beside its own reservation need not hold without it (spread, affinity).
            taken = fill(self._sim, cls, min(count, left[id(cls)]), slice(row, row + 1), BestFit())
            left[id(cls)] -= taken
            placed[id(cls)] += taken
        return placed

    def _rows(self, cls: PodClass) -> Counter[int]:
        if not cls.is_ours:
            return Counter()
        return Counter(self._row_of[pod.key] for pod in cls.pods if pod.key in self._row_of)

    def _on_their_machines(self, cls: PodClass, rows: Counter[int]) -> list[Reserved]:
        """Pods that still fit the machine reserved; machines that are there come first, then the oldest."""
        return [
            (cls, row, fill(self._sim, cls, rows[row], slice(row, row + 1), BestFit()))
            for row in sorted(rows, key=lambda row: (self._coming.get(row, 0.0), row))
        ]

    def _on_what_is_there(self, reserved: Sequence[Reserved]) -> list[Reserved]:
        """Room on nodes that are there for pods whose machine is to come, beside all that is reserved; oldest first.

        Nodes are tried that come before the machine in order of preference, which outgoing ones do not. Pods without
        requests wait for the machine of their default requests: any node would take them.
        """
        for cls, row, count in reserved:
            self._sim.place(cls, row, count)
        mark = len(self._sim.log)
        waiting = [each for each in reserved if each[1] in self._coming and not any(each[0].missing)]
        for cls, row, count in sorted(waiting, key=lambda each: each[0].pods[0].created_at):
            pools = [pool for pool in self._pools if not pool.is_coming and pool.rows.start <= row]
            self._placer.on(pools).place(self._sim, cls, count)
        return list(self._sim.assignments(mark))
