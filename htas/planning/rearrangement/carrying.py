"""Carrying a rearrangement out: which pods leave their nodes now, in an order that never over-commits a node.

Seats are filled as their room frees (reservations.py). A pod leaves only when its slot has room, so that it is down
briefly; victims leave at once. Where pods wait for each other in a circle, one of them goes elsewhere: to a node that
has room for it beside all slots, which is as good a placement with as many moves. Where there is none, the pod whose
loss is least is evicted first, and is down until its slot is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from htas.model.plan import Bind, Carrying, Nomination, Plan, Step
from htas.model.pods import Pod, WorkKind
from htas.model.policy import MigrationMethod, Policy
from htas.model.rearrangement import NOBODY, OpenRearrangement, Rearrangement, Slot, Victim
from htas.model.reasons import Cancelled
from htas.model.snapshot import ClusterSnapshot
from htas.planning.edge.present import services_starting
from htas.planning.leaving import Leaving
from htas.planning.opening import Opening, open_simulation
from htas.planning.rearrangement.components import Component, components
from htas.planning.rearrangement.reservations import Reservation, importance, seat
from htas.planning.rearrangement.slots import identity
from htas.planning.rearrangement.validity import Refusal, forbidden, refusal

_STANDS_STILL = Carrying()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a plan does about the rearrangement under way: pods that have slots, and who leaves now."""

    bind: Sequence[Bind] = ()
    nominate: Sequence[Nomination] = ()
    carrying: Carrying = _STANDS_STILL


def given_up(reason: Cancelled, message: str) -> Carried:
    """It does not go on: nobody else leaves, and pods that have left are placed like any other."""
    return Carried(carrying=Carrying(cancel=reason, message=message))


def with_carrying(plan: Plan, carried: Carried) -> Plan:
    """A plan with what is done about the rearrangement under way."""
    return msgspec.structs.replace(
        plan,
        bind=tuple(sorted([*plan.bind, *carried.bind], key=lambda bind: (bind.node, bind.pod))),
        nominate=tuple(sorted([*plan.nominate, *carried.nominate], key=lambda each: (each.node, each.pod))),
        carry=carried.carrying,
    )


def carry_on(opening: Opening, snapshot: ClusterSnapshot, policy: Policy, now: float) -> Carried:
    """How the rearrangement under way goes on. The simulation is left as it was."""
    current = opening.rearrangement
    if current is None:
        return Carried()
    with opening.sim.fork():
        for each in opening.reservations:
            each.lift(opening.sim)
        why = refusal(opening, current, snapshot, policy, now)
        if why is not None:
            return given_up(why.reason, why.message)
        bind, nominate = seat(opening.sim, opening.reservations, snapshot, policy)
        steps = _Steps(opening, current, snapshot, now, Leaving(snapshot.cluster, policy)).chosen()
    why = forbidden(((step.uid, step.target) for step in steps), current.priority, snapshot, policy, now)
    if why is not None:
        return Carried(bind, nominate, Carrying(cancel=why.reason, message=why.message))
    return Carried(bind, nominate, Carrying(tuple(steps)))


@dataclass(slots=True)
class _Steps:
    """The steps of this moment. The simulation holds what is there, and the room of pods that wait for their slots."""

    opening: Opening
    current: OpenRearrangement
    snapshot: ClusterSnapshot
    now: float
    leaving: Leaving
    steps: list[Step] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    """Nodes whose pods stay until another pod of their service is Ready."""
    blocked: list[Reservation] = field(default_factory=list)

    def chosen(self) -> list[Step]:
        self._let_go()
        parts = components(self.current, self.opening.reservations)
        in_motion = self._in_motion()
        for part in parts:
            if part.gains and part.nodes.isdisjoint(in_motion):
                self._break(part)
        gaining = {node for part in parts if part.gains for node in part.nodes}
        return [step for step in self.steps if step.source in gaining]

    def _let_go(self) -> None:
        """Victims, and pods whose slots have room, which is theirs from now on."""
        sim = self.opening.sim
        starting = services_starting(self.snapshot.cluster) if self.current.is_suggestion else {}
        self.steps += [Step(each.pod.key, each.pod.uid, each.source, None, "evict") for each in self.current.victims]
        for each in sorted(self.opening.reservations, key=importance):
            slot = each.held.slot
            if slot.is_away or each.is_moving:
                continue
            fits = each.fits(sim)
            if slot.pod.service in starting:
                self.held.add(slot.source or "")
                if fits:
                    each.keep(sim)
            elif fits:
                each.keep(sim)
                self.steps.append(self._step(slot, slot.node))
            else:
                self.blocked.append(each)

    def _in_motion(self) -> set[str]:
        """Nodes on which room is about to free."""
        nodes = self.held | {step.source for step in self.steps}
        nodes |= {pod.node for pod in self.snapshot.cluster.pods if pod.is_terminating and pod.node is not None}
        return nodes | {each.held.slot.source or "" for each in self.opening.reservations if each.is_moving}

    def _break(self, part: Component) -> None:
        """Let one of the pods go that wait for each other, if any do."""
        wanted = {each.held.slot.node for each in self.blocked} | {
            each.held.slot.node for each in self.opening.reservations if each.held.slot.is_away
        }
        waiting = [each for each in self.blocked if each.held.slot.source in part.nodes & wanted]
        if not waiting:
            return
        for each in sorted(waiting, key=self._loss):
            # A suggestion is made for where its pods end up: in the cloud, say, one would be worth less than before.
            elsewhere = self._elsewhere(each) if not self.current.is_suggestion else None
            if elsewhere is not None:
                self.steps.append(msgspec.structs.replace(self._step(each.held.slot, elsewhere), is_detour=True))
                return
        come_back = [each for each in waiting if each.held.slot.pod.owner is not None]
        if not come_back:
            return  # nobody would start them again: room may free yet, else time runs out
        slot = min(come_back, key=self._loss).held.slot
        first = self._step(slot, slot.node)
        self.steps.append(msgspec.structs.replace(first, method=MigrationMethod.EVICT.value, breaks_cycle=True))

    def _elsewhere(self, each: Reservation) -> str | None:
        """A node with room for a pod beside all slots."""
        sim = self.opening.sim
        with sim.fork():
            for other in self.blocked:
                if other is not each:
                    other.keep(sim)
            rows = np.flatnonzero(sim.feasible(each.cls)).tolist()
        names = (sim.table.nodes[row].name for row in rows)
        pod = each.held.slot.pod
        return next(
            (name for name in names if name not in self.opening.coming and self.leaving.arrives(pod, name)), None
        )

    def _step(self, slot: Slot, target: str) -> Step:
        """By the method that the search chose, unless something speaks against it by now."""
        method = self.leaving.possible(slot.pod, MigrationMethod(slot.method), target)
        return Step(slot.pod.key, slot.pod.uid, slot.source or "", target, method.value)

    def _loss(self, each: Reservation) -> tuple[int, float, str]:
        """What is lost if it is evicted before its slot is free: importance first, then the run time so far."""
        pod = each.held.slot.pod
        is_lost = pod.kind is WorkKind.BATCH and pod.started_at is not None
        return pod.priority, self.now - (pod.started_at or self.now) if is_lost else 0.0, pod.key


def carried_on(snapshot: ClusterSnapshot, policy: Policy, now: float) -> Carried:
    """How the rearrangement of a snapshot goes on."""
    return carry_on(open_simulation(snapshot, policy, now), snapshot, policy, now)


def begun(found: Rearrangement, snapshot: ClusterSnapshot, policy: Policy, now: float) -> OpenRearrangement | Refusal:
    """What was found, as it is to be journalled, if it is valid and better on this snapshot still; else why not.

    Pods that have left their nodes meanwhile need no shift: their room is free, or about to be.
    """
    pods = {pod.uid: pod for pod in snapshot.cluster.pods}
    shifts = [shift for shift in found.shifts if _still_runs(pods.get(shift.uid), shift.source)]
    seats = [Slot(pods[each.uid], each.node) for each in found.seats if _still_waits(pods.get(each.uid), snapshot)]
    if found.is_suggestion and len(shifts) < len(found.shifts):
        return Refusal(Cancelled.CONTRADICTED, "one of the pods that were to move has left its node")
    if not seats and not found.is_suggestion:
        return Refusal(Cancelled.NOTHING_GAINED, "none of the pods that were to be placed waits any more")
    moves = [
        Slot(pods[shift.uid], shift.target, shift.source, shift.method, is_aim=shift.is_aim)
        for shift in shifts
        if shift.target is not None
    ]
    slots = (*seats, *moves)
    opened = OpenRearrangement(
        started_at=now,
        priority=max((slot.pod.priority for slot in seats), default=NOBODY),
        slots=slots,
        victims=tuple(Victim(pods[shift.uid], shift.source) for shift in shifts if shift.target is None),
        settled=_settled(slots, pods),
        is_suggestion=found.is_suggestion,
    )
    return _refused(opened, snapshot, policy, now) or opened


def detoured(current: OpenRearrangement, targets: Mapping[str, str | None], pods: Iterable[Pod]) -> OpenRearrangement:
    """The rearrangement with other nodes for the slots of some pods (by uid)."""
    slots = tuple(msgspec.structs.replace(slot, node=targets.get(slot.pod.uid) or slot.node) for slot in current.slots)
    settled = set(_settled(slots, {pod.uid: pod for pod in pods}))
    return msgspec.structs.replace(current, slots=slots, settled=tuple(sorted(settled.union(current.settled))))


def _refused(opened: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy, now: float) -> Refusal | None:
    snapshot = msgspec.structs.replace(snapshot, rearrangement=opened)
    opening = open_simulation(snapshot, policy, now)
    for each in opening.reservations:
        each.lift(opening.sim)
    why = refusal(opening, opened, snapshot, policy, now)
    if why is not None:
        return why
    leaving = [(slot.pod.uid, slot.node) for slot in opened.slots if slot.source is not None]
    return forbidden(
        [*leaving, *((victim.pod.uid, None) for victim in opened.victims)], opened.priority, snapshot, policy, now
    )


def _still_runs(pod: Pod | None, source: str) -> bool:
    return pod is not None and pod.node == source and not pod.is_terminating


def _still_waits(pod: Pod | None, snapshot: ClusterSnapshot) -> bool:
    if pod is None or pod.node is not None or pod.key in snapshot.expected_binds:
        return False
    return not (pod.is_terminating or pod.gates or pod.nominated_node)


def _settled(slots: Iterable[Slot], pods: Mapping[str, Pod]) -> tuple[str, ...]:
    """Pods on the slots' nodes that look like those to come, and stay."""
    own = {slot.pod.uid for slot in slots}
    wanted = {(identity(slot.pod), slot.node) for slot in slots}
    nodes = {slot.node for slot in slots}
    found = (pod for uid, pod in pods.items() if pod.node in nodes and uid not in own)
    return tuple(sorted(pod.uid for pod in found if (identity(pod), pod.node) in wanted))
