"""Waiting work that a plan has just placed: where it is of lower priority it gives way, before anything that runs does.

kube-scheduler looks at one pod after another, the most important first, so that room a pod is preempted for was never
given to a lesser one. A plan places all that fits before it preempts: a replacement of a pod that was evicted a moment
ago has found the one free core of a node, and two more would leave for a pod of two cores where one is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.planning.classes import Bools, PodClass
from htas.planning.simulation import Simulation


class GivingWay:
    """What a plan has placed on rows whose nodes are there; nothing of it is bound yet."""

    def __init__(self, sim: Simulation, is_there: Bools) -> None:
        self._sim = sim
        self._rows: dict[int, dict[int, tuple[PodClass, int]]] = {}
        for cls, row, count in sim.assignments():
            if row < len(is_there) and is_there[row]:
                here = self._rows.setdefault(row, {})
                here[id(cls)] = cls, here.get(id(cls), (cls, 0))[1] + count

    def below(self, priority: int) -> Iterator[tuple[PodClass, int, int]]:
        """(class, row, count) of all that is of lower priority."""
        for row in self._rows:
            for cls, count in self._lesser(row, priority):
                yield cls, row, count

    def take_off(self, row: int, priority: int) -> None:
        """Take what is of lower priority off a row, to see what room that is. To be used in a fork."""
        for cls, count in self._lesser(row, priority):
            self._sim.unplace(cls, row, count)

    def give_way(self, row: int, priority: int) -> None:
        """Withdraw what is of lower priority from a row, but for what fits there still; the most important first."""
        lesser = sorted(self._lesser(row, priority), key=lambda each: -each[0].priority)
        for cls, count in lesser:
            self._withdraw(cls, row, count)
        for cls, count in lesser:
            stays = 0
            while stays < count and self._sim.fits(cls, row):
                self._sim.place(cls, row)
                stays += 1
            self._rows[row][id(cls)] = cls, stays

    def _withdraw(self, cls: PodClass, row: int, count: int) -> None:
        self._sim.place_many(cls, np.array([row]), np.array([-count]))

    def _lesser(self, row: int, priority: int) -> list[tuple[PodClass, int]]:
        here = self._rows.get(row, {}).values()
        return [(cls, count) for cls, count in here if count and cls.priority < priority]
