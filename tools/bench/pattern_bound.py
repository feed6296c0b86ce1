"""The bound for all of a cluster's work, by patterns: tighter than the fluid one where pods fill machines badly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from htas.planning.solvers.cheapest_mix.bounds import farley, resource_cuts, whole_bound
from htas.planning.solvers.cheapest_mix.finish import cost_of
from htas.planning.solvers.cheapest_mix.generation import generate
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem
from htas.planning.solvers.cheapest_mix.pricing import Pricer
from htas.planning.solvers.cheapest_mix.shapes import optimum

EFFORT = 800.0
MOST_SHAPES = 200
DYNAMIC = 0.05
"""The share of the effort that dynamic programming may take."""

Amounts = tuple[int, ...]


@lru_cache(maxsize=16)
def pattern_bound_nanos(
    shapes: tuple[tuple[Amounts, int], ...],
    capacities: tuple[Amounts, ...],
    prices: tuple[int, ...],
    cost: int,
) -> int:
    """What holding pods of these shapes costs an hour at least, if `cost` holds them; 0: nothing can be said.

    `shapes` are (requests, how many). The same question is not worked out twice.
    """
    shapes = tuple((requests, count) for requests, count in shapes if any(requests))
    if not shapes or not prices or len(shapes) > MOST_SHAPES or min(prices) <= 0:
        return 0
    used = [r for r in range(len(capacities[0])) if any(requests[r] for requests, _ in shapes)]
    requests = _columns([amounts for amounts, _ in shapes], used)
    counts = np.array([count for _, count in shapes], dtype=np.int64)
    instance = MixProblem(
        requests=requests,
        counts=counts,
        levels=np.zeros(len(counts), dtype=np.int64),
        free=_columns(capacities, used),
        prices=np.array(prices, dtype=np.int64),
        takes=np.ones((len(prices), len(counts)), dtype=np.bool_),
        holds=(1,),
    )
    if not instance.is_exact_in_64_bits:
        return 0
    # What no machine holds is left out: less work costs no more.
    held, kept = instance.part(np.where(instance.most.any(axis=0), counts, 0))
    if not len(kept):
        return 0
    return bound_of(held, cost, Effort(EFFORT))


def bound_of(instance: MixProblem, cost: int, effort: Effort) -> int:
    """What no mix can undercut, for some way to hold the items that costs `cost`."""
    instance, _, _ = instance.undominated()
    optimal = optimum(instance, DYNAMIC, effort)
    if optimal is not None:
        return cost_of(optimal)
    generated = generate(instance, (), effort, share=1.0)
    pricer = Pricer.of(instance)
    cuts = [*generated.cuts[-6:], *resource_cuts(instance, pricer)]
    return max([whole_bound(cuts, pricer.costs, cost), *(farley(cut, pricer.costs) for cut in cuts)])


def _columns(vectors: Sequence[Amounts], used: Sequence[int]) -> np.ndarray:
    return np.array([_pick(vector, used) for vector in vectors], dtype=np.int64)


def _pick(vector: Amounts, used: Sequence[int]) -> list[int]:
    return [vector[r] for r in used]
