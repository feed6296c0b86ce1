"""Reservations: room of open slots is nobody else's, and a pod that a slot is for is bound there or waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.plan import Bind, Nomination
from htas.model.pods import Pod
from htas.model.policy import NewPods, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.holds.slots import BoundSlot
from htas.planning.cluster.order import Transfer
from htas.planning.cluster.simulation import Simulation

_NO_SLOT = "its slot in the rearrangement under way is not free yet"


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
        """Keep the room; it may have to be made first, so that a row's free room may be below zero."""
        if self.row is not None and not self.is_moving:
            sim.place_many(self.cls, np.array([self.row]), np.array([1]), is_work=False)

    def lift(self, sim: Simulation) -> None:
        if self.row is not None and not self.is_moving:
            sim.unplace(self.cls, self.row)

    def fits(self, sim: Simulation) -> bool:
        """Whether its room is free, by every rule of feasibility."""
        return self.row is not None and sim.fits(self.cls, self.row)

    def transfer(self, rows: Mapping[str, int], *, has_left: bool = False) -> Transfer:
        """The way of its pod into it; `rows` are those of nodes by name."""
        return Transfer(self.key, self.cls, self.row, None if has_left else rows.get(self.held.slot.source or ""))


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


def seat(
    sim: Simulation, reservations: Sequence[Reservation], snapshot: ClusterSnapshot, policy: Policy
) -> tuple[list[Bind], list[Nomination]]:
    """Bind pods whose slots are free, the most important first; the others wait for theirs.

    The reservations have been lifted; those of pods that wait, or will, are kept again.
    """
    bind: list[Bind] = []
    nominate: list[Nomination] = []
    away = [each for each in reservations if each.held.slot.is_away]
    no_slot = _no_slot(snapshot)
    blocked = []
    for each in sorted(away, key=importance):
        pod = each.held.pod
        if pod is None or not each.fits(sim):
            blocked.append(each)
            if pod is not None:
                nominate.append(Nomination(pod.key, each.held.slot.node, no_slot))
            continue
        each.keep(sim)
        why = _not_bound(pod, snapshot, policy)
        if why is None:
            bind.append(Bind(pod.key, each.held.slot.node))
        else:
            nominate.append(Nomination(pod.key, each.held.slot.node, why))
    for each in blocked:
        each.keep(sim)
    return bind, nominate


def _no_slot(snapshot: ClusterSnapshot) -> str:
    why = snapshot.rearrangement.why if snapshot.rearrangement is not None else ""
    return f"{_NO_SLOT}: {why}" if why else _NO_SLOT


def importance(each: Reservation) -> tuple[int, float, str]:
    """Higher priority first, then the older."""
    pod = each.held.example
    return -pod.priority, pod.created_at, pod.key


def _not_bound(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> str | None:
    if snapshot.held_back.get(pod.key, 0.0) > snapshot.taken_at:
        return "its last bind failed; it is tried again in a moment"
    return None if pod.scheduler == policy.scheduler_name else f"bound by {pod.scheduler}"
