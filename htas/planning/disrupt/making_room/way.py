"""A way to make room: who moves where, and who is seated in the room that is then free."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.holds import HoldReason
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.proposals import Seat
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import KeptRoom, Simulation


@dataclass(frozen=True, slots=True)
class RoomShift:
    """A running pod that leaves `source` for `target` (rows); `cls` is what it is there: with what is left to run."""

    pod: Pod
    cls: PodClass
    source: int
    target: int
    method: MigrationMethod

    @property
    def room(self) -> KeptRoom:
        return KeptRoom(self.pod, self.cls, self.target, HoldReason.MOVE)


@dataclass(frozen=True, slots=True)
class Way:
    """All that it takes to seat some waiting pods."""

    seatings: tuple[KeptRoom, ...] = ()
    shifts: tuple[RoomShift, ...] = ()

    def __add__(self, other: Way) -> Way:
        return Way(self.seatings + other.seatings, self.shifts + other.shifts)

    def arrivals(self) -> tuple[KeptRoom, ...]:
        """What comes to which row."""
        return (*self.seatings, *(shift.room for shift in self.shifts))

    def rows(self) -> set[int]:
        return {room.row for room in self.arrivals()} | {shift.source for shift in self.shifts}

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
