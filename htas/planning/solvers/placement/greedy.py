"""Greedy placements: the present one with what still fits, and less important pods around more important ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from htas.planning.cluster.classes import Bools, Ints
from htas.planning.solvers.placement.problem import Counts, PlacementProblem


def best_fit(problem: PlacementProblem, x: Counts, kinds: Iterable[int]) -> None:
    """Place what waits of the kinds, one kind after another, each pod on the fullest node that takes it."""
    scale = np.maximum(problem.capacity.max(axis=0, initial=1), 1).astype(np.float64)
    free = problem.free(x)
    for kind in kinds:
        left = int(problem.count[kind] - x[kind].sum())
        while left > 0:
            many = np.where(problem.allowed[kind], _room_for(problem, free, kind), 0)
            nodes = np.flatnonzero(many)
            if not len(nodes):
                break
            node = nodes[np.argmin((free[nodes] / scale).sum(axis=1))]
            put = min(left, int(many[node]))
            x[kind, node] += put
            free[node] -= put * problem.requests[kind]
            left -= put


def _room_for(problem: PlacementProblem, free: Ints, kind: int) -> Ints:
    """For how many more pods of a kind there is room on each node, whether it takes them or not."""
    request = problem.requests[kind]
    needs = request > 0
    many: Ints = (free[:, needs] // request[needs]).min(axis=1, initial=problem.count[kind])
    return np.maximum(many, 0)


def by_importance(problem: PlacementProblem, kinds: Bools) -> list[int]:
    """Kinds in the order in which they are placed: more important first, then larger ones (best-fit decreasing)."""
    scale = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
    size = (problem.requests / scale).sum(axis=1)
    return [int(k) for k in np.lexsort((-size, problem.tier)) if kinds[k]]


def settle(problem: PlacementProblem, x: Counts, before: Counts, tier: int) -> Counts:
    """A placement of all pods from one of those up to a tier: the less important ones keep their nodes where they can.

    What does not fit any more beside the more important pods is placed by best fit, or waits. Kinds covered by budgets
    keep what `x` gives them, since budgets are kept by it.
    """
    kept = (problem.tier <= tier) | (problem.budget_of >= 0)
    whole = np.where(kept[:, None], x, 0)
    free = problem.free(whole)
    lower = np.flatnonzero(~kept)
    scale = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
    size = (problem.requests / scale).sum(axis=1)
    for kind in lower[np.lexsort((size[lower], ~problem.yields[lower], problem.tier[lower]))]:
        stay = np.minimum(before[kind], _room_for(problem, free, kind))
        whole[kind] = stay
        free -= stay[:, None] * problem.requests[kind]
    best_fit(problem, whole, by_importance(problem, (problem.tier > tier)))
    return whole
