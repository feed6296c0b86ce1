"""A lower bound on what work costs of which each kind may use some machines alone, as if work were fluid.

A GPU pod may use GPU machines alone, one that tolerates no spot machine all but these. Whatever is rented, what a kind
of work uses lies on machines that take it. So any values λ ≥ 0 of resources to kinds of work under which no flavour
offers more than it costs, whichever of its kinds is worth most there (Σ_r capacity_fr · max_k λ_kr ≤ price_f over the
kinds k that f takes), bound the bill from below by Σ_k Σ_r λ_kr · demand_kr, less what rooms that are free could hold
at those values. The best λ are a linear programme's, in floating point; rounded to whole numbers they are scaled until
they hold in whole numbers, as in `provision/bound.py`, so that the bound is one whatever the programme came to.

Some work needs machines by number: five pods that keep each other away from their nodes need five. Each such cover of n
machines of some flavours has a value μ ≥ 0 of its own, which counts on each machine of these (Σ_r … + Σ_j μ_j ≤ price_f
over the covers j with f), and adds Σ_j n_j · μ_j to the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Cover:
    """So many machines at least are of these flavours, by their places."""

    flavours: frozenset[int]
    machines: int


def bound_by_kinds(
    demands: Sequence[Vector],
    flavours: Sequence[MachineSupply],
    rooms: Sequence[MachineSupply] = (),
    covers: Sequence[Cover] = (),
) -> int:
    """The least price an hour at which flavours can cover what each kind of work demands beside the rooms, rounded up.

    0 where nothing better is known. All vectors are on one axis, the kinds are the places in `demands`; a flavour that
    takes no kind is not rented, and covers count what is rented beside the rooms.
    """
    sold = {place: flavour for place, flavour in enumerate(flavours) if flavour.takes}
    covers = [each for each in covers if each.machines > 0 and each.flavours & sold.keys()]
    resources = range(len(demands[0]) if demands else 0)
    scale = [max((flavour.offers[r] for flavour in sold.values()), default=0) for r in resources]
    values, numbers = _values(demands, sold, rooms, scale, covers)
    each_is_worth = [int(value * FINE) for value in numbers]
    weights = {key: int(value * FINE) // scale[key[1]] for key, value in values.items()}
    most = {takes: _most(takes, weights, len(scale)) for takes in {each.takes for each in (*sold.values(), *rooms)}}
    worth = sum(weight * demands[kind][r] for (kind, r), weight in weights.items())
    worth += sum(worth * cover.machines for worth, cover in zip(each_is_worth, covers, strict=True))
    worth -= sum(_product(most[room.takes], room.offers) for room in rooms)
    offered = [
        (
            flavour.price,
            _product(most[flavour.takes], flavour.offers)
            + sum(worth for worth, cover in zip(each_is_worth, covers, strict=True) if place in cover.flavours),
        )
        for place, flavour in sold.items()
    ]
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
    demands: Sequence[Vector],
    sold: Mapping[int, MachineSupply],
    rooms: Sequence[MachineSupply],
    scale: Vector,
    covers: Sequence[Cover],
) -> tuple[dict[tuple[int, int], float], list[float]]:
    """The best values, in billionths for the whole of a resource of the largest machine, and of a cover's each machine.

    Nothing and noughts: there are none.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    unit = float(max((flavour.price for flavour in sold.values()), default=0))
    if not unit:
        return {}, [0.0] * len(covers)
    keys = _valued(demands, sold)
    value = {key: solver.NumVar(0.0, infinity, "") for key in keys}
    number = [solver.NumVar(0.0, infinity, "") for _ in covers]
    most = _most_of(solver, value, {each.takes for each in (*sold.values(), *rooms)}, len(scale))
    for place, flavour in sold.items():
        cap = solver.Constraint(-infinity, flavour.price / unit)
        for r, amount in enumerate(flavour.offers):
            if (flavour.takes, r) in most and amount > 0:
                cap.SetCoefficient(most[flavour.takes, r], amount / scale[r])
        for cover, worth in zip(covers, number, strict=True):
            if place in cover.flavours:
                cap.SetCoefficient(worth, 1.0)
    objective = solver.Objective()
    objective.SetMaximization()
    for kind, r in keys:
        objective.SetCoefficient(value[kind, r], demands[kind][r] / scale[r])
    for cover, worth in zip(covers, number, strict=True):
        objective.SetCoefficient(worth, cover.machines)
    for takes, r in most:
        room = sum(max(0, each.offers[r]) for each in rooms if each.takes == takes)
        objective.SetCoefficient(most[takes, r], -room / scale[r])
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return {}, [0.0] * len(covers)
    best = {key: max(0.0, each.solution_value()) * unit for key, each in value.items()}
    return best, [max(0.0, each.solution_value()) * unit for each in number]


def _valued(demands: Sequence[Vector], sold: Mapping[int, MachineSupply]) -> list[tuple[int, int]]:
    """What has a value: a resource that no flavour has for a kind is worth nothing to it, or it had no limit."""
    return [
        (kind, r)
        for kind, demand in enumerate(demands)
        for r, wanted in enumerate(demand)
        if wanted > 0 and any(kind in flavour.takes and flavour.offers[r] > 0 for flavour in sold.values())
    ]


def _most_of(
    solver: pywraplp.Solver, value: Mapping[tuple[int, int], pywraplp.Variable], sets: Iterable[Kinds], resources: int
) -> dict[tuple[Kinds, int], pywraplp.Variable]:
    """For each set of kinds and each resource a variable that is no less than any of their values."""
    most = {}
    for takes in sets:
        for r in range(resources):
            mine = [value[kind, r] for kind in takes if (kind, r) in value]
            if mine:
                most[takes, r] = solver.NumVar(0.0, solver.infinity(), "")
                for each in mine:
                    solver.Add(most[takes, r] >= each)
    return most
