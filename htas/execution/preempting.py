"""Preempting: a pod is nominated to a node, and those of lower priority that stand in its way there are evicted.

Order: nomination written on the pod → victims evicted → nominations that give way there taken back. A crash in between
leaves a nomination, which the next plan honours or finds lapsed; nothing needs a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import msgspec

from htas.execution.calls import Call, Calls
from htas.execution.crash_points import reached
from htas.execution.ports import Ports
from htas.model.plan import Plan, Preemption
from htas.model.pods import Pod
from htas.model.policy import Policy, Promises, grace_of
from htas.model.reasons import Unplaced
from htas.model.record import Outcome, OutcomeStatus
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disturbing import Disturbing
from htas.planning.namespaces import pins
from htas.ports import HTASError, NotFoundError

PATIENCE_S = 30.0
"""After this long an eviction or nomination that was not observed is taken to have been lost."""


@dataclass(slots=True)
class Preempting:
    """Carries preemptions out, each if it still holds on a fresh view; remembers what has not been observed yet."""

    ports: Ports
    calls: Calls
    policy: Policy
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
            return [Outcome("preempt", item.pod, OutcomeStatus.DROPPED, str(error)) for item in plan.preempt]
        round_ = _Round(view, snapshot, self.policy, self.ports.clock.now(), plan)
        outcomes: list[Outcome] = []
        for beneficiary, group in groupby(plan.preempt, key=lambda item: item.beneficiary):
            items = list(group)
            changed = round_.changed(beneficiary, items)
            if changed is not None:
                outcomes += [Outcome("preempt", item.pod, OutcomeStatus.DROPPED, changed) for item in items]
            else:
                outcomes += self._make_room(round_, beneficiary, items)
        return outcomes

    def _make_room(self, round_: _Round, beneficiary: str, items: Sequence[Preemption]) -> list[Outcome]:
        pod, node = round_.pods[beneficiary], items[0].node
        nominated = self._nominate(pod, node)
        if nominated.status is not OutcomeStatus.DONE:
            return [nominated]
        reached("preempt.nominated")
        victims = round_.victims(items)
        outcomes = self.calls.all(
            [self._call(victim, pod, node, breaks, round_.grace_of(victim)) for victim, breaks in victims]
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
        outcome = _done("nominate", pod.key, node or "", partial(self.ports.cluster.nominate, pod, node))
        if outcome.status is OutcomeStatus.DONE:
            self._nominated[pod.uid] = node, self.ports.clock.now()
        return outcome

    def _call(self, victim: Pod, pod: Pod, node: str, breaks_budget: bool, grace_s: float) -> Call:
        """Evict a victim; where a budget forbids that and the policy does not, delete it as kube-scheduler does."""
        message = f"for {pod.key} of priority {pod.priority} on {node}"
        act = partial(self.ports.cluster.evict, victim, grace_s)
        if breaks_budget:
            act = partial(self.ports.cluster.preempt, victim, f"{self.policy.scheduler_name}: preempting {message}")
        return partial(_evicted, victim.key, message, act)

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
        self._disturbing = Disturbing(view, policy, now)
        self._ledger = BudgetLedger(view.budgets)

    def changed(self, beneficiary: str, items: Sequence[Preemption]) -> str | None:
        """What makes a preemption wrong by now, in words; None: nothing, and its victims' budgets are spent."""
        pod, node = self._present(beneficiary), self._nodes.get(items[0].node)
        if pod is None or pod.node is not None or pod.is_terminating or pod.gates:
            return f"{beneficiary} is gone or waits no more"
        if node is None or not node.is_ready or node.is_unschedulable or node.is_draining:
            return f"node {items[0].node} is gone or closed"
        victims = self._still_there(items)
        for victim in victims:
            terms = self._disturbing.terms_of_victim(victim)
            if not terms.allow(victim, pod.priority):
                return terms.why or f"{victim.key} is not of lower priority than {pod.key}"
        return self._ledger.try_spend(victims) if self._keeps_budgets else None

    def victims(self, items: Sequence[Preemption]) -> list[tuple[Pod, bool]]:
        """Victims that are still there, and whether evicting one breaks a budget."""
        if self._keeps_budgets:
            return [(victim, False) for victim in self._still_there(items)]
        found = []
        for victim in self._still_there(items):
            found.append((victim, self._ledger.refusal(victim) is not None))
            self._ledger.spend(victim)
        return found

    def grace_of(self, victim: Pod) -> float:
        """Seconds it is given to end."""
        node = self._nodes.get(victim.node or "")
        return grace_of(victim, self._policy.group(node.group) if node is not None else None)

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

    def _still_there(self, items: Sequence[Preemption]) -> list[Pod]:
        """Victims on their node; those that are gone or end already need nothing."""
        found = [(self._present(item.pod), item.node) for item in items]
        return [pod for pod, node in found if pod is not None and pod.node == node and not pod.is_terminating]


def _evicted(key: str, message: str, act: Callable[[], object]) -> Outcome:
    outcome = _done("preempt", key, message, act)
    if outcome.status is OutcomeStatus.DONE:
        reached("preempt.evicted")
    return outcome


def _done(verb: str, subject: str, message: str, act: Callable[[], object]) -> Outcome:
    try:
        act()
    except NotFoundError as error:
        return Outcome(verb, subject, OutcomeStatus.DROPPED, str(error))
    except HTASError as error:
        return Outcome(verb, subject, OutcomeStatus.FAILED, f"planned anew next cycle: {error}")
    return Outcome(verb, subject, OutcomeStatus.DONE, message)
