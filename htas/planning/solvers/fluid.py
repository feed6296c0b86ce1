"""A lower bound on what work costs of which each kind may use some machines alone, as if work were fluid.

A GPU pod may use GPU machines alone, one that tolerates no spot machine all but these. Whatever is rented, what a kind
of work uses lies on machines that take it. So any values λ ≥ 0 of resources to kinds of work under which no flavour
offers more than it costs, whichever of its kinds is worth most there (Σ_r capacity_fr · max_k λ_kr ≤ price_f over the
kinds k that f takes), bound the bill from below by Σ_k Σ_r λ_kr · demand_kr, less what rooms that are free could hold
at those values. The best λ are a linear programme's, in floating point; rounded to whole numbers they are scaled until
they hold in whole numbers, as in `provision/bound.py`, so that the bound is one whatever the programme came to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ortools.linear_solver import pywraplp

Vector = Sequence[int]
Kinds = frozenset[int]
FINE = 10**15
"""Values are kept to so many parts of a billionth for the largest machine's whole resource."""


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """A flavour, or room that is free: what it offers of each resource, and which kinds of work may use it."""

    offers: Vector
    takes: Kinds
    price: int = 0


def bound_by_kinds(
    demands: Sequence[Vector], flavours: Sequence[MachineSupply], rooms: Sequence[MachineSupply] = ()
) -> int:
    """The least price an hour at which flavours can cover what each kind of work demands beside the rooms, rounded up.

    0 where nothing better is known. All vectors are on one axis, the kinds are the places in `demands`.
    """
    sold = [flavour for flavour in flavours if flavour.takes]
    scale = [max((flavour.offers[r] for flavour in sold), default=0) for r in range(len(demands[0]) if demands else 0)]
    values = _values(demands, sold, rooms, scale)
    weights = {key: int(value * FINE) // scale[key[1]] for key, value in values.items()}
    most = {takes: _most(takes, weights, len(scale)) for takes in {each.takes for each in (*sold, *rooms)}}
    worth = sum(weight * demands[kind][r] for (kind, r), weight in weights.items())
    worth -= sum(_product(most[room.takes], room.offers) for room in rooms)
    offered = [(flavour.price, _product(most[flavour.takes], flavour.offers)) for flavour in sold]
    least: tuple[int, int] | None = None
    for price, amount in offered:
        if amount and (least is None or price * least[1] < least[0] * amount):
            least = price, amount
    return -(-worth * least[0] // least[1]) if least is not None and worth > 0 else 0


def _most(takes: Kinds, weights: Mapping[tuple[int, int], int], resources: int) -> list[int]:
    """Of each resource what it is worth to whichever kind values it most."""
    return [max((weights.get((kind, r), 0) for kind in takes), default=0) for r in range(resources)]


def _product(weights: Vector, amounts: Vector) -> int:
    return sum(weight * max(0, amount) for weight, amount in zip(weights, amounts, strict=True))


def _values(
    demands: Sequence[Vector], sold: Sequence[MachineSupply], rooms: Sequence[MachineSupply], scale: Vector
) -> dict[tuple[int, int], float]:
    """The best values, in billionths for the whole of a resource of the largest machine; empty: there are none.

    A resource that no flavour has for a kind is worth nothing to it, or its value would have no limit.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    unit = float(max((flavour.price for flavour in sold), default=0))
    if not unit:
        return {}
    keys = [
        (kind, r)
        for kind, demand in enumerate(demands)
        for r, wanted in enumerate(demand)
        if wanted > 0 and any(kind in flavour.takes and flavour.offers[r] > 0 for flavour in sold)
    ]
    value = {key: solver.NumVar(0.0, infinity, "") for key in keys}
    most = {}
    for takes in {each.takes for each in (*sold, *rooms)}:
        for r in range(len(scale)):
            mine = [value[kind, r] for kind in takes if (kind, r) in value]
            if mine:
                most[takes, r] = solver.NumVar(0.0, infinity, "")
                for each in mine:
                    solver.Add(most[takes, r] >= each)
    for flavour in sold:
        cap = solver.Constraint(-infinity, flavour.price / unit)
        for r, amount in enumerate(flavour.offers):
            if (flavour.takes, r) in most and amount > 0:
                cap.SetCoefficient(most[flavour.takes, r], amount / scale[r])
    objective = solver.Objective()
    objective.SetMaximization()
    for kind, r in keys:
        objective.SetCoefficient(value[kind, r], demands[kind][r] / scale[r])
    for takes, r in most:
        room = sum(max(0, each.offers[r]) for each in rooms if each.takes == takes)
        objective.SetCoefficient(most[takes, r], -room / scale[r])
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return {}
    return {key: max(0.0, each.solution_value()) * unit for key, each in value.items()}
