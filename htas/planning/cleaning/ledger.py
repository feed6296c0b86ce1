"""The ledger of disruption budgets: spent by the simulation, so that one allowance is never used twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htas.model.budgets import DisruptionBudget
from htas.model.pods import Pod


class BudgetLedger:
    """What each budget still allows. Pods already on the move count as spent."""

    def __init__(self, budgets: Iterable[DisruptionBudget], moving: Iterable[Pod]) -> None:
        self._budgets = list(budgets)
        self._left = [budget.disruptions_allowed for budget in self._budgets]
        for pod in moving:
            for i in self._covering(pod):
                self._left[i] -= 1

    def _covering(self, pod: Pod) -> list[int]:
        return [i for i, budget in enumerate(self._budgets) if budget.covers(pod)]

    def has_budget(self, pod: Pod) -> bool:
        """Whether some budget covers a pod at all."""
        return bool(self._covering(pod))

    def blocking(self, pod: Pod) -> str | None:
        """The name of a budget that forbids disrupting a pod."""
        for i in self._covering(pod):
            if self._left[i] < 1:
                return f"{self._budgets[i].namespace}/{self._budgets[i].name}"
        return None

    def try_spend(self, pods: Sequence[Pod]) -> str | None:
        """Spend the disruption of all these pods, or of none: then the name of the budget that forbids it."""
        before = list(self._left)
        for pod in pods:
            forbids = self.blocking(pod)
            if forbids is not None:
                self._left = before
                return forbids
            for i in self._covering(pod):
                self._left[i] -= 1
        return None

    def mark(self) -> list[int]:
        return list(self._left)

    def back_to(self, mark: list[int]) -> None:
        self._left = list(mark)
