"""A lower bound on what the work can cost.

Whatever mix of flavours is rented, for every resource Σ capacity ≥ demand. Any prices λ ≥ 0 of resources under which no
flavour offers more than it costs (Σ_r λ_r · capacity_fr ≤ price_f for all f) therefore bound the bill from below by
Σ_r λ_r · demand_r: the dual of the fractional covering problem. Good λ over two resources at a time are found at the
dual's vertices in floating point, and then scaled down in exact arithmetic until they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Vector = Sequence[int]
Floats = NDArray[np.float64]


def lower_bound_nanos(demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> int:
    """The least price an hour, rounded up, at which flavours with these capacities can cover a demand.

    0 where nothing is demanded or nothing is for sale. `capacities[f][r]` and `demand[r]` are on the same axis.
    """
    wanted = [r for r, amount in enumerate(demand) if amount > 0 and any(c[r] > 0 for c in capacities)]
    best = Fraction(0)
    for resources in [*((r,) for r in wanted), *combinations(wanted, 2)]:
        duals = _float_duals(resources, demand, capacities, prices)
        best = max(best, _exact_value(resources, duals, demand, capacities, prices))
    return -(-best.numerator // best.denominator)


def _float_duals(
    resources: tuple[int, ...], demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]
) -> tuple[float, ...]:
    """Nearly optimal prices of one or two resources (each measured in the demand's own amount)."""
    wanted = np.array([demand[r] for r in resources], dtype=np.float64)
    capacity = np.array([[c[r] for r in resources] for c in capacities], dtype=np.float64) / wanted
    price = np.array(prices, dtype=np.float64)
    if len(resources) == 1:
        sold = capacity[:, 0] > 0
        return (float((price[sold] / capacity[sold, 0]).min()),)
    return _best_vertex(capacity, price)


def _best_vertex(capacity: Floats, price: Floats) -> tuple[float, float]:
    """The point of largest x + y where two flavours' constraints x·a + y·b ≤ price meet and all others hold."""
    first, second = np.triu_indices(len(price), k=1)
    a, b = capacity[:, 0], capacity[:, 1]
    determinant = a[first] * b[second] - b[first] * a[second]
    usable = determinant != 0
    first, second, determinant = first[usable], second[usable], determinant[usable]
    x = (price[first] * b[second] - price[second] * b[first]) / determinant
    y = (a[first] * price[second] - a[second] * price[first]) / determinant
    holds = (x >= 0) & (y >= 0) & (x[:, None] * a + y[:, None] * b <= price * (1 + 1e-9)).all(axis=1)
    if not holds.any():
        return 0.0, 0.0
    best = int(np.argmax(np.where(holds, x + y, -1.0)))
    return float(x[best]), float(y[best])


def _exact_value(
    resources: tuple[int, ...],
    duals: tuple[float, ...],
    demand: Vector,
    capacities: Sequence[Vector],
    prices: Sequence[int],
) -> Fraction:
    """What the duals are worth once scaled down so far that no flavour offers more than it costs."""
    exact = [Fraction(dual) / demand[r] for dual, r in zip(duals, resources, strict=True)]
    scale = Fraction(1)
    for capacity, price in zip(capacities, prices, strict=True):
        offered = sum((dual * capacity[r] for dual, r in zip(exact, resources, strict=True)), Fraction(0))
        if offered > price:
            scale = min(scale, price / offered)
    return scale * sum((dual * demand[r] for dual, r in zip(exact, resources, strict=True)), Fraction(0))
