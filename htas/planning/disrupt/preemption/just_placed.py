"""Waiting work that a plan has only just placed: where it is of lower priority it leaves before anybody who runs.

kube-scheduler looks at one pod after another, the most important first, so that room a pod is preempted for was never
given to a lesser one. A plan places all that fits before it preempts: a replacement of a pod that was evicted a moment
ago has found the one free core of a node, and two more would leave for a pod of two cores where one is enough. Work
that is in the way is placed anew (htas/planning/begun.py).

Lesser work elsewhere may be in the way too (a pod that repels the important one from its whole zone); that is not seen:
only what is on the node itself. Other schedulers place their pods themselves, whatever is promised here.
"""

from __future__ import annotations

from collections.abc import Iterator

from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.simulation import Simulation


class JustPlaced:
    """What a plan has placed on rows whose nodes are there; nothing of it is bound yet."""

    def __init__(self, sim: Simulation, is_there: Bools) -> None:
        self._sim = sim
        self._rows: dict[int, dict[int, tuple[PodClass, int]]] = {}
        for cls, row, count in sim.assignments():
            if cls.is_ours and row < len(is_there) and is_there[row]:
                here = self._rows.setdefault(row, {})
                here[id(cls)] = cls, here.get(id(cls), (cls, 0))[1] + count

    def below(self, priority: int) -> Iterator[tuple[PodClass, int, int]]:
        """(class, row, count) of all that is of lower priority."""
        for row in self._rows:
            for cls, count in self._lesser(row, priority):
                yield cls, row, count

    def take_off(self, row: int, priority: int) -> bool:
        """Take what is of lower priority off a row; returns whether there was any."""
        lesser = self._lesser(row, priority)
        for cls, count in lesser:
            self._sim.unplace(cls, row, count)
        return bool(lesser)

    def _lesser(self, row: int, priority: int) -> list[tuple[PodClass, int]]:
        here = self._rows.get(row, {}).values()
        return [(cls, count) for cls, count in here if count and cls.priority < priority]
