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
        """In the place of one that has its name."""
        name = budget.namespace, budget.name
        self._covered = [(other, keys) for other, keys in self._covered if (other.namespace, other.name) != name]
        self._covered.append((budget, {pod.key for pod in pods if _covers(budget, pod)}))

    def appeared(self, pod: Pod) -> None:
        for budget, covered in self._covered:
            if _covers(budget, pod):
                covered.add(pod.key)

    def went(self, key: str) -> None:
        for _, covered in self._covered:
            covered.discard(key)

    def statuses(self) -> tuple[DisruptionBudget, ...]:
        """Every budget as the disruption controller would state it."""
        return tuple(self._status(budget, covered) for budget, covered in self._covered)

    def check_eviction(self, pod: Pod) -> None:
        """Raise TransientError where the Eviction API would refuse.

        A pod that has not started needs no leave, nor one that is not Ready while as many others are as its budget
        asks for, or whose budget always allows it (Kubernetes v1.36, registry/core/pod/storage/eviction.go).
        """
        if pod.phase is Phase.PENDING or pod.is_terminating:
            return
        covering = [self._status(budget, covered) for budget, covered in self._covered if pod.key in covered]
        if len(covering) > 1:
            raise TransientError(f"{pod.key} has more than one PodDisruptionBudget; no such pod is evicted")
        for budget in covering:
            if pod.ready_since is None and (budget.always_allows_unready or budget.is_healthy):
                continue
            if budget.disruptions_allowed < 1:
                name = f"{budget.namespace}/{budget.name}"
                raise TransientError(f"disruption budget {name} allows no disruption", RETRY_AFTER_S)

    def _status(self, budget: Budget, covered: set[str]) -> DisruptionBudget:
        """Healthy are its Ready pods that are not on their way out, so that each eviction spends the budget at once."""
        pods = [self._pod(key) for key in covered]
        healthy = sum(pod is not None and pod.ready_since is not None and not pod.is_terminating for pod in pods)
        return DisruptionBudget(
            budget.namespace,
            budget.name,
            budget.selector,
            max(0, healthy - budget.min_available),
            healthy,
            budget.min_available,
            budget.always_allows_unready,
        )


def _covers(budget: Budget, pod: Pod) -> bool:
    return pod.namespace == budget.namespace and budget.selector.matches(pod.labels)
