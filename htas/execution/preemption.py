"""Preemption: a pod is nominated to a node, and those of lower priority that stand in its way there are evicted.

Order: nomination written on the pod → victims evicted → nominations that give way there taken back. A crash in between
leaves a nomination, which the next plan honours or finds lapsed; nothing needs a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import msgspec

from htas.execution.calls import Calls
from htas.execution.crash_points import reached
from htas.execution.evictor import Evictor
from htas.execution.outcomes import attempted_once
from htas.execution.ports import Ports
from htas.model.moves import Move
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy, Promises
from htas.model.reasons import Invalid, OutcomeReason, Unplaced
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disruption_policy import DisruptionPolicy
from htas.planning.namespaces import pins
from htas.ports import HTASError

PATIENCE_S = 30.0
"""After this long an eviction or nomination that was not observed is taken to have been lost."""


@dataclass(slots=True)
class PreemptionExecutor:
    """Carries preemptions out, each if it still holds on a fresh view; remembers what has not been observed yet."""

    ports: Ports
    calls: Calls
    policy: Policy
    evictor: Evictor
    _evicted: dict[str, float] = field(default_factory=dict)
    """When victims were evicted, by uid."""
    _nominated: dict[str, tuple[str | None, float]] = field(default_factory=dict)

    def carry_out(self, plan: Plan, snapshot: ClusterSnapshot) -> list[Outcome]:
        """Make room for each pod of the plan that is preempted for."""
        if not plan.preempt:
            return []
        try:
            view = pins.within_limits(self.ports.cluster.observe(), self.policy, self.ports.clock.now())
        except HTASError as error:
            return [Outcome(Action.PREEMPT, item.pod, OutcomeStatus.DROPPED, str(error)) for item in plan.preempt]
        round_ = _Round(view, snapshot, self.policy, self.ports.clock.now(), plan)
        outcomes: list[Outcome] = []
        for beneficiary, group in groupby(plan.preempt, key=lambda item: item.beneficiary):
            items = list(group)
            changed = round_.changed(beneficiary, items)
            if changed is not None:
                dropped = partial(Outcome, status=OutcomeStatus.DROPPED, message=changed.message, reason=changed.reason)
                outcomes += [dropped(Action.PREEMPT, item.pod) for item in items]
            else:
                outcomes += self._make_room(round_, beneficiary, items)
        return outcomes

    def _make_room(self, round_: _Round, beneficiary: str, items: Sequence[Move]) -> list[Outcome]:
        pod, node = round_.pods[beneficiary], items[0].source
        nominated = self._nominate(pod, node)
        if nominated.status is not OutcomeStatus.DONE:
            return [nominated]
        reached("preempt.nominated")
        victims = round_.victims(items)
        message = f"for {pod.key} of priority {pod.priority} on {node}"
        outcomes = self.calls.all(
            [
                partial(self.evictor.preempt, victim, round_.group_of(victim), message, breaks_budget=breaks)
                for victim, breaks in victims
            ]
        )
        now = self.ports.clock.now()
        for (victim, _), outcome in zip(victims, outcomes, strict=True):
            if outcome.status is OutcomeStatus.DONE:
                self._evicted[victim.uid] = now
        for lesser in round_.lesser_nominees(pod, node):
            outcomes.append(self._nominate(lesser, None))
        reached("preempt.done")
        return [nominated, *outcomes]

    def _nominate(self, pod: Pod, node: str | None) -> Outcome:
        act, target = partial(self.ports.cluster.nominate, pod, node), node or ""
        outcome = attempted_once(Action.NOMINATE, pod.key, act, target, target)
        if outcome.status is OutcomeStatus.DONE:
            self._nominated[pod.uid] = node, self.ports.clock.now()
        return outcome

    def applied(self, pods: tuple[Pod, ...], now: float) -> tuple[Pod, ...]:
        """The pods, with what was done to them and is not observed yet: no pod is preempted for twice."""
        if not self._evicted and not self._nominated:
            return pods
        seen = {pod.uid: pod for pod in pods if pod.uid in self._evicted or pod.uid in self._nominated}
        self._evicted = {
            uid: at
            for uid, at in self._evicted.items()
            if uid in seen and not seen[uid].is_terminating and now - at < PATIENCE_S
        }
        self._nominated = {
            uid: (node, at)
            for uid, (node, at) in self._nominated.items()
            if uid in seen and seen[uid].nominated_node != node and seen[uid].node is None and now - at < PATIENCE_S
        }
        return tuple(self._as_done(pod) for pod in pods) if self._evicted or self._nominated else pods

    def _as_done(self, pod: Pod) -> Pod:
        if pod.uid in self._evicted:
            return msgspec.structs.replace(pod, deleted_at=self._evicted[pod.uid])
        if pod.uid in self._nominated:
            return msgspec.structs.replace(pod, nominated_node=self._nominated[pod.uid][0])
        return pod


class _Round:
    """What the preemptions of one plan are checked against: the present view, and the pods that the plan meant."""

    def __init__(self, view: ClusterView, snapshot: ClusterSnapshot, policy: Policy, now: float, plan: Plan) -> None:
        self._gives_way = {item.pod for item in plan.unplaced if item.reason is Unplaced.GIVES_WAY}
        self.pods: Mapping[str, Pod] = {pod.key: pod for pod in view.pods}
        self._meant = {pod.key: pod.uid for pod in snapshot.cluster.pods}
        self._nodes = {node.name: node for node in view.nodes}
        self._policy = policy
        self._scheduler = policy.scheduler_name
        self._keeps_budgets = policy.fallback.promises is Promises.KEEP
        self._disturbing = DisruptionPolicy(view, policy, now)
        self._ledger = BudgetLedger(view.budgets)

    def changed(self, beneficiary: str, items: Sequence[Move]) -> Invalid | None:
        """What makes a preemption wrong by now; None: nothing, and its victims' budgets are spent."""
        pod, node = self._present(beneficiary), self._nodes.get(items[0].source)
        if pod is None or pod.node is not None or pod.is_terminating or pod.gates:
            return Invalid(OutcomeReason.NOTHING_GAINED, f"{beneficiary} is gone or waits no more")
        if node is None or not node.is_ready or node.is_unschedulable or node.is_draining:
            return Invalid(OutcomeReason.NODE_CLOSED, f"node {items[0].source} is gone or closed")
        victims = self._still_there(items)
        for victim in victims:
            terms = self._disturbing.terms_of_victim(victim)
            if not terms.allow(victim, pod.priority):
                why = terms.why or f"{victim.key} is not of lower priority than {pod.key}"
                return Invalid(OutcomeReason.PROMISED, why)
        spent = self._ledger.try_spend(victims) if self._keeps_budgets else None
        return Invalid(OutcomeReason.EVICTION_REFUSED, spent) if spent is not None else None

    def victims(self, items: Sequence[Move]) -> list[tuple[Pod, bool]]:
        """Victims that are still there, and whether evicting one breaks a budget."""
        if self._keeps_budgets:
            return [(victim, False) for victim in self._still_there(items)]
        found = []
        for victim in self._still_there(items):
            found.append((victim, self._ledger.refusal(victim) is not None))
            self._ledger.spend(victim)
        return found

    def group_of(self, victim: Pod) -> NodeGroup | None:
        node = self._nodes.get(victim.node or "")
        return self._policy.group(node.group) if node is not None else None

    def lesser_nominees(self, pod: Pod, node: str) -> Iterable[Pod]:
        """Our own pods nominated to a node that give way to a pod; other schedulers take theirs back themselves."""
        for key in sorted(self._gives_way):
            other = self._present(key)
            if other is None or other.node is not None or other.scheduler != self._scheduler:
                continue
            if other.nominated_node == node and other.priority < pod.priority:
                yield other

    def _present(self, key: str) -> Pod | None:
        """The pod that the plan meant; another one may bear its name by now."""
        pod = self.pods.get(key)
        return pod if pod is not None and pod.uid == self._meant.get(key) else None

    def _still_there(self, items: Sequence[Move]) -> list[Pod]:
        """Victims on their node; those that are gone or end already need nothing."""
        found = [(self._present(item.pod), item.source) for item in items]
        return [pod for pod, node in found if pod is not None and pod.node == node and not pod.is_terminating]
