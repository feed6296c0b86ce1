"""In which order pods can go that wait for each other's room: each once its target has room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation


@dataclass(frozen=True, slots=True, eq=False)
class RowTransfer:
    """A pod goes to a row (`target`; None: there is none any more) from another one (`source`; None: it has left)."""

    key: str
    cls: PodClass
    target: int | None
    source: int | None = None
    may_go_first: bool = False
    """Before its target has room: it is evicted, and is down until then."""

    def fits(self, sim: Simulation) -> bool:
        """Whether its target has room now, by every rule of feasibility."""
        return self.target is not None and sim.fits(self.cls, self.target)


def in_order(sim: Simulation, transfers: Iterable[RowTransfer]) -> Iterator[RowTransfer]:
    """Those that can go, one after another, carried out in the simulation; the others never get room.

    Round by round: by affinity, say, one pod may need another one to be there first. Two pods that are to change
    places on full nodes are not among them: each waits for the other.
    """
    left, before = list(transfers), -1
    while left and len(left) != before:
        before, stuck = len(left), []
        for each in left:
            if each.target is None or not each.fits(sim):
                stuck.append(each)
                continue
            sim.place_many(each.cls, np.array([each.target]), np.array([1]), is_placement=False)
            if each.source is not None:
                sim.unplace(each.cls, each.source)
            yield each
        left = stuck


def in_a_circle(sim: Simulation, transfers: Iterable[RowTransfer]) -> set[str]:
    """Keys of those that wait for each other's room where none may go first. The simulation stays as it was."""
    down: list[RowTransfer] = []
    left = list(transfers)
    with sim.fork():
        while left:
            gone = set(in_order(sim, [*down, *left]))
            down, left = ([each for each in some if each not in gone] for some in (down, left))
            first = next((each for each in left if each.may_go_first), None)
            if first is None:
                break
            left.remove(first)
            if first.source is not None:
                sim.unplace(first.cls, first.source)
            down.append(RowTransfer(first.key, first.cls, first.target))
    return {each.key for each in left}
