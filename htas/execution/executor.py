"""The executor: carries a plan out, action by action, in the plan's order.

    bind → launch → each proposal: validate (validation.py) → journal → hold (planning/cluster/slots.py)
    → move or evict (evictor.py) → done, or cancelled; or dropped at once, with a reason

How what has been begun goes on is told by its kind: `drainer.py` and `rearrangement.py`. A preemption has no entry in
the journal: nomination written on the pod → victims evicted → nominations that give way there taken back. A crash in
between leaves a nomination, which the next plan honours or finds lapsed. Machines that are bought to replace others are
waited for by their claims: once they are Ready, the rest is proposed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from htas.execution.calls import Calls, attempted_once
from htas.execution.crash_points import reached
from htas.execution.drainer import Drainer
from htas.execution.evictor import Evictor
from htas.execution.expectations import Expectations
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.execution.rearrangement import RearrangementExecutor
from htas.execution.steps import Steps
from htas.execution.validation import Validator
from htas.model.defects import Step
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Bind, Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.reasons import OutcomeReason, ProposalReason, Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.ports import HTASError, NotYetError


@dataclass(slots=True)
class Executor:
    """Binds and launches, and begins what plans propose, each where it is still right."""

    ports: Ports
    calls: Calls
    policy: Policy
    machines: Machines
    expectations: Expectations
    evictor: Evictor
    drainer: Drainer
    rearrangement: RearrangementExecutor
    steps: Steps

    def execute(self, plan: Plan, snapshot: ClusterSnapshot) -> tuple[Outcome, ...]:
        """What became of each action that has ended. A failed call is an outcome, never an exception.

        Binds are not waited for: theirs come with a later cycle, and until then the pods count as placed. What fails on
        a defect costs none of the rest.
        """
        outcomes_of, launch = self.steps.outcomes, self.machines.launch
        pods = {pod.key: pod for pod in snapshot.cluster.pods} if plan.bind else {}
        for bind in plan.bind:
            self._bind(bind, pods)
        owners_of = plan.memory.launches.owners_of
        outcomes = outcomes_of(Step.LAUNCHES, partial(launch, plan.launches, owners_of, plan.taken_at))
        outcomes += outcomes_of(Step.PROPOSALS, partial(self.begin, plan, snapshot))
        if not snapshot.store_problem and not snapshot.defects:  # each of its steps is journalled
            outcomes += outcomes_of(Step.REARRANGEMENT, partial(self._advance, plan, snapshot))
        answers = outcomes_of(Step.ANSWERS, self.machines.cloud.answers)
        return (*outcomes_of(Step.ANSWERS, self.calls.done), *answers, *outcomes)

    def _advance(self, plan: Plan, snapshot: ClusterSnapshot) -> list[Outcome]:
        return self.rearrangement.advance(plan.carry, snapshot, self.expectations.binds)

    def _bind(self, bind: Bind, pods: Mapping[str, Pod]) -> None:
        attempt, expect = self.steps.attempt, self.expectations.expect_bind
        attempt(Step.EXPECTATIONS, lambda: expect(bind.pod, bind.node, self.ports.clock.now()), None)
        send = partial(self._send_bind, bind, pods)
        attempt(Step.BINDS, partial(self.calls.later, send), None)

    def _send_bind(self, bind: Bind, pods: Mapping[str, Pod]) -> Outcome:
        try:
            self.ports.cluster.bind(pods[bind.pod], bind.node, bind.deletion_cost)
        except Exception as error:
            self.expectations.failed(bind.pod, self.ports.clock.now())
            if not isinstance(error, HTASError):  # it must not swallow the answers of other calls
                self.steps.note(Step.BINDS, error)
            status = OutcomeStatus.DROPPED if isinstance(error, NotYetError) else OutcomeStatus.FAILED
            return Outcome(Action.BIND, bind.pod, status, str(error), target=bind.node)
        reached("bind.sent")
        return Outcome(Action.BIND, bind.pod, OutcomeStatus.DONE, bind.node, target=bind.node)

    def begin(self, plan: Plan, snapshot: ClusterSnapshot) -> list[Outcome]:
        """Begin each proposal of a plan that is still right, on one view of the present."""
        proposals = [each for each in plan.proposals if not each.launches]  # those wait for their machines
        if not proposals:
            return []
        now = self.ports.clock.now()
        try:
            view = self.machines.observed()
        except HTASError as error:
            return [outcome for each in proposals for outcome in _dropped(each, str(error))]
        meant = {pod.key: pod.uid for pod in snapshot.cluster.pods}
        validator = Validator(view, self.policy, now, self.evictor.under_way(), meant)
        gives_way = {item.pod for item in plan.unplaced if item.reason is Unplaced.GIVES_WAY}
        outcomes: list[Outcome] = []
        for each in sorted(proposals, key=_turn):
            wrong = validator.why_not(each)
            if wrong is not None:
                outcomes += _dropped(each, wrong.message, wrong.reason)
            elif each.reason is ProposalReason.PREEMPTED:
                outcomes += self._preempt(each, validator, gives_way)
            elif each.gives_back:
                outcomes.append(self.drainer.begin(each))
            else:
                outcomes += self.rearrangement.suggested(each, snapshot, self.expectations.binds)
        return outcomes

    def _preempt(self, proposal: Proposal, validator: Validator, gives_way: Iterable[str]) -> list[Outcome]:
        """Nominate the pod that room is made for, and evict its victims."""
        [seat] = proposal.seats
        pod = validator.pods[seat.pod]
        nominated = self._nominate(pod, seat.node)
        if nominated.status is not OutcomeStatus.DONE:
            return [nominated]
        reached("preempt.nominated")
        victims, message = validator.victims(proposal), f"for {pod.key} of priority {pod.priority} on {seat.node}"
        node = validator.nodes.get(seat.node)
        group = self.policy.group(node.group) if node is not None else None
        evict = partial(self.evictor.preempt, group=group, message=message)
        outcomes = self.calls.all([partial(evict, victim, breaks_budget=breaks) for victim, breaks in victims])
        for (victim, _), outcome in zip(victims, outcomes, strict=True):
            if outcome.status is OutcomeStatus.DONE:
                self.expectations.expect_eviction(victim.uid, self.ports.clock.now())
        lesser = self._lesser_nominees(validator, gives_way, pod, seat.node)
        outcomes += [self._nominate(other, None) for other in lesser]
        reached("preempt.done")
        return [nominated, *outcomes]

    def _nominate(self, pod: Pod, node: str | None) -> Outcome:
        act, target = partial(self.ports.cluster.nominate, pod, node), node or ""
        outcome = attempted_once(Action.NOMINATE, pod.key, act, target, target)
        if outcome.status is OutcomeStatus.DONE:
            self.expectations.expect_nomination(pod.uid, node, self.ports.clock.now())
        return outcome

    def _lesser_nominees(self, validator: Validator, gives_way: Iterable[str], pod: Pod, node: str) -> Iterable[Pod]:
        """Our own pods nominated to a node that give way to a pod; other schedulers take theirs back themselves."""
        for key in sorted(gives_way):
            other = validator.present(key)
            if other is None or other.node is not None or other.scheduler != self.policy.scheduler_name:
                continue
            if other.nominated_node == node and other.priority < pod.priority:
                yield other


def _turn(proposal: Proposal) -> tuple[int, Sequence[str]]:
    """Room for those who wait first; then nodes that are given back, by name; then what is moved for users."""
    kind = 0 if proposal.seats else 1 if proposal.releases else 2
    return kind, [release.node for release in proposal.releases]


def _dropped(proposal: Proposal, message: str, reason: OutcomeReason | None = None) -> list[Outcome]:
    """What is told of a proposal that is not begun: of each pod that stays, or each node."""
    dropped: Mapping[Action, Sequence[str]] = {Action.SUGGEST: (CLUSTER,)}
    if proposal.reason is ProposalReason.INSTEAD_OF_LAUNCH:
        dropped = {Action.REARRANGE: (CLUSTER,)}
    elif proposal.reason is ProposalReason.PREEMPTED:
        dropped = {Action.PREEMPT: [move.pod for move in proposal.moves]}
    elif proposal.releases:
        dropped = {Action.DRAIN: [release.node for release in proposal.releases]}
    return [
        Outcome(action, subject, OutcomeStatus.DROPPED, message, reason)
        for action, subjects in dropped.items()
        for subject in subjects
    ]
