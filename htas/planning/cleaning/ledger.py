"""The ledger of disruption budgets: spent by the simulation, so that one allowance is never used twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htas.model.budgets import DisruptionBudget
from htas.model.pods import Pod
from htas.model.selectors import Operator
from htas.model.snapshot import ClusterSnapshot


class BudgetLedger:
    """What each budget still allows.

    `leaving` are pods that earlier plans decided to disrupt and nobody has yet evicted: the budgets' status does not
    show them, so they are spent here. (Once evicted, a pod is terminating, and the status counts it.)
    """

    def __init__(self, budgets: Iterable[DisruptionBudget], leaving: Iterable[Pod] = ()) -> None:
        self._budgets = sorted(budgets, key=lambda budget: (budget.namespace, budget.name))
        self._by_label: dict[tuple[str, str, str], list[int]] = {}
        self._by_namespace: dict[str, list[int]] = {}
        for i, budget in enumerate(self._budgets):
            self._index(i, budget)
        self._left = [budget.disruptions_allowed for budget in self._budgets]
        for pod in leaving:
            if not pod.is_terminating:
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

    def spend(self, pod: Pod) -> None:
        """Count one more disruption, whether or not it is allowed."""
        for i in self.covering(pod):
            self._left[i] -= 1

    def left(self, budget: int) -> int:
        """How many more disruptions a budget allows, by its number; below 0 where more than it allows were spent."""
        return self._left[budget]

    def has_budget(self, pod: Pod) -> bool:
        """Whether some budget covers a pod at all."""
        return bool(self.covering(pod))

    def refusal(self, pod: Pod) -> str | None:
        """Why a pod may not be disrupted now, in words; None: it may.

        The Eviction API refuses a pod that more than one budget covers, whatever they allow.
        """
        covering = self.covering(pod)
        names = ", ".join(f"{self._budgets[i].namespace}/{self._budgets[i].name}" for i in covering)
        if len(covering) > 1:
            return (
                f"{pod.key} is covered by {len(covering)} disruption budgets ({names}); Kubernetes evicts no such pod"
            )
        if covering and self._left[covering[0]] < 1:
            allowed = self._budgets[covering[0]].disruptions_allowed
            return f"disruption budget {names} has none left of {max(allowed, 0)} disruptions for {pod.key}"
        return None

    def try_spend(self, pods: Sequence[Pod]) -> str | None:
        """Spend the disruption of all these pods, or of none: then why."""
        before = list(self._left)
        for pod in pods:
            refusal = self.refusal(pod)
            if refusal is not None:
                self._left = before
                return refusal
            self.spend(pod)
        return None

    def refund(self, pods: Iterable[Pod]) -> None:
        """Take back what was spent for pods that stay after all."""
        for pod in pods:
            for i in self.covering(pod):
                self._left[i] += 1


def ledger_of(snapshot: ClusterSnapshot, leaving: Iterable[Pod] = ()) -> BudgetLedger:
    """The budgets of a snapshot, with the pods spent that are still where earlier plans found them and are to leave.

    `leaving` are those that this plan has decided on beside them.
    """
    moving = {(move.pod, move.source) for move in snapshot.moves}
    moving |= {(move.pod, move.source) for drain in snapshot.drains for move in drain.moves}
    pods = [pod for pod in snapshot.cluster.pods if (pod.key, pod.node) in moving]
    return BudgetLedger(snapshot.cluster.budgets, [*pods, *leaving])
