"""The drainer: a node is closed, emptied and released; or opened again, with the reason.

Order: drain journalled → taint and cordon → move or evict → machine deleted, its claim journalled as released → Node
object deleted (`machines.py`) → drain cleared from the journal. Whatever step a crash falls on, the next cycle finds
the drain in the journal and goes on, or undoes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from htas.execution.calls import Call, Calls, attempted
from htas.execution.crash_points import reached
from htas.execution.evictor import Departures, Evictor, first_to_leave
from htas.execution.identity import is_strange
from htas.execution.machines import Machines
from htas.execution.moves_seen import MovesSeen, Retries
from htas.execution.ports import Ports
from htas.execution.validation import Validator
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.disruptions import Drain, drain_id, drains_of
from htas.model.migrations import Refusal
from htas.model.moves import Move
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.reasons import Invalid, OutcomeReason
from htas.model.snapshot import ClusterView
from htas.planning.eligibility.drain_rules import cannot_be_read
from htas.ports import ConflictError, HTASError, NotFoundError, TransientError

FORGOTTEN = Invalid(OutcomeReason.NOT_JOURNALLED, "a drain without a journal entry")


@dataclass(slots=True)
class Drainer:
    """Begins drains, takes them further each cycle, and undoes those that cannot finish."""

    ports: Ports
    calls: Calls
    policy: Policy
    machines: Machines
    moves: MovesSeen
    evictor: Evictor
    retries: Retries

    def begin(self, proposal: Proposal) -> Outcome:
        """Begin to empty the node of a proposal, which has been found right."""
        [release] = proposal.gives_back
        node, reason = release.node, proposal.reason.value
        claim = self._claim(release.claim)
        if claim is None:
            gone = OutcomeReason.CLAIM_GONE
            return Outcome(Action.DRAIN, node, OutcomeStatus.DROPPED, "its claim is gone", gone)
        drain = Drain(node, release.claim, reason, self.ports.clock.now(), proposal.moves)
        try:
            self.ports.store.put_disruption(drain)
            reached("drain.journalled")
            self.machines.put(claim, ClaimState.DRAINING, reason)
            reached("drain.claimed")
            self.ports.cluster.set_draining(node, True)
            reached("drain.tainted")
        except HTASError as error:
            return Outcome(Action.DRAIN, node, OutcomeStatus.FAILED, f"taken up again next cycle: {error}")
        return Outcome(Action.DRAIN, node, OutcomeStatus.DONE, proposal.message or reason)

    def _claim(self, claim_id: str) -> NodeClaim | None:
        return next((claim for claim in self.ports.store.claims() if claim.id == claim_id), None)

    def advance(self, view: ClusterView, instances: Iterable[Instance], *, can_release: bool = True) -> list[Outcome]:
        """Take every drain one step further; repair nodes that bear the taint without a drain in the journal.

        With `can_release` false the cloud is away: nodes are emptied, and their machines wait.
        """
        outcomes: list[Outcome] = []
        calls: list[Call] = []
        under_way = self.machines.cloud.under_way
        queue = self.ports.store.disruptions()
        drains = {drain.node: drain for drain in drains_of(queue)}
        self.retries.forget_all_but({each.id for each in queue})
        outcomes += self.moves.look()
        departures = self.evictor.departures(view.nodes)
        validator = Validator(view, self.policy, self.ports.clock.now(), departures.under_way)
        going = {instance.claim for instance in instances if instance.state is InstanceState.DELETING}
        going |= under_way | {each.claim for each in instances if is_strange(each, self.policy.cluster)}
        for drain in drains.values():
            if drain.claim not in going:
                told, begun = self._step(drain, validator, departures, can_release)
                outcomes += told
                calls += begun
        ending = {claim.id for claim in self.ports.store.claims() if claim.state is ClaimState.FAILED}
        for node in view.nodes:
            is_ours = node.cluster == self.policy.cluster and node.claim not in ending
            if is_ours and node.is_draining and node.name not in drains:
                outcomes.append(self._undo(node.name, None, None, FORGOTTEN))
        outcomes += self.calls.all(calls)
        self._note_refusals(departures, view.pods)
        return outcomes

    def _step(
        self, drain: Drain, validator: Validator, departures: Departures, can_release: bool
    ) -> tuple[list[Outcome], list[Call]]:
        """What was done about a drain, and the calls to make for it beside those of the others."""
        claim = self._claim(drain.claim)
        node, view = validator.nodes.get(drain.node), validator.view
        if claim is None:
            self.ports.store.delete_disruption(drain.id, drain.version)
            return [], []
        if claim.state is not ClaimState.DRAINING:
            return [self._resume(drain, claim)], []
        if node is None:
            there = self.machines.identity.of_claim.get(drain.claim)
            if there is not None:
                renamed = Invalid(OutcomeReason.RENAMED, f"its machine has registered as node {there.name} since")
                return [self._undo(there.name, drain, claim, renamed)], []
            if can_release:  # somebody deleted the Node object: its machine must go all the same
                self.machines.release(claim)
            return [], []
        if not node.is_draining or not node.is_unschedulable:
            return [attempted(Action.DRAIN, drain.node, lambda: self.ports.cluster.set_draining(drain.node, True))], []
        held = validator.held(drain.node)
        if not held and drain.node not in view.unread:
            reached("drain.emptied")
            if node.held_by is not None:
                held_back = Invalid(OutcomeReason.PROTECTED, f"the node is annotated {node.held_by}")
                return [self._undo(drain.node, drain, claim, held_back)], []
            return self._emptied(drain, claim, validator, can_release), []
        why = self._hopeless(drain, node, held, validator)
        if why is not None:
            return [self._undo(drain.node, drain, claim, why)], []
        return [], self._moves_on(drain, held, departures)

    def _emptied(self, drain: Drain, claim: NodeClaim, validator: Validator, can_release: bool) -> list[Outcome]:
        """Have the machine of an empty node deleted; not while pods run on another Node object of it."""
        if claim.leaving_since is not None:  # the answer came after this cycle had looked which calls are under way
            return []
        why = self.machines.gate.runs_on(validator.view, claim.instance or "", claim.id, claim.node)
        if why is None:
            if can_release:
                self.machines.release(claim)
            return []
        if validator.now - drain.started_at < self.policy.timeouts.drain_s:
            return []
        return [self._undo(drain.node, drain, claim, Invalid(OutcomeReason.PODS_RUN, why))]

    def _hopeless(self, drain: Drain, node: Node, held: Sequence[Pod], validator: Validator) -> Invalid | None:
        """Why a drain cannot finish, or must not go on."""
        now, timeouts, view = validator.now, self.policy.timeouts, validator.view
        strangers = sorted({pod.key for pod in held} - {move.pod for move in drain.moves})
        if strangers:
            return Invalid(OutcomeReason.POD_CAME, f"{strangers[0]} was bound to the node since")
        if now - drain.started_at >= timeouts.drain_s:
            unread = f": {cannot_be_read(view.unread[drain.node])}" if drain.node in view.unread else ""
            return Invalid(OutcomeReason.TIMED_OUT, f"not empty after {timeouts.drain_s:g} s{unread}")
        failed = self._failed_move(drain, held)
        if failed is not None:
            self.retries.leave_alone(drain.node, *failed, now, of_drain=True)
            return Invalid(OutcomeReason.MOVE_FAILED, f"{failed[0]} could not be moved: {failed[1]}")
        if self.retries.stuck(drain.id, now):
            why = f"none of its pods could be evicted for {timeouts.eviction_s:g} s"
            return Invalid(OutcomeReason.EVICTION_REFUSED, why)
        return validator.promise(node)

    def _failed_move(self, drain: Drain, held: Sequence[Pod]) -> tuple[str, str] | None:
        """A pod that could not be moved after every attempt, or cannot be as it is; and why."""
        for pod in held:
            why = self.moves.failure(pod.key, pod.uid, drain.started_at)
            if why is not None:
                return pod.key, why
        return self.retries.refused(drain.id)

    def _resume(self, drain: Drain, claim: NodeClaim) -> Outcome:
        """A crash fell between the drain's journal entry and its claim's."""
        if claim.state is not ClaimState.READY:
            return self._undo(
                drain.node, drain, None, Invalid(OutcomeReason.CLAIM_GONE, f"its machine is {claim.state}")
            )
        return attempted(Action.DRAIN, drain.node, lambda: self.machines.put(claim, ClaimState.DRAINING, drain.reason))

    def _moves_on(self, drain: Drain, held: Sequence[Pod], departures: Departures) -> list[Call]:
        """Calls that move or evict what is still there, system-critical pods last. All may be repeated."""
        moves = {move.pod: move for move in drain.moves}
        leaving = [(pod, moves[pod.key]) for pod in first_to_leave(held) if not pod.is_terminating]
        calls = (departures.call(pod, move, partial(self._note, move)) for pod, move in leaving)
        return [call for call in calls if call is not None]

    def _note(self, move: Move, outcome: Outcome) -> None:
        """Since when none of a node's pods could be evicted; a move that is refused is told of its pod."""
        if not move.method.makes_twin:
            self.retries.note(drain_id(move.source), move.source, outcome, self.ports.clock.now())

    def _note_refusals(self, departures: Departures, pods: Iterable[Pod]) -> None:
        for pod in pods:
            error = departures.refused.get(pod.uid)
            if error is not None and error.reason is not Refusal.NOT_RUNNING:  # it may run by the next cycle
                self.retries.refuse(drain_id(pod.node or ""), pod.key, str(error))

    def _undo(self, node: str, drain: Drain | None, claim: NodeClaim | None, why: Invalid) -> Outcome:
        """Open a node again and forget its drain, if that is known."""
        try:
            self.ports.cluster.set_draining(node, False)
        except NotFoundError:
            if claim is not None:  # the next step releases the machine that has lost its node
                return Outcome(Action.UNDO_DRAIN, node, OutcomeStatus.FAILED, "the node is gone")
        except (TransientError, ConflictError) as error:
            return Outcome(Action.UNDO_DRAIN, node, OutcomeStatus.FAILED, f"tried again next cycle: {error}")
        try:
            if claim is not None and claim.state is ClaimState.DRAINING:
                self.machines.put(claim, ClaimState.READY, f"drain given up: {why.message}")
        except (TransientError, ConflictError) as error:
            return Outcome(Action.UNDO_DRAIN, node, OutcomeStatus.FAILED, f"tried again next cycle: {error}")
        reached("drain.undone")
        if drain is not None:
            self.ports.store.delete_disruption(drain.id, drain.version)
        return Outcome(Action.UNDO_DRAIN, node, OutcomeStatus.DONE, why.message, why.reason)
