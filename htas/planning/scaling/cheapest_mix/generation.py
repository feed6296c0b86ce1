"""Column generation: patterns that a linear programme over all patterns would use, and its prices of items.

Source: Gilmore and Gomory's method for the cutting-stock problem, with a knapsack for each kind of machine and level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from ortools.linear_solver import pywraplp

from htas.planning.classes import Ints
from htas.planning.scaling.cheapest_mix.bounds import Cut, farley
from htas.planning.scaling.cheapest_mix.instance import Effort, Instance, Pattern, pattern_of
from htas.planning.scaling.cheapest_mix.pricing import Floats, Pricer

NEW_AT_ONCE = 60
"""Patterns taken into the linear programme between two solutions of it."""
NEAR = 1e-4
"""The linear programme is left when its value is proved this near."""
ROUNDS = 400


@dataclass(slots=True)
class Generated:
    """What column generation came to."""

    patterns: list[Pattern]
    uses: Floats
    """How often the linear programme uses each pattern."""
    bound: int
    cuts: list[Cut] = field(default_factory=list)
    is_feasible: bool = True


class _Master:
    """The linear programme: least cost of patterns that cover all items within the limits."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.patterns: dict[Pattern, pywraplp.Variable] = {}
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        self.unit = float(max(int(instance.prices.max(initial=1)) * max(instance.holds), 1))
        infinity = self.solver.infinity()
        self.covers = [self.solver.Constraint(float(count), infinity) for count in instance.counts.tolist()]
        self.caps = [self.solver.Constraint(-infinity, float(max(limit.left, 0))) for limit in instance.limits]
        self.objective = self.solver.Objective()
        self.objective.SetMinimization()
        self.missing = []
        for cover in self.covers:  # what nothing holds is dear, but no contradiction
            missing = self.solver.NumVar(0.0, infinity, "")
            cover.SetCoefficient(missing, 1.0)
            self.objective.SetCoefficient(missing, 1e4)
            self.missing.append(missing)

    def add(self, pattern: Pattern) -> bool:
        if pattern in self.patterns:
            return False
        variable = self.solver.NumVar(0.0, self.solver.infinity(), "")
        self.patterns[pattern] = variable
        self.objective.SetCoefficient(variable, pattern.cost / self.unit)
        for item, count in enumerate(pattern.counts):
            if count:
                self.covers[item].SetCoefficient(variable, float(count))
        for cap, limit in zip(self.caps, self.instance.limits, strict=True):
            if limit.usage[pattern.kind]:
                cap.SetCoefficient(variable, float(limit.usage[pattern.kind]))
        return True

    def solve(self, effort: Effort) -> None:
        self.solver.Solve()
        effort.spend(0.5 + 0.002 * len(self.patterns) + 0.02 * len(self.covers))

    def prices(self) -> Floats:
        duals = np.array([cover.dual_value() for cover in self.covers])
        return np.maximum(duals, 0.0) * self.unit

    def scarcity(self) -> Floats:
        """What the limits add to each kind's price: they make scarce machines dearer."""
        extra = np.zeros(len(self.instance.prices))
        for cap, limit in zip(self.caps, self.instance.limits, strict=True):
            extra += max(0.0, -cap.dual_value()) * self.unit * np.array(limit.usage, dtype=np.float64)
        return extra

    @property
    def is_covered(self) -> bool:
        return sum(missing.solution_value() for missing in self.missing) < 1e-6


def generate(instance: Instance, start: Iterable[Pattern], effort: Effort) -> Generated:
    """Patterns of the linear programme, or as many of them as the effort allows for; `start` is a mix to begin with."""
    pricer, master = Pricer.of(instance), _Master(instance)
    for pattern in (*start, *_alone(instance, pricer)):
        master.add(pattern)
    kinds = np.array([column.kind for column in pricer.columns], dtype=np.int64)
    best, cuts = 0, []
    for _ in range(ROUNDS):
        master.solve(effort)
        prices, worth = master.prices(), pricer.costs + master.scarcity()[kinds]
        new = [pattern for pattern in pricer.greedy(prices, worth, effort) if pattern not in master.patterns]
        if not new or effort.is_over:
            new, cut = _priced(pricer, prices, worth, effort)
            cuts.append(cut)
            best = max(best, farley(cut, pricer.costs))
        value = master.objective.Value() * master.unit
        added = [master.add(pattern) for pattern in new[:NEW_AT_ONCE]]
        if not any(added) or effort.is_over or (not instance.limits and best >= value * (1 - NEAR)):
            break
    master.solve(effort)
    uses = np.array([variable.solution_value() for variable in master.patterns.values()])
    return Generated(list(master.patterns), uses, best, cuts, master.is_covered)


def _alone(instance: Instance, pricer: Pricer) -> list[Pattern]:
    """For each item the machine that holds it cheapest, filled with nothing else."""
    patterns = []
    for item in range(len(instance.counts)):
        most = pricer.most[:, item]
        held = np.flatnonzero(most > 0)
        if len(held):
            number = min(held.tolist(), key=lambda number: (pricer.costs[number] / most[number], number))
            counts: Ints = np.zeros(len(instance.counts), dtype=np.int64)
            counts[item] = most[number]
            patterns.append(pattern_of(instance, pricer.columns[number].kind, counts))
    return patterns


def _priced(pricer: Pricer, prices: Floats, worth: Floats, effort: Effort) -> tuple[list[Pattern], Cut]:
    """All patterns that exact knapsacks find worth more than they cost, and the cut that the knapsacks prove.

    Once the effort is over, and for columns that could not pay anyway, the fluid bound stands for the knapsack.
    """
    whole = pricer.whole(prices)
    unit = float(whole.sum()) / max(float(prices.sum()), 1e-12)
    worths, found = [], []
    for number, column in enumerate(pricer.columns):
        most = pricer.fluid_most(number, whole)
        if most > pricer.costs[number] * unit and not effort.is_over:
            counts, most = pricer.exact(number, whole, effort)
            gain = float(counts @ prices) - float(worth[number])
            if gain > 1e-7 * float(worth[number]):
                found.append((-gain / float(worth[number]), number, pattern_of(pricer.instance, column.kind, counts)))
        worths.append(most)
    needed = int((whole * pricer.instance.counts).sum())
    return [pattern for *_, pattern in sorted(found, key=lambda item: item[:2])], Cut(tuple(worths), needed, tuple(whole.tolist()))
