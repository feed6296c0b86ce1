"""Bounds: what no mix can undercut, proved in whole numbers.

Whole prices π ≥ 0 of items, and for every kind (and level) a number z that no pattern's worth Σ π·a exceeds, give for
any feasible mix of y machines: Σ z·y ≥ Σ π·d, since every item is held by some machine. Two bounds follow:

* Farley's: Σ π·d · min(cost ÷ z), the least that any y with this property can cost;
* the *whole* bound: the least Σ cost·y over whole y ≥ 0 that keep this for all the prices collected at once. It knows
  that machines are bought by the piece, which is most of the gap where little is bought.

Limits, spread and the like are left out: what is allowed less cannot cost less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np
from ortools.sat.python import cp_model

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.instance import MixProblem
from htas.planning.solvers.cheapest_mix.pricing import Pricer, solver_with

LARGEST = 2**60
"""CP-SAT's sums must stay within 64 bits."""
WHOLE_SEARCH = 0.1
RESOURCE_BITS = 22


@dataclass(frozen=True, slots=True)
class Cut:
    """Σ worths[column] · machines[column] ≥ needed, for every feasible mix; `prices` are the items' that prove it."""

    worths: tuple[int, ...]
    needed: int
    prices: tuple[int, ...]


def farley(cut: Cut, costs: Ints) -> int:
    """The bound of one cut, rounded up. A column that is worth nothing helps nobody and is left out."""
    ratios = [Fraction(int(cost), worth) for cost, worth in zip(costs, cut.worths, strict=True) if worth > 0]
    if not ratios or cut.needed <= 0:
        return 0
    least = min(ratios) * cut.needed
    return -(-least.numerator // least.denominator)


def resource_cuts(instance: MixProblem, pricer: Pricer) -> list[Cut]:
    """Σ capacity ≥ Σ requests for each resource, in a unit that gives the largest machine some millions."""
    cuts = []
    for resource in range(instance.requests.shape[1]):
        unit = max(1, int(instance.free[:, resource].max(initial=0)) >> RESOURCE_BITS)
        prices = instance.requests[:, resource] // unit
        needed = int((prices * instance.counts).sum())
        if needed:
            alone = (pricer.most * prices[None, :]).sum(axis=1)
            worths = np.minimum(pricer.free[:, resource] // unit, alone)
            cuts.append(Cut(tuple(worths.tolist()), needed, tuple(prices.tolist())))
    return cuts


def whole_bound(cuts: Sequence[Cut], costs: Ints, at_most: int) -> int:
    """The least cost of whole machines that satisfy all cuts, as far as CP-SAT proves it; 0 for too large numbers.

    `at_most` is the cost of a mix at hand: no column is used more often than it pays for.
    """
    prices = [int(cost) for cost in costs]
    if not cuts or not prices or at_most <= 0 or min(prices) <= 0 or at_most + max(prices) >= LARGEST:
        return 0
    kept = _undominated(cuts, prices)
    cuts = [cut for cut in cuts if cut.needed > 0]
    shared = gcd(*prices)
    prices = [prices[i] // shared for i in kept]
    at_most //= shared
    cuts = [Cut(tuple(cut.worths[i] for i in kept), cut.needed, cut.prices) for cut in cuts]
    model = cp_model.CpModel()
    counts = [model.new_int_var(0, at_most // price + 1, "") for price in prices]
    for cut in cuts:
        if sum(worth * (at_most // price + 1) for worth, price in zip(cut.worths, prices, strict=True)) < LARGEST:
            model.add(cp_model.LinearExpr.weighted_sum(counts, cut.worths) >= cut.needed)
    model.minimize(cp_model.LinearExpr.weighted_sum(counts, prices))
    solver = solver_with(WHOLE_SEARCH)
    status = solver.solve(model)
    if status == cp_model.OPTIMAL:
        return shared * sum(solver.value(count) * price for count, price in zip(counts, prices, strict=True))
    if status in (cp_model.FEASIBLE, cp_model.UNKNOWN):
        # The bound is told in floating point: one is given up, so that rounding never adds to it.
        return shared * max(0, int(solver.best_objective_bound * (1 - 1e-12)) - 1)
    return 0


def _undominated(cuts: Sequence[Cut], prices: Sequence[int]) -> list[int]:
    """Columns without those that another one replaces in every cut for no more money."""
    worths = np.array([cut.worths for cut in cuts], dtype=np.int64).T
    kept: Ints = np.zeros(len(prices), dtype=np.int64)
    number = 0
    for i in sorted(range(len(prices)), key=lambda i: (prices[i], [-cut.worths[i] for cut in cuts])):
        if not (worths[kept[:number]] >= worths[i]).all(axis=1).any():
            kept[number] = i
            number += 1
    return [int(i) for i in kept[:number]]
