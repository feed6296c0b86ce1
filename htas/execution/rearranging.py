"""Rearranging: a better placement that was found is carried out step by step, or cancelled with the reason.

Order: journal → for each pod that leaves: its slot has room → moved or evicted → its replacement bound → noted in
the journal → journal cleared. What is done is read off the cluster, so that whatever step a crash falls on, the next
cycle goes on from there. What turns out not to be movable with its progress is evicted to its slot, if somebody
starts it again. Who leaves now is the planner's to say (htas.planning.rearrangement.carrying), and is asked again on a
fresh view just before. Cancelled, it evicts nobody any more: pods that have left are ordinary waiting pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from htas.planning.rearrangement.carrying import begun, carried_on, detoured
from htas.planning.rearrangement.slots import progress
from htas.planning.rearrangement.validity import LOST, Refusal
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
            view = self.ports.cluster.observe()
            current = self._noted(snapshot.rearrangement, view)
        except HTASError as error:
            return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        if current.lost:
            return [self._cancel(current, Cancelled.CONTRADICTED, LOST)]
        if current.is_complete:
            return [self._complete(current)]
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
            view = self.ports.cluster.observe()
        except HTASError:
            return [outcome]  # goes on next cycle
        return [outcome, *self._next_steps(opened, view, snapshot, binds)]

    def _next_steps(
        self, current: OpenRearrangement, view: ClusterView, snapshot: ClusterSnapshot, binds: Mapping[str, str]
    ) -> list[Outcome]:
        """Who leaves now is asked again on what the cluster shows now."""
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
        return self._take(carried.steps, current, view)

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
        self._refused_since = {uid: at for uid, at in self._refused_since.items() if uid in pods}
        try:
            current = self._journal_detours(steps, current, view)
        except HTASError as error:
            return [Outcome("rearrange", SUBJECT, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
        under_way = {move.pod for move in self.ports.migration.moving()}
        groups = {node.name: self.policy.group(node.group) for node in view.nodes}
        may_begin = self.policy.migration.at_once - len(under_way)
        calls: list[Call] = []
        for step in steps:
            if step.pod in under_way:
                continue
            pod, group = pods[step.uid], groups.get(step.source)
            if self._is_moved(pod, step, current):
                if may_begin > 0:
                    may_begin -= 1
                    calls.append(partial(self._move, pod, step, group))
            else:
                calls.append(partial(self._evict, pod, step, group))
        outcomes = self.calls.all(calls)
        refused = self._refused_too_long()
        return outcomes if refused is None else [*outcomes, self._cancel(current, Cancelled.EVICTION_REFUSED, refused)]

    def _journal_detours(
        self, steps: Iterable[Step], current: OpenRearrangement, view: ClusterView
    ) -> OpenRearrangement:
        """That a slot is elsewhere now is written down before its pod leaves for it."""
        detours = {step.uid: step.target for step in steps if step.is_detour}
        if detours:
            current = self.ports.store.put_rearrangement(detoured(current, detours, view.pods))
            reached("rearrange.detour-journalled")
        return current

    def _is_moved(self, pod: Pod, step: Step, current: OpenRearrangement) -> bool:
        """Whether a pod keeps its progress. Once that was taken back, its controller starts it at the target."""
        if step.target is None or not MigrationMethod(step.method).keeps_progress:
            return False
        return pod.owner is None or self.moves.failure(pod.key, pod.uid, current.started_at) is None

    def _move(self, pod: Pod, step: Step, group: NodeGroup | None) -> Outcome:
        """Begin a move; a pod that is found not to be movable as it is, is evicted to its slot."""
        target, refused = step.target or "", []

        def start() -> None:
            try:
                self.ports.migration.start(pod, target, MigrationMethod(step.method))
            except MoveRefusedError as error:
                if error.reason in PASSING or pod.owner is None:
                    raise
                refused.append(error.reason)

        outcome = attempted("move", pod.key, start, f"to {target}")
        if refused:
            return self._evict(pod, step, group, f" ({refused[0]})")
        return self._remembered(pod, outcome, "rearrange.moved")

    def _evict(self, pod: Pod, step: Step, group: NodeGroup | None, why: str = "") -> Outcome:
        grace_s = grace_of(pod, group)
        verb = "move" if step.target else "displace"
        message = f"evicted{why}, goes to {step.target}" if step.target else "evicted for more important work"
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

    def _refused_too_long(self) -> str | None:
        now, patience_s = self.ports.clock.now(), self.policy.timeouts.eviction_s
        late = [uid for uid, at in self._refused_since.items() if now - at >= patience_s]
        return f"{len(late)} pods could not leave their nodes for {patience_s:g} s" if late else None

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
