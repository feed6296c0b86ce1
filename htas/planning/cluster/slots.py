"""Slots of a rearrangement: which pod each is for, how far all has come, the room kept, and the order they fill in.

A pod that was evicted comes back under another name. A slot knows it by its owner and shape: pods of one ReplicaSet
with the same requests are interchangeable, so that any of them that waits may have the slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from htas.model.holds import HoldReason
from htas.model.pods import Pod
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import KeptRoom, Simulation
from htas.planning.cluster.whereabouts import is_pending, node_of

PATIENCE_S = 60.0
"""How long an owner may take to make another pod before its slot is given up. ReplicaSets take a second; a Job that has
failed before backs off for 10 s, then 20 s, then 40 s."""

Identity = tuple[object, ...]


def identity(pod: Pod) -> Identity:
    """What a pod and the one that replaces it have in common."""
    owner = (pod.owner.uid or pod.owner.name) if pod.owner is not None else pod.name
    return pod.namespace, owner, pod.requests, pod.priority, pod.scheduler


@dataclass(frozen=True, slots=True)
class RearrangementProgress:
    """A rearrangement as far as it has come, and its open slots, each with the waiting pod that it is for if that is
    there."""

    rearrangement: OpenRearrangement
    held: tuple[tuple[Slot, Pod | None], ...]


def standing(snapshot: ClusterSnapshot) -> RearrangementProgress | None:
    """How the rearrangement of a snapshot stands, binds under way counted as done."""
    if snapshot.rearrangement is None:
        return None
    look = _Look(snapshot.cluster, lambda pod: node_of(pod, snapshot))
    current = look.progress(snapshot.rearrangement, snapshot.taken_at)
    return RearrangementProgress(current, look.held(current))


def progress(rearrangement: OpenRearrangement, view: ClusterView, now: float) -> OpenRearrangement:
    """The rearrangement as far as the cluster shows it done: slots that are filled are gone from it, and so on."""
    return _Look(view, lambda pod: pod.node).progress(rearrangement, now)


class _Look:
    """One look at the cluster. `where` tells on which node a pod is, or will be in a moment."""

    def __init__(self, view: ClusterView, where: Callable[[Pod], str | None]) -> None:
        self._where = where
        self._by_uid: Mapping[str, Pod] = {pod.uid: pod for pod in view.pods}
        self._ended_well = {ended.uid for ended in view.ended if ended.succeeded}
        self._pods = view.pods
        self._ready = {pod.uid for pod in view.pods if pod.ready_since is not None}
        self._twins = {pod.twin_of: pod.uid for pod in view.pods if pod.twin_of}
        self._taken: set[str] = set()
        self._filled: set[str] = set()
        """Pods that fill slots now: they will fill no other. A suggestion waits until they are Ready."""
        self._waiting = {identity(pod) for pod in view.pods if _waits(pod, where(pod))}

    def progress(self, before: OpenRearrangement, now: float) -> OpenRearrangement:
        self._taken = set(before.settled) | {slot.pod.uid for slot in before.slots}
        slots: list[Slot] = []
        seated = moved = lost = 0
        candidates = self._candidates(before.slots)
        for slot in before.slots:
            after = self._seen(slot, now, candidates.get(identity(slot.pod), ()), is_soon_lost=before.is_suggestion)
            if isinstance(after, Slot):
                slots.append(after)
            elif after:
                seated += slot.source is None
                moved += slot.source is not None
            else:
                lost += before.is_suggestion
        victims = tuple(each for each in before.victims if self._is_there(each))
        starting = {*before.starting, *self._filled} - self._ready if before.is_suggestion else set[str]()
        gone = {uid for uid in starting if uid not in self._by_uid or self._by_uid[uid].is_terminating}
        return msgspec.structs.replace(
            before,
            slots=tuple(slots),
            settled=tuple(sorted({*before.settled, *self._filled})),
            victims=victims,
            seated=before.seated + seated,
            moved=before.moved + moved,
            evicted=before.evicted + len(before.victims) - len(victims),
            lost=before.lost + lost + len(gone),
            starting=tuple(sorted(starting - gone)),
        )

    def held(self, current: OpenRearrangement) -> tuple[tuple[Slot, Pod | None], ...]:
        """Open slots with the pods that wait for them: their own first, then any of the same identity, oldest first."""
        waiting: dict[Identity, list[Pod]] = {}
        own = {slot.pod.uid for slot in current.slots}
        for pod in sorted(self._pods, key=lambda pod: (pod.created_at, pod.name)):
            if _waits(pod, self._where(pod)) and pod.uid not in own:
                waiting.setdefault(identity(pod), []).append(pod)
        found = list[tuple[Slot, Pod | None]]()
        for slot in current.slots:
            mine = self._by_uid.get(slot.pod.uid)
            if mine is not None and _waits(mine, self._where(mine)):
                found.append((slot, mine))
            elif slot.is_away and (others := waiting.get(identity(slot.pod))):
                found.append((slot, others.pop(0)))
            else:
                found.append((slot, None))
        return tuple(found)

    def _candidates(self, slots: Iterable[Slot]) -> dict[Identity, list[Pod]]:
        """Pods on some node that might be replacements, by identity."""
        wanted = {identity(slot.pod) for slot in slots}
        names = {slot.pod.namespace for slot in slots}
        found: dict[Identity, list[Pod]] = {}
        for pod in self._pods:
            is_candidate = pod.namespace in names and self._where(pod) is not None and not pod.is_terminating
            if is_candidate and (known := identity(pod)) in wanted:
                found.setdefault(known, []).append(pod)
        return found

    def _is_there(self, pod: Pod) -> bool:
        present = self._by_uid.get(pod.uid)
        return present is not None and not present.is_terminating

    def _seen(self, slot: Slot, now: float, candidates: Iterable[Pod], *, is_soon_lost: bool) -> Slot | bool:
        """The slot as it is now; True: it is filled, False: nobody will fill it.

        `is_soon_lost`: not only after a while, but as soon as its controller has all the pods that it wants.
        """
        own = self._by_uid.get(slot.pod.uid)
        if slot.pod.uid in self._twins:
            slot = msgspec.structs.replace(slot, twin=self._twins[slot.pod.uid])
        where = self._where(own) if own is not None else None
        if own is not None and not own.is_terminating:
            if where == slot.node:
                self._filled.add(own.uid)
                return True
            if where is None or where == slot.source:
                return msgspec.structs.replace(slot, left_at=None)
            return False  # somebody has bound it elsewhere
        twin = self._by_uid.get(slot.twin)
        if twin is not None and self._where(twin) == slot.node:
            self._filled.add(twin.uid)
            return True
        if self._takes_up(slot.node, candidates):
            return True
        if slot.pod.uid in self._ended_well:
            return False
        left_at = slot.left_at if slot.left_at is not None else now
        is_awaited = own is not None or identity(slot.pod) in self._waiting
        if not is_awaited and (now - left_at >= PATIENCE_S or (is_soon_lost and self._is_whole(slot.pod))):
            return False
        return msgspec.structs.replace(slot, left_at=left_at)

    def _is_whole(self, pod: Pod) -> bool:
        """Whether a controller has as many pods as it wants, as far as it is known: then it makes no other one."""
        if pod.owner is None:
            return False
        here = [each for each in self._pods if each.owner is not None and each.owner.uid == pod.owner.uid]
        alive = [each.owner for each in here if not each.is_terminating and each.owner is not None]
        return any(owner.replicas is not None and owner.replicas <= len(alive) for owner in alive)

    def _takes_up(self, node: str, candidates: Iterable[Pod]) -> bool:
        """Whether a pod on the node came in place of the slot's own; it fills no other slot."""
        for pod in candidates:
            if pod.uid not in self._taken and self._where(pod) == node:
                self._taken.add(pod.uid)
                self._filled.add(pod.uid)
                return True
        return False


def _waits(pod: Pod, where: str | None) -> bool:
    return is_pending(pod, where) and not (pod.is_daemon or pod.nominated_node)


@dataclass(frozen=True, slots=True)
class Reservation:
    """An open slot in the simulation, and the waiting pod that it is for, if that is there. `row` None: its node is
    gone."""

    slot: Slot
    pod: Pod | None
    cls: PodClass
    row: int | None
    is_moving: bool
    """Its pod is being moved there: that move keeps the room."""

    @property
    def key(self) -> str:
        return self.slot.pod.key

    @property
    def example(self) -> Pod:
        """What its room is kept for."""
        return self.pod or self.slot.pod

    def keep(self, sim: Simulation) -> None:
        sim.keep_room(*self._room())

    def lift(self, sim: Simulation) -> None:
        sim.drop_room(*self._room())

    def _room(self) -> tuple[KeptRoom, ...]:
        """Nothing where its node is gone, or the move of its pod keeps it."""
        if self.row is None or self.is_moving:
            return ()
        return (KeptRoom(self.example, self.cls, self.row, HoldReason.REARRANGEMENT),)

    def transfer(self, rows: Mapping[str, int], *, has_left: bool = False) -> RowTransfer:
        """The way of its pod into it; `rows` are those of nodes by name."""
        source = None if has_left else rows.get(self.slot.source or "")
        return RowTransfer(self.slot.pod, self.cls, self.row, source)


def reserve(
    sim: Simulation, book: ClassBook, snapshot: ClusterSnapshot, held: Iterable[tuple[Slot, Pod | None]]
) -> tuple[Reservation, ...]:
    """Keep the room of open slots; others see it as taken."""
    rows = sim.table.row_of
    moving = {(move.pod, move.target) for move in snapshot.moves}
    moving |= {(pod.twin_of, pod.node) for pod in snapshot.cluster.pods if pod.twin_of and pod.node is not None}
    found = []
    for slot, pod in held:
        is_moving = (slot.pod.key, slot.node) in moving or (slot.pod.uid, slot.node) in moving
        reservation = Reservation(slot, pod, book.class_of(pod or slot.pod), rows.get(slot.node), is_moving)
        reservation.keep(sim)
        found.append(reservation)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class RowTransfer:
    """A pod goes to a row (`target`; None: to nowhere) from another one (`source`; None: it has left, or waits)."""

    pod: Pod
    cls: PodClass
    target: int | None
    source: int | None = None
    may_go_first: bool = False
    """Before its target has room: it is evicted, and is down until then."""


def in_order(sim: Simulation, transfers: Iterable[RowTransfer]) -> Iterator[RowTransfer]:
    """Those that can go, one after another, carried out in the simulation; the others never get room.

    Round by round: by affinity, say, one pod may need another one to be there first. Two pods that are to change
    places on full nodes are not among them: each waits for the other.
    """
    left, before = list(transfers), -1
    while left and len(left) != before:
        before, stuck = len(left), []
        for each in left:
            if each.target is None or not sim.fits(each.cls, each.target):
                stuck.append(each)
                continue
            sim.place_many(each.cls, np.array([each.target]), np.array([1]), is_placement=False)
            if each.source is not None:
                sim.unplace(each.cls, each.source)
            yield each
        left = stuck


def in_a_circle(sim: Simulation, transfers: Iterable[RowTransfer]) -> set[str]:
    """Uids of those that wait for each other's room where none may go first. The simulation stays as it was."""
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
            down.append(RowTransfer(first.pod, first.cls, first.target))
    return {each.pod.uid for each in left}
