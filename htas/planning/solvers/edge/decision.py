"""What is decided about a state: who is seated, and who moves in which order."""

from __future__ import annotations

from dataclasses import dataclass

from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.state import CLOUD, EdgeState, fits


@dataclass(frozen=True, slots=True)
class Seat:
    """A new pod and the edge node it gets; indexes."""

    pod: int
    node: int


@dataclass(frozen=True, slots=True)
class Shift:
    """A running pod leaves `source` for `target`; indexes of edge nodes, or CLOUD."""

    pod: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of the state's pods; who is not named stays where it is.

    `moves` stand in an order in which each finds room once those before it are done. Pods that change places with one
    another have no such order: there a pod may need one named after it to leave first. Seats come after all moves.
    """

    seats: tuple[Seat, ...] = ()
    moves: tuple[Shift, ...] = ()
    to_cloud: tuple[int, ...] = ()
    """New pods that the edge has no room for."""

    @property
    def lifts(self) -> int:
        """Moves from the cloud to the edge: at most M_C2E."""
        return sum(move.source == CLOUD for move in self.moves)

    @property
    def reorderings(self) -> int:
        """Moves within the edge: at most M_ER."""
        return sum(move.source != CLOUD != move.target for move in self.moves)

    @property
    def offloads(self) -> int:
        """Moves from the edge to the cloud: at most M_E2C."""
        return sum(move.target == CLOUD for move in self.moves)


def decision(layout: Layout) -> Decision:
    """What leads from a layout's state to the layout."""
    state = layout.state
    seats, to_cloud, moves = [], [], []
    for number, (pod, target) in enumerate(zip(state.pods, layout.where, strict=True)):
        if pod.is_new and target == CLOUD:
            to_cloud.append(number)
        elif pod.is_new:
            seats.append(Seat(number, target))
        elif target != pod.where:
            moves.append(Shift(number, pod.where, target))
    return Decision(tuple(seats), tuple(_in_order(state, moves)), tuple(to_cloud))


def _in_order(state: EdgeState, moves: list[Shift]) -> list[Shift]:
    """Those to the cloud, which always has room, then each once it fits; those that never do come last."""
    trial = Layout(state)
    order = [move for move in moves if move.target == CLOUD]
    for move in order:
        trial.put(move.pod, CLOUD)
    waiting = sorted((move for move in moves if move.target != CLOUD), key=lambda move: move.source == CLOUD)
    while waiting:
        fitting = (move for move in waiting if fits(state.pods[move.pod].size, trial.free[move.target]))
        move = next(fitting, waiting[0])
        trial.put(move.pod, move.target)
        waiting.remove(move)
        order.append(move)
    return order
