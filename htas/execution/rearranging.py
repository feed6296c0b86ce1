"""Rearranging: a better placement that was found is carried out step by step, or cancelled with the reason.

Order: journal → for each pod that leaves: its slot has room → moved or evicted → its replacement bound → noted in
the journal → journal cleared. What is done is read off the cluster, so that whatever step a crash falls on, the next
cycle goes on from there. What turns out not to be movable by its method is evicted to its slot, if somebody starts it
again: that it is to be is journalled, and it waits its turn as one that is evicted. A suggestion is made for nobody's
need: it is given up then, the pod stays, and is left alone for a while. Who leaves now is the planner's to say
(`planning.disrupt.rearrangement`), and is asked again on a fresh view just before. Cancelled, it evicts nobody any
more: pods that have left are ordinary waiting pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from htas.execution.calls import Call, Calls
from htas.execution.crash_points import reached
from htas.execution.moves_seen import MovesSeen
from htas.execution.outcomes import attempted
from htas.execution.ports import Ports
from htas.model.migrations import Refusal as MoveRefusal
from htas.model.plan import Carrying, Step
from htas.model.pods import Pod
from htas.model.policy import MigrationMethod, NodeGroup, Policy, grace_of
from htas.model.rearrangement import OpenRearrangement, Rearrangement, RearrangementStatus, Shift
from htas.model.reasons import Cancelled
from htas.model.record import Outcome, OutcomeStatus
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.holds.slots import progress
from htas.planning.disrupt.rearrangement.carrying import begun, carried_on, detoured
from htas.planning.disrupt.rearrangement.validity import LOST, Refusal
from htas.planning.namespaces import pins
from htas.ports import HTASError, MoveRefusedError

PASSING = frozenset({MoveRefusal.NOT_RUNNING, MoveRefusal.TARGET_NOT_READY, MoveRefusal.NO_ROOM})
"""Refusals that say nothing of the pod: it is tried again, or the planner gives the whole up."""
SUBJECT = "cluster"
"""What outcomes of the whole are about; those of a step are about its pod."""


@dataclass(slots=True)
class Rearranging:
    """Begins, carries on, and ends the one rearrangement there is at a time."""

    ports: Ports
    calls: Calls
    policy: Policy
    moves: MovesSeen
    _refused_since: dict[str, float] = field(default_factory=dict)
    """Since when a pod (its uid) could not be evicted or moved."""

    def begin(self, found: Rearrangement, snapshot: ClusterSnapshot) -> tuple[OpenRearrangement | None, Outcome]:
        """Journal what was found, if it is still valid and better on this snapshot; nothing is moved yet."""
        opened = begun(found, snapshot, self.policy, snapshot.taken_at)
        verb = "suggest" if found.is_suggestion else "rearrange"
        if isinstance(opened, Refusal):
            why = f"{opened.reason}: {opened.message}"
            return None, Outcome(verb, SUBJECT, OutcomeStatus.DROPPED, why)
        try:
            written = self.ports.store.put_rearrangement(opened)
        except HTASError as error:
            return None, Outcome(verb, SUBJECT, OutcomeStatus.FAILED, str(error))
        reached("rearrange.journalled")
        self._refused_since.clear()
        return written, Outcome(verb, SUBJECT, OutcomeStatus.DONE, told(written))

    def advance(self, carrying: Carrying, snapshot: ClusterSnapshot, binds: Mapping[str, str]) -> list[Outcome]:
        """Note what is done, and take the steps that a plan says are next; `binds` are those not yet observed.

        What a plan suggests is begun first, and taken as far as it goes at once.
        """
        if snapshot.rearrangement is None:
            return self._suggested(carrying.suggest, snapshot, binds) if carrying.suggest else []
        if carrying.cancel is not None:
            return [self._cancel(snapshot.rearrangement, carrying.cancel, carrying.message)]
        try:
            view = pins.within_limits(self.ports.cluster.observe(), self.policy, self.ports.clock.now())
            current = self._noted(snapshot.rearrangement, view)
        except HTASError as error:
            return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        if current.lost:
            return [self._cancel(current, Cancelled.CONTRADICTED, LOST)]
        if current.is_complete:
            return [self._complete(current)]
        if current.is_suggestion and (failed := self._taken_back(current)):
            return [self._spare(current, failed)]
        return self._next_steps(current, view, snapshot, binds) if carrying.steps else []

    def _suggested(
        self, shifts: tuple[Shift, ...], snapshot: ClusterSnapshot, binds: Mapping[str, str]
    ) -> list[Outcome]:
        snapshot = msgspec.structs.replace(snapshot, expected_binds=dict(binds))
        found = Rearrangement(snapshot.taken_at, RearrangementStatus.IMPROVED, shifts=shifts)
        opened, outcome = self.begin(found, snapshot)
        if opened is None:
            return [outcome]
        try:
            view = pins.within_limits(self.ports.cluster.observe(), self.policy, self.ports.clock.now())
        except HTASError:
            return [outcome]  # goes on next cycle
        return [outcome, *self._next_steps(opened, view, snapshot, binds)]

    def _next_steps(
        self, current: OpenRearrangement, view: ClusterView, snapshot: ClusterSnapshot, binds: Mapping[str, str]
    ) -> list[Outcome]:
        """Who leaves now is asked again on what the cluster shows now."""
        try:
            current = self._evicted_instead(current, self._taken_back(current))
        except HTASError as error:
            return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        fresh = msgspec.structs.replace(
            snapshot,
            cluster=view,
            rearrangement=current,
            expected_binds=dict(binds),
            moves=tuple(self.ports.migration.moving()),
        )
        carried = carried_on(fresh, self.policy, self.ports.clock.now()).carrying
        if carried.cancel is not None:
            return [self._cancel(current, carried.cancel, carried.message)]
        try:
            current = self._journal_detours(carried.steps, current, view)
        except HTASError as error:
            return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        return self._take(carried.steps, current, view)

    def _taken_back(self, current: OpenRearrangement) -> dict[str, str]:
        """Pods (uids) of open slots whose twin was taken back, and why."""
        found = {}
        for slot in current.slots:
            if not slot.is_away and MigrationMethod(slot.method).makes_twin:
                why = self.moves.failure(slot.pod.key, slot.pod.uid, current.started_at)
                if why is not None:
                    found[slot.pod.uid] = why
        return found

    def _evicted_instead(self, current: OpenRearrangement, failed: Collection[str]) -> OpenRearrangement:
        """That pods (uids) come to their slots by eviction from now on is written down: a crash forgets the failures.

        Without a controller nobody would start them again: those are asked for once more.
        """
        slots = tuple(
            msgspec.structs.replace(slot, method=MigrationMethod.EVICT.value)
            if slot.pod.uid in failed and slot.pod.owner is not None
            else slot
            for slot in current.slots
        )
        if slots == current.slots:
            return current
        written = self.ports.store.put_rearrangement(msgspec.structs.replace(current, slots=slots))
        reached("rearrange.eviction-journalled")
        return written

    def _spare(self, current: OpenRearrangement, failed: Mapping[str, str]) -> Outcome:
        """Nobody is evicted for the edge's sake whose twin was to be Ready first; pods by uid, with the reasons."""
        pods = {slot.pod.uid: slot.pod for slot in current.slots}
        for uid, why in failed.items():
            pod = pods[uid]
            self.moves.leave_alone(pod.node or "", pod.key, why, self.ports.clock.now())
        first = min(failed, key=lambda uid: pods[uid].key)
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        message = f"{pods[first].key}{others} stays where it is: {failed[first]}"
        return self._cancel(current, Cancelled.MOVE_FAILED, message)

    def _noted(self, before: OpenRearrangement, view: ClusterView) -> OpenRearrangement:
        """The journal brought up to what the cluster shows."""
        seen = progress(before, view, self.ports.clock.now())
        if seen == before or seen.is_complete:
            return seen
        written = self.ports.store.put_rearrangement(seen)
        reached("rearrange.noted")
        return written

    def _take(self, steps: tuple[Step, ...], current: OpenRearrangement, view: ClusterView) -> list[Outcome]:
        pods = {pod.uid: pod for pod in view.pods}
        asked = {step.uid for step in steps}
        self._refused_since = {uid: at for uid, at in self._refused_since.items() if uid in asked}
        under_way = {move.pod for move in self.ports.migration.moving()}
        groups = {node.name: self.policy.group(node.group) for node in view.nodes}
        may_begin = self.policy.migration.at_once - len(under_way)
        calls: list[Call] = []
        refused: dict[str, str] = {}
        for step in steps:
            if step.pod in under_way:
                continue
            pod, group = pods[step.uid], groups.get(step.source)
            if step.target is None or not MigrationMethod(step.method).makes_twin:
                calls.append(partial(self._evict, pod, step, group))
            elif may_begin > 0:
                may_begin -= 1
                calls.append(partial(self._move, pod, step, refused))
        outcomes = self.calls.all(calls)
        return [*outcomes, *self._after_refusals(current, pods, refused)]

    def _after_refusals(
        self, current: OpenRearrangement, pods: Mapping[str, Pod], refused: Mapping[str, str]
    ) -> list[Outcome]:
        """What cannot be moved as it is, is evicted to its slot in its turn; of a suggestion nobody is."""
        if refused and current.is_suggestion:
            return [self._spare(current, refused)]
        if refused:
            try:
                current = self._evicted_instead(current, refused)
            except HTASError as error:
                return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        late = self._refused_too_long()
        return [self._give_up(current, [pods[uid] for uid in late])] if late else []

    def _give_up(self, current: OpenRearrangement, late: list[Pod]) -> Outcome:
        """Not asked for again at once: a webhook that refuses evictions would cancel one suggestion after the other."""
        patience_s = self.policy.timeouts.eviction_s
        for pod in late:
            why = f"{pod.key} could not leave {pod.node} for {patience_s:g} s"
            self.moves.leave_alone(pod.node or "", pod.key, why, self.ports.clock.now())
        why = f"{len(late)} pods could not leave their nodes for {patience_s:g} s"
        return self._cancel(current, Cancelled.EVICTION_REFUSED, why)

    def _journal_detours(
        self, steps: Iterable[Step], current: OpenRearrangement, view: ClusterView
    ) -> OpenRearrangement:
        """That a slot is elsewhere now is written down before its pod leaves for it."""
        detours = {step.uid: step.target for step in steps if step.is_detour}
        if detours:
            current = self.ports.store.put_rearrangement(detoured(current, detours, view.pods))
            reached("rearrange.detour-journalled")
        return current

    def _move(self, pod: Pod, step: Step, refused: dict[str, str]) -> Outcome:
        """Begin a move. That a pod is found not to be movable as it is, is added to `refused`."""
        target = step.target or ""

        def start() -> None:
            try:
                self.ports.migration.start(pod, target, MigrationMethod(step.method))
            except MoveRefusedError as error:
                if error.reason not in PASSING and pod.owner is not None:
                    refused[pod.uid] = str(error)
                raise

        outcome = attempted("move", pod.key, start, f"to {target}")
        return outcome if pod.uid in refused else self._remembered(pod, outcome, "rearrange.moved")

    def _evict(self, pod: Pod, step: Step, group: NodeGroup | None) -> Outcome:
        grace_s = grace_of(pod, group)
        verb = "move" if step.target else "displace"
        message = f"evicted, goes to {step.target}" if step.target else "evicted for more important work"
        outcome = attempted(verb, pod.key, partial(self.ports.cluster.evict, pod, grace_s), message)
        return self._remembered(pod, outcome, "rearrange.evicted")

    def _remembered(self, pod: Pod, outcome: Outcome, point: str) -> Outcome:
        """Since when a pod could not leave."""
        if outcome.status is OutcomeStatus.DONE:
            self._refused_since.pop(pod.uid, None)
            reached(point)
        else:
            self._refused_since.setdefault(pod.uid, self.ports.clock.now())
        return outcome

    def _refused_too_long(self) -> list[str]:
        now, patience_s = self.ports.clock.now(), self.policy.timeouts.eviction_s
        return [uid for uid, at in self._refused_since.items() if now - at >= patience_s]

    def _complete(self, current: OpenRearrangement) -> Outcome:
        took_s = self.ports.clock.now() - current.started_at
        message = f"{current.seated} placed, {current.moved} moved, {current.evicted} evicted in {took_s:.0f} s"
        verb = "suggested" if current.is_suggestion else "rearranged"
        return self._end(current, verb, message, "rearrange.completed")

    def _cancel(self, current: OpenRearrangement, reason: Cancelled, message: str) -> Outcome:
        verb = "cancel-suggestion" if current.is_suggestion else "cancel-rearrangement"
        return self._end(current, verb, f"{reason}: {message}", "rearrange.cancelled")

    def _end(self, current: OpenRearrangement, verb: str, message: str, point: str) -> Outcome:
        """Forget it: no slot is kept any more."""
        try:
            self.ports.store.delete_rearrangement(current.version)
        except HTASError as error:
            return Outcome(verb, SUBJECT, OutcomeStatus.FAILED, f"tried again next cycle: {error}")
        reached(point)
        self._refused_since.clear()
        return Outcome(verb, SUBJECT, OutcomeStatus.DONE, message)


def told(opened: OpenRearrangement) -> str:
    """What is about to be done, in words."""
    moves = sum(slot.source is not None for slot in opened.slots)
    if opened.is_suggestion:
        return f"{_pods(sum(slot.is_aim for slot in opened.slots))} for the edge's sake, {_pods(moves)} in all"
    seats = len(opened.slots) - moves
    return f"{seats} pods are placed by moving {moves} and evicting {len(opened.victims)}"


def _pods(count: int) -> str:
    return "1 pod moves" if count == 1 else f"{count} pods move"
