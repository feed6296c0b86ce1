"""The executor: carries a plan out, action by action, in the plan's order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from htas.execution.calls import Calls
from htas.execution.crash_points import reached
from htas.execution.disruptions import Disruptions
from htas.execution.expectations import Expectations
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Bind, Plan
from htas.model.pods import Pod
from htas.model.snapshot import ClusterSnapshot
from htas.ports import HTASError, NotYetError


class Executor:
    """Binds and launches, and has disruptions begun and gone on with."""

    def __init__(
        self,
        ports: Ports,
        calls: Calls,
        machines: Machines,
        disruptions: Disruptions,
        expectations: Expectations,
    ) -> None:
        self._ports = ports
        self._calls = calls
        self._machines = machines
        self._disruptions = disruptions
        self._expectations = expectations

    def execute(self, plan: Plan, snapshot: ClusterSnapshot) -> tuple[Outcome, ...]:
        """What became of each action that has ended. A failed call is an outcome, never an exception.

        Binds are not waited for: theirs come with a later cycle, and until then the pods count as placed.
        """
        pods = {pod.key: pod for pod in snapshot.cluster.pods} if plan.bind else {}
        for bind in plan.bind:
            self._bind(bind, pods)
        outcomes = self._machines.launch(plan.launches) + self._disruptions.begin(plan, snapshot)
        if not snapshot.store_problem:  # each of its steps is journalled
            outcomes += self._disruptions.rearrangement.advance(plan.carry, snapshot, self._expectations.binds)
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
