"""A way to make room: who moves where, and who is seated in the room that is then free."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.moves import Move
from htas.model.proposals import Seat
from htas.planning.cluster.simulation import KeptRoom, Simulation


@dataclass(frozen=True, slots=True)
class Way:
    """All that it takes to seat some waiting pods."""

    seatings: tuple[KeptRoom, ...] = ()
    moves: tuple[tuple[Move, KeptRoom], ...] = ()
    """Of running pods, each with the room that it has at its target: as what it is there, with what is left to run."""

    def __add__(self, other: Way) -> Way:
        return Way(self.seatings + other.seatings, self.moves + other.moves)

    def arrivals(self) -> tuple[KeptRoom, ...]:
        """What comes to which row."""
        return (*self.seatings, *(room for _, room in self.moves))

    def nodes(self, sim: Simulation) -> set[str]:
        """Every node that it fills or empties."""
        filled = {sim.table.nodes[room.row].name for room in self.arrivals()}
        return filled | {move.source for move, _ in self.moves}

    def seats(self, sim: Simulation) -> tuple[Seat, ...]:
        names = sim.table.nodes
        return tuple(Seat(each.pod.key, each.pod.uid, names[each.row].name) for each in self.seatings)
