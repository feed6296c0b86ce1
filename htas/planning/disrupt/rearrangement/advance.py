"""Carrying a rearrangement out: which pods leave their nodes now, in an order that never over-commits a node.

Slots are filled as their room frees. A pod leaves only when its slot has room, so that it is down
briefly; victims leave at once. Where pods wait for each other in a circle, one of them goes elsewhere: to a node that
has room for it beside all slots, which is as good a placement with as many moves. Where there is none, the pod whose
loss is least is evicted first, and is down until its slot is free; a suggestion, which moves pods for nobody's need, is
given up rather than evict one whose twin was to start first. Pods of services also wait until enough of theirs are
Ready (`AvailabilityGuard`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from htas.model.holds import Hold, HoldReason, hold
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.plan import Carrying
from htas.model.pods import Pod, WorkKind, priority_sort
from htas.model.policy import Policy
from htas.model.rearrangement import NOBODY, OpenRearrangement, Slot
from htas.model.reasons import OutcomeReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import services_starting
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.cluster.simulation import Simulation
from htas.planning.cluster.slots import Reservation, in_order
from htas.planning.disrupt.rearrangement.validity import Component, components, forbidden, refusal
from htas.planning.eligibility.budgets import BudgetLedger, max_unavailable
from htas.planning.eligibility.migration_methods import MigrationMethods

_STANDS_STILL = Carrying()
_IN_A_CIRCLE = "pods wait for each other's room, and none of them is evicted for it"


@dataclass(frozen=True, slots=True)
class RearrangementSteps:
    """What a plan does about the rearrangement under way: who has a slot, and who leaves now."""

    seated: Sequence[tuple[Pod, str]] = ()
    """Pods whose slots are free, with their nodes."""
    waiting: Sequence[Hold] = ()
    """Pods whose slots are not free yet."""
    carrying: Carrying = _STANDS_STILL


def cancelled(reason: OutcomeReason, message: str) -> RearrangementSteps:
    """It does not go on: nobody else leaves, and pods that have left are placed like any other."""
    return RearrangementSteps(carrying=Carrying(cancel=reason, message=message))


def advance(simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, now: float) -> RearrangementSteps:
    """How the rearrangement under way goes on. The simulation is left as it was."""
    current = simulated.rearrangement
    if current is None:
        return RearrangementSteps()
    with simulated.sim.fork():
        for each in simulated.reservations:
            each.lift(simulated.sim)
        why = refusal(simulated, current, snapshot, policy, now)
        if why is not None:
            return cancelled(why.reason, why.message)
        seated, waiting = _seat(simulated.sim, simulated.reservations, current.why)
        choosing = _Steps(
            simulated,
            current,
            snapshot,
            now,
            MigrationMethods(snapshot.cluster, policy),
            AvailabilityGuard(current, snapshot),
        )
        steps = choosing.chosen()
    if choosing.is_stuck and not seated:
        return cancelled(OutcomeReason.ROOM_TAKEN, _IN_A_CIRCLE)
    why = forbidden(((step.uid, step.target) for step in steps), current.priority, snapshot, policy, now)
    if why is not None:
        return RearrangementSteps(seated, waiting, Carrying(cancel=why.reason, message=why.message))
    return RearrangementSteps(seated, waiting, Carrying(tuple(steps)))


def advance_on(snapshot: ClusterSnapshot, policy: Policy, now: float) -> RearrangementSteps:
    """How the rearrangement of a snapshot goes on."""
    return advance(open_simulation(snapshot, policy, now), snapshot, policy, now)


def _seat(sim: Simulation, reservations: Sequence[Reservation], why: str) -> tuple[list[tuple[Pod, str]], list[Hold]]:
    """Pods whose slots are free, the most important first, and the others that wait for theirs.

    The reservations have been lifted; those of pods that wait, or will, are kept again.
    """
    seated, waiting, blocked = [], [], []
    away = [each for each in reservations if each.slot.is_away]
    for each in sorted(away, key=lambda each: priority_sort(each.example)):
        pod, node = each.pod, each.slot.node
        if pod is None or not sim.fits(each.cls, each.row):
            blocked.append(each)
            if pod is not None:
                waiting.append(hold(pod.key, node, HoldReason.REARRANGEMENT, f": {why}" if why else ""))
            continue
        each.keep(sim)
        seated.append((pod, node))
    for each in blocked:
        each.keep(sim)
    return seated, waiting


@dataclass(slots=True)
class _Steps:
    """The steps of this moment. The simulation holds what is there, and the room of pods that wait for their slots."""

    simulated: SimulatedCluster
    current: OpenRearrangement
    snapshot: ClusterSnapshot
    now: float
    leaving: MigrationMethods
    gates: AvailabilityGuard
    steps: list[Move] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    """Nodes whose pods stay until enough of their service are Ready."""
    blocked: list[Reservation] = field(default_factory=list)
    is_stuck: bool = False
    """Of a suggestion: nothing of it can move any more without an eviction that nobody was told of."""

    def chosen(self) -> list[Move]:
        parts = components(self.current, self.simulated.reservations)
        gaining = {node: self._priority(part) for part in parts if part.gains for node in part.nodes}
        self._let_go(gaining)
        in_motion = self._in_motion()
        for part in parts:
            if part.gains and part.nodes.isdisjoint(in_motion):
                self._break(part, gaining)
        self.is_stuck = self.is_stuck and not (self.steps or in_motion)
        return [step for step in self.steps if step.source in gaining]

    def _priority(self, part: Component) -> int:
        """Of the most important pod that a part is still to place, for whose sake the others leave."""
        seats = (each.slot for each in self.simulated.reservations)
        return max(
            (slot.pod.priority for slot in seats if slot.source is None and slot.node in part.nodes), default=NOBODY
        )

    def _let_go(self, gaining: Mapping[str, int]) -> None:
        """Victims, and pods whose slots have room, which is theirs from now on.

        `gaining` are the nodes of parts that are gone on with: pods of others stay, and count at no gate.
        """
        for each in self.current.victims:
            source = each.node or ""
            if self._passes(each, source, MigrationMethod.EVICT, gaining):
                self.steps.append(_move(each, source, None, MigrationMethod.EVICT))
        for waiting in sorted(self.simulated.reservations, key=lambda each: priority_sort(each.example)):
            slot = waiting.slot
            if slot.is_away or waiting.is_moving:
                continue
            source = slot.source or ""
            is_held = source in gaining and self.gates.hold(slot.pod, gaining[source])
            if not self.simulated.sim.fits(waiting.cls, waiting.row):
                if is_held:
                    self.held.add(source)
                else:
                    self.blocked.append(waiting)
                continue
            waiting.keep(self.simulated.sim)
            step = self._step(slot, slot.node)
            if self._passes(slot.pod, source, step.method, gaining):
                self.steps.append(step)

    def _passes(self, pod: Pod, source: str, method: MigrationMethod, gaining: Mapping[str, int]) -> bool:
        """Whether a pod leaves now, as far as its service is concerned; else its node is held."""
        if source not in gaining:
            return False
        if self.gates.try_leave(pod, gaining[source], method):
            return True
        self.held.add(source)
        return False

    def _in_motion(self) -> set[str]:
        """Nodes on which room is about to free."""
        nodes = self.held | {step.source for step in self.steps}
        nodes |= {pod.node for pod in self.snapshot.cluster.pods if pod.is_terminating and pod.node is not None}
        return nodes | {each.slot.source or "" for each in self.simulated.reservations if each.is_moving}

    def _break(self, part: Component, gaining: Mapping[str, int]) -> None:
        """Let one of the pods go that wait for each other, if any do."""
        wanted = {each.slot.node for each in self.blocked} | {
            each.slot.node for each in self.simulated.reservations if each.slot.is_away
        }
        waiting = [each for each in self.blocked if each.slot.source in part.nodes & wanted]
        if not waiting:
            return
        for each in sorted(waiting, key=self._loss):
            # A suggestion is made for where its pods end up: in the cloud, say, one would be worth less than before.
            elsewhere = self._elsewhere(each) if not self.current.is_suggestion else None
            step = self._step(each.slot, elsewhere) if elsewhere is not None else None
            if step is not None and self._goes(each.slot, step.method, gaining):
                self.steps.append(msgspec.structs.replace(step, reason=MoveReason.DETOUR))
                return
        come_back = [each for each in sorted(waiting, key=self._loss) if self._may_be_evicted(each.slot)]
        if not come_back:
            self.is_stuck = self.current.is_suggestion
            return  # nobody would start them again: room may free yet, else time runs out
        chosen = next((each for each in come_back if self._may_be_down(each, part, gaining)), None)
        if chosen is not None:
            first = self._step(chosen.slot, chosen.slot.node)
            self.steps.append(
                msgspec.structs.replace(first, method=MigrationMethod.EVICT, reason=MoveReason.BREAKS_CYCLE)
            )

    def _may_be_down(self, each: Reservation, part: Component, gaining: Mapping[str, int]) -> bool:
        """Whether a pod may leave before its slot has room, and so be down until others have left.

        Where pods of its own service stand in the way, and have to wait until others of it are Ready, it would be down
        for as long: so one more of the service has to be allowed to leave, and only one circle is broken at a time.
        """
        slot = each.slot
        priority = gaining[slot.source or ""]
        if self.current.is_suggestion or not self.gates.asks(slot.pod, priority):
            return self.gates.try_leave(slot.pod, priority, MigrationMethod.EVICT)
        if any(other.source is not None and other.is_away for other in self.current.slots) or self._breaks_one():
            return False
        if not self._opens_a_way(each):
            return False
        others = (other.slot for other in self.blocked if other.slot.source in part.nodes)
        has_sibling = any(other.pod.uid != slot.pod.uid and other.pod.service == slot.pod.service for other in others)
        return self.gates.try_leave(slot.pod, priority, MigrationMethod.EVICT, spare=int(has_sibling))

    def _opens_a_way(self, first: Reservation) -> bool:
        """Whether a pod's slot has room once it has left and others have moved one by one, each into its own slot.

        Else two more would wait for each other in its way, and it would be down for as long as they do.
        """
        sim, rows = self.simulated.sim, self.simulated.sim.table.row_of
        others = [each.transfer(rows) for each in self.blocked if each is not first]
        with sim.fork():
            source = rows.get(first.slot.source or "")
            if source is not None:
                sim.unplace(first.cls, source)
            return sim.fits(first.cls, first.row) or any(sim.fits(first.cls, first.row) for _ in in_order(sim, others))

    def _breaks_one(self) -> bool:
        return any(step.reason is MoveReason.BREAKS_CYCLE for step in self.steps)

    def _may_be_evicted(self, slot: Slot) -> bool:
        """Whether its controller makes another; of a suggestion also, whether it was counted as one that is evicted."""
        is_twin_promised = self.current.is_suggestion and slot.method.makes_twin
        return slot.pod.owner is not None and not is_twin_promised

    def _goes(self, slot: Slot, method: MigrationMethod, gaining: Mapping[str, int]) -> bool:
        return self.gates.try_leave(slot.pod, gaining[slot.source or ""], method)

    def _elsewhere(self, each: Reservation) -> str | None:
        """A node with room for a pod beside all slots."""
        sim = self.simulated.sim
        with sim.fork():
            for other in self.blocked:
                if other is not each:
                    other.keep(sim)
            rows = np.flatnonzero(sim.feasible(each.cls)).tolist()
        names = (sim.table.nodes[row].name for row in rows)
        pod = each.slot.pod
        return next(
            (name for name in names if name not in self.simulated.coming and self.leaving.arrives(pod, name)), None
        )

    def _step(self, slot: Slot, target: str) -> Move:
        """By the method that the search chose, unless something speaks against it by now.

        A suggestion's twins are asked for all the same, and refused: it is given up rather than evict them.
        """
        method = slot.method
        if not self.current.is_suggestion:
            method = self.leaving.possible(slot.pod, method, target)
        return _move(slot.pod, slot.source or "", target, method, slot.reason)

    def _loss(self, each: Reservation) -> tuple[int, float, str]:
        """What is lost if it is evicted before its slot is free: importance first, then the run time so far."""
        pod = each.slot.pod
        is_lost = pod.kind is WorkKind.BATCH and pod.started_at is not None
        return pod.priority, self.now - (pod.started_at or self.now) if is_lost else 0.0, pod.key


def _move(
    pod: Pod, source: str, target: str | None, method: MigrationMethod, reason: MoveReason = MoveReason.MAKES_ROOM
) -> Move:
    return Move(pod.key, pod.uid, source, target, method, reason)


class AvailabilityGuard:
    """Which pods of services may leave their nodes now, so that no service is missed for work no better than it.

    A suggestion's pods wait while their service is starting; how many go at once its planning has counted already. Pods
    that make room for work of their own priority, or lower, wait for both: four of five replicas evicted in one step
    would be an outage of the one for the start of the other. For more important work nobody waits. They may leave once
    others have become Ready; the rearrangement that waits for it ends after `timeouts.drain` at the latest.
    `try_leave` counts those that it lets through.
    """

    def __init__(self, current: OpenRearrangement, snapshot: ClusterSnapshot) -> None:
        self._is_suggestion = current.is_suggestion
        self._starting = services_starting(snapshot.cluster)
        self._ledger = BudgetLedger(snapshot.cluster.budgets)
        self._left = _left(current, snapshot)

    def hold(self, pod: Pod, priority: int) -> bool:
        """Whether a pod waits, for work of a priority, until all of its service that have nodes are Ready."""
        return self.asks(pod, priority) and pod.service in self._starting

    def try_leave(self, pod: Pod, priority: int, method: MigrationMethod, spare: int = 0) -> bool:
        """Let a pod leave by a method for work of a priority; False: too many of its service are missing already.

        `spare` is how many more of it have to be able to leave before this one comes back.
        """
        if not self.asks(pod, priority):
            return True
        if pod.service in self._starting:
            return False
        if self._is_suggestion or method.makes_twin or self._ledger.has_budget(pod):
            return True
        if self._left[pod.service] < 1 + spare:
            return False
        self._left[pod.service] -= 1
        return True

    def asks(self, pod: Pod, priority: int) -> bool:
        """Whether a pod is one of a service's, and has to ask before it leaves for work of a priority."""
        if pod.kind is not WorkKind.SERVICE or pod.service is None:
            return False
        return self._is_suggestion or priority <= pod.priority


def _left(current: OpenRearrangement, snapshot: ClusterSnapshot) -> Counter[str | None]:
    """How many more of each service may be missing.

    Missing is what has left since the rearrangement began: slots that pods have left for, what its controller has made
    since and waits, and what ends and is still to be made again. Pods that waited before are what room may be made for:
    were they counted, a service that is short of room would never let a pod be moved for its own sake.
    """
    by_service: dict[str | None, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        if pod.kind is WorkKind.SERVICE and pod.service is not None:
            by_service.setdefault(pod.service, []).append(pod)
    away = Counter(slot.pod.service for slot in current.slots if slot.source is not None and slot.is_away)
    began = math.floor(current.started_at)  # creation times are whole seconds
    left = Counter[str | None]()
    for service, pods in by_service.items():
        alive = [pod for pod in pods if not pod.is_terminating]
        wanted = _wanted(pods)
        waiting = sum(pod.node is None and pod.created_at >= began for pod in alive)
        to_be_made = min(wanted - len(alive), len(pods) - len(alive))
        left[service] = max_unavailable(wanted) - max(away[service], waiting + to_be_made)
    return left


def _wanted(pods: Iterable[Pod]) -> int:
    """How many pods the controllers of a service want. Where that is not known each one that ends is made again."""
    owned: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.owner is not None:
            owned.setdefault(pod.owner.uid or pod.owner.name, []).append(pod)
    return sum(map(_wanted_by_one, owned.values()))


def _wanted_by_one(pods: list[Pod]) -> int:
    alive = sum(not pod.is_terminating for pod in pods)
    newest = max(pods, key=lambda pod: pod.created_at)
    replicas = newest.owner.replicas if newest.owner is not None else None
    return len(pods) if replicas is None else max(replicas, alive)
