"""The executor: carries a plan out, action by action, in the plan's order."""

from __future__ import annotations

from collections.abc import Mapping

from htas.execution.draining import Draining
from htas.execution.expectations import Expectations
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.plan import Bind, Plan
from htas.model.pods import Pod
from htas.model.record import Outcome, OutcomeStatus
from htas.model.snapshot import ClusterSnapshot
from htas.ports import HTASError


class Executor:
    """Binds, launches and starts drains. Disruptive actions are checked against a fresh view first."""

    def __init__(self, ports: Ports, machines: Machines, draining: Draining, expectations: Expectations) -> None:
        self._ports = ports
        self._machines = machines
        self._draining = draining
        self._expectations = expectations

    def execute(self, plan: Plan, snapshot: ClusterSnapshot) -> tuple[Outcome, ...]:
        """What became of each action. A failed call is an outcome, never an exception."""
        pods = {pod.key: pod for pod in snapshot.cluster.pods}
        outcomes = [self._bind(bind, pods) for bind in plan.bind]
        outcomes += [self._machines.launch(launch) for launch in plan.launch]
        if plan.remove:
            outcomes += self._drain(plan)
        return tuple(outcomes)

    def _bind(self, bind: Bind, pods: Mapping[str, Pod]) -> Outcome:
        self._expectations.expect_bind(bind.pod, bind.node, self._ports.clock.now())
        try:
            self._ports.cluster.bind(pods[bind.pod], bind.node)
        except HTASError as error:
            self._expectations.forget(bind.pod)
            return Outcome("bind", bind.pod, OutcomeStatus.FAILED, str(error))
        return Outcome("bind", bind.pod, OutcomeStatus.DONE, bind.node)

    def _drain(self, plan: Plan) -> list[Outcome]:
        try:
            view = self._ports.cluster.observe()
        except HTASError as error:
            return [Outcome("drain", item.node, OutcomeStatus.DROPPED, str(error)) for item in plan.remove]
        return [
            self._draining.start(item, [move for move in plan.migrate if move.source == item.node], view)
            for item in plan.remove
        ]
