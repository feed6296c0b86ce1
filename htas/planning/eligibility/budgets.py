"""How many pods may be disrupted: the ledger of budgets, and what holds of a service where no budget says.

Budgets are spent by the simulation, so that one allowance is never used twice. What one allows is what the Eviction API
would (Kubernetes v1.36, registry/core/pod/storage/eviction.go). A pod that has not started, or ends already, needs no
leave. Of one that is not Ready, nothing is spent where its budget says `AlwaysAllow`, or where as many others are Ready
as the budget asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.pods import Phase, Pod
from htas.model.selectors import Operator
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.whereabouts import moves_under_way

TWO_BUDGETS = "Kubernetes evicts no such pod"
SHARE = 4
"""A quarter of a service's pods, rounded down, but one at least: a Deployment's maxUnavailable, 25 %."""


class BudgetLedger:
    """What each budget still allows.

    `leaving` are pods that earlier plans decided to disrupt and nobody has yet evicted: the budgets' status does not
    show them, so they are spent here. (Once evicted, a pod is terminating, and the status counts it.)
    """

    def __init__(self, budgets: Iterable[DisruptionBudget], leaving: Iterable[Pod] = ()) -> None:
        self._budgets = sorted(budgets, key=lambda budget: (budget.namespace, budget.name))
        """As they would be once all that was spent has happened."""
        self._allowed = [budget.disruptions_allowed for budget in self._budgets]
        self._by_label: dict[tuple[str, str, str], list[int]] = {}
        self._by_namespace: dict[str, list[int]] = {}
        for i, budget in enumerate(self._budgets):
            self._index(i, budget)
        self._spent: dict[str, list[list[int]]] = {}
        """What each spending for a pod was charged to: a what-if within another may spend for the same pod again."""
        for pod in leaving:
            self.spend(pod)

    def _index(self, number: int, budget: DisruptionBudget) -> None:
        """By one label that it asks for; those that ask for none by their namespace alone.

        A cluster of 5,000 nodes may have a thousand budgets: not each is asked about each of 40,000 pods.
        """
        for requirement in budget.selector.requirements if budget.selector is not None else ():
            if requirement.operator is Operator.IN:
                for value in set(requirement.values):
                    self._by_label.setdefault((budget.namespace, requirement.key, value), []).append(number)
                return
        self._by_namespace.setdefault(budget.namespace, []).append(number)

    def covering(self, pod: Pod) -> list[int]:
        """Numbers of the budgets that cover a pod."""
        if not self._budgets:
            return []
        found = list(self._by_namespace.get(pod.namespace, ()))
        for key, value in pod.labels.items():
            found += self._by_label.get((pod.namespace, key, value), ())
        return sorted(number for number in found if self._budgets[number].covers(pod))

    def charged(self, pod: Pod) -> list[int]:
        """Numbers of the budgets that are spent if a pod is disrupted: not all that cover it."""
        if pod.phase is Phase.PENDING or pod.is_terminating:
            return []
        covering = self.covering(pod)
        if len(covering) == 1 and pod.ready_since is None:
            budget = self._budgets[covering[0]]
            if budget.always_allows_unready or budget.is_healthy:
                return []
        return covering

    def spend(self, pod: Pod) -> None:
        """Count one more disruption, whether or not it is allowed."""
        charged = self.charged(pod)
        self._spent.setdefault(pod.key, []).append(charged)
        self._count(charged, -1, is_ready=pod.ready_since is not None)

    def refund(self, pods: Iterable[Pod]) -> None:
        """Take back what was last spent for pods that stay after all."""
        for pod in pods:
            spent = self._spent.get(pod.key)
            if spent:
                self._count(spent.pop(), 1, is_ready=pod.ready_since is not None)

    def _count(self, charged: Iterable[int], sign: int, *, is_ready: bool) -> None:
        for i in charged:
            budget = self._budgets[i]
            self._budgets[i] = msgspec.structs.replace(
                budget,
                disruptions_allowed=budget.disruptions_allowed + sign,
                current_healthy=budget.current_healthy + sign * is_ready,
            )

    def left(self, budget: int) -> int:
        """How many more disruptions a budget allows, by its number; below 0 where more than it allows were spent."""
        return self._budgets[budget].disruptions_allowed

    @property
    def budgets(self) -> tuple[DisruptionBudget, ...]:
        """The budgets, by namespace and name, as they would be once all that was spent has happened."""
        return tuple(self._budgets)

    def has_budget(self, pod: Pod) -> bool:
        """Whether some budget covers a pod at all."""
        return bool(self.covering(pod))

    def refusal(self, pod: Pod) -> str | None:
        """Why a pod may not be disrupted now, in words; None: it may.

        The Eviction API refuses a pod that more than one budget covers, whatever they allow.
        """
        charged = self.charged(pod)
        names = ", ".join(f"{self._budgets[i].namespace}/{self._budgets[i].name}" for i in charged)
        if len(charged) > 1:
            return f"{pod.key} is covered by {len(charged)} disruption budgets ({names}); {TWO_BUDGETS}"
        if charged and self.left(charged[0]) < 1:
            allowed = max(self._allowed[charged[0]], 0)
            return f"disruption budget {names} has none left of {allowed} disruptions for {pod.key}"
        return None

    def try_spend(self, pods: Sequence[Pod]) -> str | None:
        """Spend the disruption of all these pods, or of none: then why."""
        for i, pod in enumerate(pods):
            refusal = self.refusal(pod)
            if refusal is not None:
                self.refund(pods[:i])
                return refusal
            self.spend(pod)
        return None


def ledger_of(snapshot: ClusterSnapshot, leaving: Iterable[Pod] = ()) -> BudgetLedger:
    """The budgets of a snapshot, with the pods spent that are still where earlier plans found them and are to leave.

    `leaving` are those that this plan has decided on beside them.
    """
    moving = {(move.pod, move.source) for move in moves_under_way(snapshot)}
    pods = [pod for pod in snapshot.cluster.pods if (pod.key, pod.node) in moving] if moving else []
    return BudgetLedger(snapshot.cluster.budgets, [*pods, *leaving])


def max_unavailable(count: int) -> int:
    """How many of a service's pods may be missing at once where no disruption budget says."""
    return max(1, count // SHARE)
