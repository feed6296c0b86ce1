"""The executor: carries a plan out, action by action, in the plan's order."""

from __future__ import annotations

from collections.abc import Mapping
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
        outcomes = self._machines.launch(plan.launch) + self._preempting.carry_out(plan, snapshot)
        if plan.remove:
            outcomes += self._drain(plan)
        if not snapshot.store_problem:  # each of its steps is journalled
            outcomes += self._rearranging.advance(plan.carry, snapshot, self._expectations.binds)
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

    def _drain(self, plan: Plan) -> list[Outcome]:
        try:
            view = pins.within_limits(self._ports.cluster.observe(), self._draining.policy, self._ports.clock.now())
        except HTASError as error:
            return [Outcome(Action.DRAIN, item.node, OutcomeStatus.DROPPED, str(error)) for item in plan.remove]
        return [
            self._draining.start(item, [move for move in plan.migrate if move.source == item.node], view)
            for item in plan.remove
        ]
