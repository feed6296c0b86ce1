"""Disruption budgets: what the disruption controller and the Eviction API make of them."""

from __future__ import annotations

from collections.abc import Callable

from htas.model.budgets import DisruptionBudget
from htas.model.pods import Phase, Pod
from htas.ports import TransientError
from htas.sandbox.workload import Budget

RETRY_AFTER_S = 10.0
"""What the Eviction API asks for with its 429 (Kubernetes, pkg/registry/core/pod/storage/eviction.go)."""


class BudgetBook:
    """Which pods each budget covers. Labels never change, so a pod is matched once, when it appears."""

    def __init__(self, pod: Callable[[str], Pod | None]) -> None:
        self._pod = pod
        self._covered: list[tuple[Budget, set[str]]] = []

    def add(self, budget: Budget, pods: list[Pod]) -> None:
        self._covered.append((budget, {pod.key for pod in pods if _covers(budget, pod)}))

    def appeared(self, pod: Pod) -> None:
        for budget, covered in self._covered:
            if _covers(budget, pod):
                covered.add(pod.key)

    def went(self, key: str) -> None:
        for _, covered in self._covered:
            covered.discard(key)

    def statuses(self) -> tuple[DisruptionBudget, ...]:
        """Every budget as the disruption controller would state it: healthy pods above the minimum."""
        return tuple(
            DisruptionBudget(budget.namespace, budget.name, budget.selector, self._allowed(budget, covered))
            for budget, covered in self._covered
        )

    def check_eviction(self, pod: Pod) -> None:
        """Raise TransientError where the Eviction API would refuse. A pod that does not run yet needs no leave."""
        if pod.phase is not Phase.RUNNING:
            return
        for budget, covered in self._covered:
            if pod.key in covered and self._allowed(budget, covered) < 1:
                name = f"{budget.namespace}/{budget.name}"
                raise TransientError(f"disruption budget {name} allows no disruption", RETRY_AFTER_S)

    def _allowed(self, budget: Budget, covered: set[str]) -> int:
        """Pods on their way out count no more, so that each eviction spends the budget at once."""
        pods = [self._pod(key) for key in covered]
        healthy = sum(pod is not None and pod.phase is Phase.RUNNING and not pod.is_terminating for pod in pods)
        return max(0, healthy - budget.min_available)


def _covers(budget: Budget, pod: Pod) -> bool:
    return pod.namespace == budget.namespace and budget.selector.matches(pod.labels)
