"""Reservations: room of open slots is nobody else's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from htas.model.holds import HoldReason
from htas.model.pods import Pod
from htas.model.policy import NewPods, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.holds.slots import BoundSlot
from htas.planning.cluster.order import RowTransfer
from htas.planning.cluster.simulation import KeptRoom, Simulation


@dataclass(frozen=True, slots=True)
class Reservation:
    """A slot in the simulation. `row` None: its node is gone."""

    held: BoundSlot
    cls: PodClass
    row: int | None
    is_moving: bool
    """Its pod is being moved there: that move keeps the room."""

    @property
    def key(self) -> str:
        return self.held.slot.pod.key

    def keep(self, sim: Simulation) -> None:
        sim.keep_room(*self._room())

    def lift(self, sim: Simulation) -> None:
        sim.drop_room(*self._room())

    def _room(self) -> tuple[KeptRoom, ...]:
        """Nothing where its node is gone, or the move of its pod keeps it."""
        if self.row is None or self.is_moving:
            return ()
        return (KeptRoom(self.held.example, self.cls, self.row, HoldReason.SLOT),)

    def fits(self, sim: Simulation) -> bool:
        """Whether its room is free, by every rule of feasibility."""
        return self.row is not None and sim.fits(self.cls, self.row)

    def transfer(self, rows: Mapping[str, int], *, has_left: bool = False) -> RowTransfer:
        """The way of its pod into it; `rows` are those of nodes by name."""
        return RowTransfer(self.key, self.cls, self.row, None if has_left else rows.get(self.held.slot.source or ""))


def reserve(
    sim: Simulation, book: ClassBook, snapshot: ClusterSnapshot, held: Iterable[BoundSlot]
) -> tuple[Reservation, ...]:
    """Keep the room of open slots; others see it as taken."""
    rows = sim.table.row_of
    moving = {(move.pod, move.target) for move in snapshot.moves}
    moving |= {(pod.twin_of, pod.node) for pod in snapshot.cluster.pods if pod.twin_of and pod.node is not None}
    found = []
    for each in held:
        slot = each.slot
        is_moving = (slot.pod.key, slot.node) in moving or (slot.pod.uid, slot.node) in moving
        reservation = Reservation(each, book.class_of(each.example), rows.get(slot.node), is_moving)
        reservation.keep(sim)
        found.append(reservation)
    return tuple(found)


def withheld_from(waiting: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy) -> tuple[Pod, ...]:
    """Pods of ours that are not placed while the optimiser searches, where that is configured."""
    is_searching = snapshot.search.is_under_way and snapshot.rearrangement is None
    if not is_searching or policy.fallback.new_pods is not NewPods.WAIT:
        return ()
    return tuple(pod for pod in waiting if pod.scheduler == policy.scheduler_name)


def importance(each: Reservation) -> tuple[int, float, str]:
    """Higher priority first, then the older."""
    pod = each.held.example
    return -pod.priority, pod.created_at, pod.key
