"""A lower bound on what the work can cost, whatever is bought: as if work were fluid.

Whatever mix of flavours is rented, for every resource Σ capacity ≥ demand. Any prices λ ≥ 0 of resources under which no
flavour offers more than it costs (Σ_r λ_r · capacity_fr ≤ price_f for all f) therefore bound the bill from below by
Σ_r λ_r · demand_r: the dual of the fractional covering problem. Good λ over two resources at a time are found at the
dual's vertices in floating point, rounded to whole numbers, and then scaled down in whole numbers until they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Vector = Sequence[int]
Floats = NDArray[np.float64]
FINE = 10**9
"""Duals are kept to so many parts of the dearest flavour's price: a bound loses a billionth by that."""


def lower_bound_nanos(demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> int:
    """The least price an hour, rounded up, at which flavours with these capacities can cover a demand.

    0 where nothing is demanded or nothing is for sale. `capacities[f][r]` and `demand[r]` are on the same axis.
    """
    duals = _duals(tuple(tuple(capacity) for capacity in capacities), tuple(prices))
    best = 0
    for resources, vertices in duals:
        wanted = [demand[r] for r in resources]
        if min(wanted) <= 0:
            continue
        for weights, most in vertices:
            # Σ weight·capacity ≤ most·price ÷ SCALE for every flavour, so Σ weight·demand is worth so much at least.
            worth = sum(weight * amount for weight, amount in zip(weights, wanted, strict=True))
            best = max(best, -(-worth * most[0] // most[1]))
    return best


Vertex = tuple[tuple[int, ...], tuple[int, int]]
"""(whole weights of resources, the fraction that scales them down until no flavour offers more than it costs)."""


@lru_cache(maxsize=8)
def _duals(
    capacities: tuple[tuple[int, ...], ...], prices: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], tuple[Vertex, ...]], ...]:
    """For each resource and each two of them, the vertices of the dual: they depend on what is for sale alone.

    A flavour catalogue changes rarely, the demand in every cycle; which vertex is best is then a few products.
    """
    if not capacities:
        return ()
    sold = [r for r in range(len(capacities[0])) if any(c[r] > 0 for c in capacities)]
    found = []
    for resources in [*((r,) for r in sold), *combinations(sold, 2)]:
        scale = [max(c[r] for c in capacities) for r in resources]
        capacity = np.array([[c[r] for r in resources] for c in capacities], dtype=np.float64) / scale
        price = np.array(prices, dtype=np.float64)
        points = [_single(capacity, price)] if len(resources) == 1 else _vertices(capacity, price)
        vertices = (_whole(resources, scale, point, capacities, prices) for point in points)
        found.append((resources, tuple(vertex for vertex in vertices if vertex is not None)))
    return tuple(found)


def _single(capacity: Floats, price: Floats) -> tuple[float, ...]:
    sold = capacity[:, 0] > 0
    return (float((price[sold] / capacity[sold, 0]).min()),)


def _vertices(capacity: Floats, price: Floats) -> list[tuple[float, ...]]:
    """The points x, y > 0 where two flavours' constraints x·a + y·b ≤ price meet and all others hold."""
    first, second = np.triu_indices(len(price), k=1)
    a, b = capacity[:, 0], capacity[:, 1]
    determinant = a[first] * b[second] - b[first] * a[second]
    usable = np.abs(determinant) > 1e-15
    first, second, determinant = first[usable], second[usable], determinant[usable]
    x = (price[first] * b[second] - price[second] * b[first]) / determinant
    y = (a[first] * price[second] - a[second] * price[first]) / determinant
    inside = (x > 0) & (y > 0)
    x, y = x[inside], y[inside]
    holds = (x[:, None] * a + y[:, None] * b <= price * (1 + 1e-9)).all(axis=1)
    return sorted({(float(i), float(j)) for i, j in zip(x[holds], y[holds], strict=True)})


def _whole(
    resources: tuple[int, ...],
    scale: Sequence[int],
    point: tuple[float, ...],
    capacities: Sequence[Vector],
    prices: Sequence[int],
) -> Vertex | None:
    """Whole weights near a point, and how far they must be scaled down: the least of price ÷ what is offered.

    A weight is what a unit of the resource is worth, times the product of the largest capacities: whole for all.
    """
    unit = max(point) / FINE
    if unit <= 0:
        return None
    parts = [int(value / unit) for value in point]
    weights = tuple(part * (scale[1 - i] if len(scale) > 1 else 1) for i, part in enumerate(parts))
    least: tuple[int, int] | None = None
    for capacity, price in zip(capacities, prices, strict=True):
        offered = sum(weight * capacity[r] for weight, r in zip(weights, resources, strict=True))
        if offered > 0 and (least is None or price * least[1] < least[0] * offered):
            least = price, offered
    return None if least is None else (weights, least)
