"""A lower bound on what the work can cost.

Whatever mix of flavours is rented, for every resource Σ capacity ≥ demand. Any prices λ ≥ 0 of resources under which no
flavour offers more than it costs (Σ_r λ_r · capacity_fr ≤ price_f for all f) therefore bound the bill from below by
Σ_r λ_r · demand_r: the dual of the fractional covering problem. Optimal duals over two resources at a time are found
at vertices, and checked in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Vector = Sequence[int]


def lower_bound_nanos(demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> int:
    """The least price an hour, rounded up, at which flavours with these capacities can cover a demand.

    0 where nothing is demanded or nothing is for sale. `capacities[f][r]` and `demand[r]` are on the same axis.
    """
    wanted = [r for r, amount in enumerate(demand) if amount > 0 and any(c[r] > 0 for c in capacities)]
    best = Fraction(0)
    for r in wanted:
        best = max(best, demand[r] * _price_of(r, capacities, prices))
    for a, b in combinations(wanted, 2):
        for value in _vertices(a, b, demand, capacities, prices):
            best = max(best, value)
    return -(-best.numerator // best.denominator)


def _price_of(resource: int, capacities: Sequence[Vector], prices: Sequence[int]) -> Fraction:
    """The cheapest price of one unit of a resource."""
    offers = [
        Fraction(price, capacity[resource])
        for capacity, price in zip(capacities, prices, strict=True)
        if capacity[resource] > 0
    ]
    return min(offers)


def _vertices(a: int, b: int, demand: Vector, capacities: Sequence[Vector], prices: Sequence[int]) -> list[Fraction]:
    """Values of the dual at the vertices where two flavours' constraints meet and all others hold."""
    flavours = list(zip(capacities, prices, strict=True))
    values = []
    for (first, price_1), (second, price_2) in combinations(flavours, 2):
        determinant = first[a] * second[b] - first[b] * second[a]
        if determinant == 0:
            continue
        x = Fraction(price_1 * second[b] - price_2 * first[b], determinant)
        y = Fraction(first[a] * price_2 - second[a] * price_1, determinant)
        if x >= 0 and y >= 0 and all(x * c[a] + y * c[b] <= price for c, price in flavours):
            values.append(x * demand[a] + y * demand[b])
    return values
