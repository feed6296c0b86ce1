"""The executor: carries a plan out, action by action, in the plan's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from htas.execution.calls import Calls
from htas.execution.crash_points import reached
from htas.execution.drainer import Drainer
from htas.execution.expectations import Expectations
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.execution.preemption import PreemptionExecutor
from htas.execution.rearrangement import RearrangementExecutor
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Bind, Plan
from htas.model.pods import Pod
from htas.model.proposals import Proposal
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.namespaces import pins
from htas.ports import HTASError, NotYetError


class Executor:
    """Binds, launches, preempts and starts drains. Disruptive actions are checked against a fresh view first."""

    def __init__(
        self,
        ports: Ports,
        calls: Calls,
        machines: Machines,
        preempting: PreemptionExecutor,
        draining: Drainer,
        rearranging: RearrangementExecutor,
        expectations: Expectations,
    ) -> None:
        self._ports = ports
        self._calls = calls
        self._machines = machines
        self._preempting = preempting
        self._draining = draining
        self._rearranging = rearranging
        self._expectations = expectations

    def execute(self, plan: Plan, snapshot: ClusterSnapshot) -> tuple[Outcome, ...]:
        """What became of each action that has ended. A failed call is an outcome, never an exception.

        Binds are not waited for: theirs come with a later cycle, and until then the pods count as placed.
        """
        pods = {pod.key: pod for pod in snapshot.cluster.pods} if plan.bind else {}
        for bind in plan.bind:
            self._bind(bind, pods)
        outcomes = self._machines.launch(plan.launches) + self._preempting.carry_out(plan, snapshot)
        outcomes += self._drain([each for each in plan.proposals if each.gives_back])
        if not snapshot.store_problem:  # each of its steps is journalled
            outcomes += self._rearranging.advance(plan.carry, snapshot, self._expectations.binds)
        for each in plan.proposals:
            if each.reason is ProposalReason.NEARER_TO_USERS:
                outcomes += self._rearranging.suggested(each, snapshot, self._expectations.binds)
        return (*self._calls.done(), *self._machines.cloud.answers(), *outcomes)

    def _bind(self, bind: Bind, pods: Mapping[str, Pod]) -> None:
        self._expectations.expect_bind(bind.pod, bind.node, self._ports.clock.now())
        self._calls.later(partial(self._send_bind, pods[bind.pod], bind.node))

    def _send_bind(self, pod: Pod, node: str) -> Outcome:
        try:
            self._ports.cluster.bind(pod, node)
        except HTASError as error:
            self._expectations.failed(pod.key, self._ports.clock.now())
            status = OutcomeStatus.DROPPED if isinstance(error, NotYetError) else OutcomeStatus.FAILED
            return Outcome(Action.BIND, pod.key, status, str(error), target=node)
        reached("bind.sent")
        return Outcome(Action.BIND, pod.key, OutcomeStatus.DONE, node, target=node)

    def _drain(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        if not proposals:
            return []
        try:
            view = pins.within_limits(self._ports.cluster.observe(), self._draining.policy, self._ports.clock.now())
        except HTASError as error:
            dropped = partial(Outcome, status=OutcomeStatus.DROPPED, message=str(error))
            return [dropped(Action.DRAIN, release.node) for each in proposals for release in each.gives_back]
        return [self._draining.start(each, release, view) for each in proposals for release in each.gives_back]
