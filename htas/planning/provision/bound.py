"""A lower bound on what the work can cost, whatever is bought: as if work were fluid.

Whatever mix of flavours is rented, for every resource Σ capacity ≥ demand. Any prices λ ≥ 0 of resources under which no
flavour offers more than it costs (Σ_r λ_r · capacity_fr ≤ price_f for all f) therefore bound the bill from below by
Σ_r λ_r · demand_r: the dual of the fractional covering problem. Good λ over two resources at a time are found in
floating point, rounded to whole numbers, and then scaled down in whole numbers until they hold.

Over two resources, flavour f is the point (capacity ÷ price) of both, and λ holds where all points are on one side of a
line. The best lines touch the points' convex hull, so 2,000 flavours cost one sort and not a look at each two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Vector = Sequence[int]
Floats = NDArray[np.float64]
NEAREST = 4
"""So many vertices, the best in floating point, are worked out in whole numbers."""
FINE = 10**9
"""Duals are kept to so many parts of the dearest flavour's price: a bound loses a billionth by that."""


def lower_bound_nanos(demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> int:
    """The least price an hour, rounded up, at which flavours with these capacities can cover a demand.

    0 where nothing is demanded or nothing is for sale. `capacities[f][r]` and `demand[r]` are on the same axis.
    """
    offered = _Offered.of(tuple(tuple(capacity) for capacity in capacities), tuple(prices))
    worths: list[tuple[float, int, int]] = []
    for number, (resources, points) in enumerate(offered.duals):
        wanted = [demand[r] for r in resources]
        if min(wanted) > 0:
            values = points @ np.array(wanted, dtype=np.float64)
            worths += [(float(values[i]), number, int(i)) for i in np.argsort(-values, kind="stable")[:NEAREST]]
    best = 0
    for _, number, i in sorted(worths, reverse=True)[:NEAREST]:
        resources = offered.duals[number][0]
        vertex = offered.whole(number, i)
        if vertex is not None:
            # Σ weight·capacity ≤ most·price ÷ SCALE for every flavour, so Σ weight·demand is worth so much at least.
            weights, most = vertex
            worth = sum(weight * demand[r] for weight, r in zip(weights, resources, strict=True))
            best = max(best, -(-worth * most[0] // most[1]))
    return best


def resource_values(demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> list[float]:
    """What a unit of each resource is worth by the best of these bounds; 0 for those that do not count in it.

    No flavour offers more than it costs, by these values.
    """
    offered = _Offered.of(tuple(tuple(capacity) for capacity in capacities), tuple(prices))
    values, best = [0.0] * len(demand), 0.0
    for resources, points in offered.duals:
        wanted = np.array([demand[r] for r in resources], dtype=np.float64)
        worths = points @ wanted if wanted.min() > 0 and len(points) else np.zeros(0)
        if len(worths) and worths.max() > best:
            best, values = float(worths.max()), [0.0] * len(demand)
            for resource, value in zip(resources, points[worths.argmax()].tolist(), strict=True):
                values[resource] = value
    return values


Vertex = tuple[tuple[int, ...], tuple[int, int]]
"""(whole weights of resources, the fraction that scales them down until no flavour offers more than it costs)."""


@dataclass(frozen=True, eq=False)
class _Offered:
    """What is for sale, with the dual's vertices for each resource and each two of them.

    A flavour catalogue changes rarely, the demand in every cycle; which vertex is best is then a few products.
    """

    capacities: tuple[tuple[int, ...], ...]
    prices: tuple[int, ...]
    duals: tuple[tuple[tuple[int, ...], Floats], ...]
    """(resources, their prices at each vertex: vertices × resources)."""
    _whole: dict[tuple[int, int], Vertex | None] = field(default_factory=dict)

    @staticmethod
    @lru_cache(maxsize=8)
    def of(capacities: tuple[tuple[int, ...], ...], prices: tuple[int, ...]) -> _Offered:
        if not capacities:
            return _Offered(capacities, prices, ())
        amounts = np.array(capacities, dtype=np.float64)
        price = np.array(prices, dtype=np.float64)
        sold = np.flatnonzero((amounts > 0).any(axis=0)).tolist()
        duals = []
        for resources in [*((r,) for r in sold), *combinations(sold, 2)]:
            scale = amounts[:, resources].max(axis=0)
            capacity = amounts[:, resources] / scale
            points = _single(capacity, price) if len(resources) == 1 else _vertices(capacity, price)
            duals.append((tuple(resources), points / scale))
        return _Offered(capacities, prices, tuple(duals))

    def whole(self, number: int, vertex: int) -> Vertex | None:
        key = number, vertex
        if key not in self._whole:
            resources, points = self.duals[number]
            self._whole[key] = _whole(resources, points[vertex].tolist(), self.capacities, self.prices)
        return self._whole[key]


def _single(capacity: Floats, price: Floats) -> Floats:
    sold = capacity[:, 0] > 0
    return np.array([[(price[sold] / capacity[sold, 0]).min()]])


def _vertices(capacity: Floats, price: Floats) -> Floats:
    """The points x, y > 0 where two flavours' constraints x·a + y·b ≤ price meet and all others hold."""
    useful = (capacity > 0).any(axis=1)
    if (price[useful] <= 0).any():
        return np.zeros((0, 2))  # what is free leaves nothing that any of it is worth
    chain = _upper_right(capacity[useful] / price[useful, None])
    (u, v), (s, t) = chain[:-1].T, chain[1:].T
    determinant = u * t - s * v
    usable = np.abs(determinant) > 1e-15 * np.abs(u * t)
    u, v, s, t, determinant = (each[usable] for each in (u, v, s, t, determinant))
    found = np.stack([(t - v) / determinant, (u - s) / determinant], axis=1)
    return found[(found > 0).all(axis=1)]


def _upper_right(points: Floats) -> Floats:
    """The corners of the points' convex hull that no other point beats in both, from the rightmost to the highest."""
    ordered = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    highest = np.maximum.accumulate(ordered[:, 1])
    ordered = ordered[np.concatenate([[True], ordered[1:, 1] > highest[:-1]])]
    chain: list[list[float]] = []
    for x, y in ordered.tolist():
        while len(chain) > 1 and _is_inside(chain[-2], chain[-1], x, y):
            chain.pop()
        chain.append([x, y])
    return np.array(chain)


def _is_inside(first: list[float], middle: list[float], x: float, y: float) -> bool:
    """Whether the middle one of three points, from right to left, is not to the right of the others' line."""
    return (middle[0] - first[0]) * (y - first[1]) <= (middle[1] - first[1]) * (x - first[0])


def _whole(
    resources: tuple[int, ...],
    point: Sequence[float],
    capacities: Sequence[Vector],
    prices: Sequence[int],
) -> Vertex | None:
    """Whole weights near a point, and how far they must be scaled down: the least of price ÷ what is offered.

    A weight is what a unit of the resource is worth, times the product of the largest capacities: whole for all.
    Only flavours that floating point takes for the least, or nearly, are divided exactly.
    """
    scale = [max(capacity[r] for capacity in capacities) for r in resources]
    unit = max(value * most for value, most in zip(point, scale, strict=True)) / FINE
    if unit <= 0:
        return None
    parts = [int(value * most / unit) for value, most in zip(point, scale, strict=True)]
    weights = tuple(part * (scale[1 - i] if len(scale) > 1 else 1) for i, part in enumerate(parts))
    amounts = np.array(capacities, dtype=np.float64)[:, resources] @ np.array(weights, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(amounts > 0, np.array(prices, dtype=np.float64) / amounts, np.inf)
    least: tuple[int, int] | None = None
    for flavour in np.flatnonzero((amounts > 0) & (ratios <= ratios.min() * (1 + 1e-9))).tolist():
        offered = sum(weight * capacities[flavour][r] for weight, r in zip(weights, resources, strict=True))
        if least is None or prices[flavour] * least[1] < least[0] * offered:
            least = prices[flavour], offered
    return None if least is None else (weights, least)
