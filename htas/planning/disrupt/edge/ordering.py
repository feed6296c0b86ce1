"""In which order pods of a suggestion can leave: each once its target has room, so that none is down while it waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Transfer:
    """A pod (its uid) that goes from one row to another. `may_go_first`: before its target has room; it is evicted."""

    uid: str
    cls: PodClass
    source: int
    target: int
    may_go_first: bool


def in_a_circle(sim: Simulation, transfers: Iterable[Transfer]) -> set[str]:
    """Pods (uids) that wait for each other's room where none of them may go first. The simulation stays as it was."""
    left = list(transfers)
    down: list[Transfer] = []
    with sim.fork():
        while left:
            down = [each for each in down if not _arrives(sim, each)]
            gone = [each for each in left if _arrives(sim, each)]
            for each in gone:
                sim.unplace(each.cls, each.source)
            left = [each for each in left if each not in gone]
            if gone or not left:
                continue
            first = next((each for each in left if each.may_go_first), None)
            if first is None:
                return {each.uid for each in left}
            sim.unplace(first.cls, first.source)
            left.remove(first)
            down.append(first)
    return set()


def _arrives(sim: Simulation, each: Transfer) -> bool:
    if not sim.fits(each.cls, each.target):
        return False
    sim.place(each.cls, each.target)
    return True
