"""A rearrangement: a better placement that was found is carried out step by step, or cancelled with the reason.

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
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.execution.calls import Calls
from htas.execution.crash_points import reached
from htas.execution.evictor import Departures, Evictor
from htas.execution.machines import Machines
from htas.execution.moves_seen import MovesSeen, Retries
from htas.execution.ports import Ports
from htas.model.migrations import Refusal as MoveRefusal
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Carrying
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import Invalid, OutcomeReason, ProposalReason
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.slots import progress
from htas.planning.disrupt.rearrangement.advance import advance_on
from htas.planning.disrupt.rearrangement.validity import LOST, after_detour, open_rearrangement
from htas.ports import HTASError, MoveRefusedError

PASSING = frozenset({MoveRefusal.NOT_RUNNING, MoveRefusal.TARGET_NOT_READY, MoveRefusal.NO_ROOM})
"""Refusals that say nothing of the pod: it is tried again, or the planner gives the whole up."""


@dataclass(slots=True)
class RearrangementExecutor:
    """Begins, carries on, and ends the one rearrangement there is at a time."""

    ports: Ports
    calls: Calls
    policy: Policy
    moves: MovesSeen
    evictor: Evictor
    retries: Retries
    machines: Machines

    def begin(self, found: Proposal, snapshot: ClusterSnapshot) -> tuple[OpenRearrangement | None, Outcome]:
        """Journal what was found, if it is still valid and better on this snapshot; nothing is moved yet."""
        opened = open_rearrangement(found, snapshot, self.policy, snapshot.taken_at)
        action = Action.SUGGEST if found.reason is ProposalReason.NEARER_TO_USERS else Action.REARRANGE
        if isinstance(opened, Invalid):
            why = f"{opened.reason}: {opened.message}"
            return None, Outcome(action, CLUSTER, OutcomeStatus.DROPPED, why, opened.reason)
        try:
            written = self.ports.store.put_disruption(opened)
        except HTASError as error:
            return None, Outcome(action, CLUSTER, OutcomeStatus.FAILED, str(error))
        reached("rearrange.journalled")
        self.retries.keep(written.id, ())
        return written, Outcome(action, CLUSTER, OutcomeStatus.DONE, summary(written))

    def advance(self, carrying: Carrying, snapshot: ClusterSnapshot, binds: Mapping[str, str]) -> list[Outcome]:
        """Note what is done, and take the steps that a plan says are next; `binds` are those not yet observed."""
        if snapshot.rearrangement is None:
            return []
        if carrying.cancel is not None:
            return [self._cancel(snapshot.rearrangement, carrying.cancel, carrying.message)]
        try:
            view = self.machines.observed()
            current = self._noted(snapshot.rearrangement, view)
        except HTASError as error:
            return _goes_on_next(error)
        if current.lost:
            return [self._cancel(current, OutcomeReason.CONTRADICTED, LOST)]
        if current.is_complete:
            return [self._complete(current)]
        if current.is_suggestion and (failed := self._taken_back(current)):
            return [self._spare(current, failed)]
        return self._next_steps(current, view, snapshot, binds) if carrying.steps else []

    def suggested(self, found: Proposal, snapshot: ClusterSnapshot, binds: Mapping[str, str]) -> list[Outcome]:
        """Begin what a plan proposes of itself, and take it as far as it goes at once."""
        snapshot = msgspec.structs.replace(snapshot, expected_binds=dict(binds))
        opened, outcome = self.begin(found, snapshot)
        if opened is None:
            return [outcome]
        try:
            view = self.machines.observed()
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
            return _goes_on_next(error)
        fresh = msgspec.structs.replace(
            snapshot,
            cluster=view,
            rearrangement=current,
            expected_binds=dict(binds),
            moves=tuple(self.ports.migration.moving()),
        )
        carried = advance_on(fresh, self.policy, self.ports.clock.now()).carrying
        if carried.cancel is not None:
            return [self._cancel(current, carried.cancel, carried.message)]
        try:
            current = self._journal_detours(carried.steps, current, view)
        except HTASError as error:
            return _goes_on_next(error)
        return self._take(carried.steps, current, view)

    def _taken_back(self, current: OpenRearrangement) -> dict[str, str]:
        """Pods (uids) of open slots whose twin was taken back, and why."""
        found = {}
        for slot in current.slots:
            if not slot.is_away and slot.method.makes_twin:
                why = self.moves.failure(slot.pod.key, slot.pod.uid, current.started_at)
                if why is not None:
                    found[slot.pod.uid] = why
        return found

    def _evicted_instead(self, current: OpenRearrangement, failed: Collection[str]) -> OpenRearrangement:
        """That pods (uids) come to their slots by eviction from now on is written down: a crash forgets the failures.

        Without a controller nobody would start them again: those are asked for once more.
        """
        slots = tuple(
            msgspec.structs.replace(slot, method=MigrationMethod.EVICT)
            if slot.pod.uid in failed and slot.pod.owner is not None
            else slot
            for slot in current.slots
        )
        if slots == current.slots:
            return current
        written = self.ports.store.put_disruption(msgspec.structs.replace(current, slots=slots))
        reached("rearrange.eviction-journalled")
        return written

    def _spare(self, current: OpenRearrangement, failed: Mapping[str, str]) -> Outcome:
        """Nobody is evicted for the edge's sake whose twin was to be Ready first; pods by uid, with the reasons."""
        pods = {slot.pod.uid: slot.pod for slot in current.slots}
        for uid, why in failed.items():
            pod = pods[uid]
            self.retries.leave_alone(pod.node or "", pod.key, why, self.ports.clock.now())
        first = min(failed, key=lambda uid: pods[uid].key)
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        message = f"{pods[first].key}{others} stays where it is: {failed[first]}"
        return self._cancel(current, OutcomeReason.MOVE_FAILED, message)

    def _noted(self, before: OpenRearrangement, view: ClusterView) -> OpenRearrangement:
        """The journal brought up to what the cluster shows."""
        seen = progress(before, view, self.ports.clock.now())
        if seen == before or seen.is_complete:
            return seen
        written = self.ports.store.put_disruption(seen)
        reached("rearrange.noted")
        return written

    def _take(self, steps: tuple[Move, ...], current: OpenRearrangement, view: ClusterView) -> list[Outcome]:
        pods = {pod.uid: pod for pod in view.pods}
        self.retries.keep(current.id, {step.uid for step in steps})
        departures = self.evictor.departures(view.nodes)
        noted = partial(self._note, current.id, departures)
        calls = [departures.call(pods[step.uid], step, partial(noted, pods[step.uid])) for step in steps]
        outcomes = self.calls.all([call for call in calls if call is not None])
        refused = {uid: str(error) for uid, error in departures.refused.items() if _says_of_pod(error, pods[uid])}
        return [*outcomes, *self._after_refusals(current, pods, refused)]

    def _note(self, entry: str, departures: Departures, pod: Pod, outcome: Outcome) -> None:
        """Since when a pod could not leave; not of one that is to be evicted instead from now on."""
        error = departures.refused.get(pod.uid)
        if error is None or not _says_of_pod(error, pod):
            self.retries.note(entry, pod.uid, outcome, self.ports.clock.now())

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
                return _goes_on_next(error)
        late = self.retries.stuck(current.id, self.ports.clock.now())
        return [self._give_up(current, [pods[uid] for uid in late])] if late else []

    def _give_up(self, current: OpenRearrangement, late: list[Pod]) -> Outcome:
        """Not asked for again at once: a webhook that refuses evictions would cancel one suggestion after the other."""
        patience_s = self.policy.timeouts.eviction_s
        for pod in late:
            why = f"{pod.key} could not leave {pod.node} for {patience_s:g} s"
            self.retries.leave_alone(pod.node or "", pod.key, why, self.ports.clock.now())
        who = "1 pod could not leave its node" if len(late) == 1 else f"{len(late)} pods could not leave their nodes"
        why = f"{who} for {patience_s:g} s"
        return self._cancel(current, OutcomeReason.EVICTION_REFUSED, why)

    def _journal_detours(
        self, steps: Iterable[Move], current: OpenRearrangement, view: ClusterView
    ) -> OpenRearrangement:
        """That a slot is elsewhere now is written down before its pod leaves for it."""
        detours = {step.uid: step.target for step in steps if step.reason is MoveReason.DETOUR}
        if detours:
            current = self.ports.store.put_disruption(after_detour(current, detours, view.pods))
            reached("rearrange.detour-journalled")
        return current

    def _complete(self, current: OpenRearrangement) -> Outcome:
        took_s = self.ports.clock.now() - current.started_at
        message = f"{current.seated} placed, {current.moved} moved, {current.evicted} evicted in {took_s:.0f} s"
        action = Action.SUGGESTED if current.is_suggestion else Action.REARRANGED
        return self._end(current, action, message, "rearrange.completed")

    def _cancel(self, current: OpenRearrangement, reason: OutcomeReason, message: str) -> Outcome:
        action = Action.CANCEL_SUGGESTION if current.is_suggestion else Action.CANCEL_REARRANGEMENT
        return self._end(current, action, f"{reason}: {message}", "rearrange.cancelled", reason)

    def _end(
        self,
        current: OpenRearrangement,
        action: Action,
        message: str,
        point: str,
        reason: OutcomeReason | None = None,
    ) -> Outcome:
        """Forget it: no slot is kept any more."""
        try:
            self.ports.store.delete_disruption(current.id, current.version)
        except HTASError as error:
            return Outcome(action, CLUSTER, OutcomeStatus.FAILED, f"tried again next cycle: {error}")
        reached(point)
        return Outcome(action, CLUSTER, OutcomeStatus.DONE, message, reason)


def _says_of_pod(error: MoveRefusedError, pod: Pod) -> bool:
    """Whether a refusal holds for as long as the pod is as it is; without a controller it is asked for once more."""
    return error.reason not in PASSING and pod.owner is not None


def summary(opened: OpenRearrangement) -> str:
    """What is about to be done, in words."""
    moves = sum(slot.source is not None for slot in opened.slots)
    if opened.is_suggestion:
        return f"{_pods(sum(slot.is_aim for slot in opened.slots))} for the edge's sake, {_pods(moves)} in all"
    if opened.why:
        return opened.why
    seats = len(opened.slots) - moves
    placed = "1 pod is" if seats == 1 else f"{seats} pods are"
    return f"{placed} placed by moving {moves} and evicting {len(opened.victims)}"


def _pods(count: int) -> str:
    return "1 pod moves" if count == 1 else f"{count} pods move"


def _goes_on_next(error: HTASError) -> list[Outcome]:
    return [Outcome(Action.REARRANGE, CLUSTER, OutcomeStatus.FAILED, f"goes on next cycle: {error}")]
