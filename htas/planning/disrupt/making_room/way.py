"""A way to make room: who moves where, and who is seated in the room that is then free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.proposals import Seat
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Shift:
    """A running pod that leaves `source` for `target` (rows); `cls` is what it is there: with what is left to run."""

    pod: Pod
    cls: PodClass
    source: int
    target: int
    method: MigrationMethod


@dataclass(frozen=True, slots=True)
class Seating:
    """A waiting pod and the row it gets."""

    pod: Pod
    cls: PodClass
    row: int


@dataclass(frozen=True, slots=True)
class Way:
    """All that it takes to seat some waiting pods."""

    seatings: tuple[Seating, ...] = ()
    shifts: tuple[Shift, ...] = ()

    def __add__(self, other: Way) -> Way:
        return Way(self.seatings + other.seatings, self.shifts + other.shifts)

    def arrivals(self) -> Iterator[tuple[PodClass, int]]:
        """What comes to which row."""
        yield from ((seating.cls, seating.row) for seating in self.seatings)
        yield from ((shift.cls, shift.target) for shift in self.shifts)

    def rows(self) -> set[int]:
        return {row for _, row in self.arrivals()} | {shift.source for shift in self.shifts}

    def keep_room(self, sim: Simulation) -> None:
        """Have its room taken. What moves is still where it was, so that a row may have less than nothing left."""
        for cls, row in self.arrivals():
            sim.place_many(cls, np.array([row]), np.array([1]), is_work=False)

    def moves(self, sim: Simulation) -> tuple[Move, ...]:
        names = sim.table.nodes
        return tuple(
            Move(each.pod.key, each.pod.uid, names[each.source].name, names[each.target].name, each.method, _FOR_ROOM)
            for each in self.shifts
        )

    def seats(self, sim: Simulation) -> tuple[Seat, ...]:
        names = sim.table.nodes
        return tuple(Seat(each.pod.key, each.pod.uid, names[each.row].name) for each in self.seatings)


_FOR_ROOM = MoveReason.MAKES_ROOM
