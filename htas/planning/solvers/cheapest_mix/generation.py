"""Column generation: patterns that a linear programme over all patterns would use, and its prices of items.

Source: Gilmore and Gomory's method for the cutting-stock problem, with a knapsack for each kind of machine and level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from ortools.linear_solver import pywraplp

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.bounds import Cut, farley
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, Pattern, pattern_of
from htas.planning.solvers.cheapest_mix.pricing import GAIN, Floats, Noise, Pricer

NEW_AT_ONCE = 60
"""Patterns taken into the linear programme between two solutions of it."""
NEAR = 3e-4
"""The linear programme is left when its value is proved this near."""
ROUNDS = 400
NEW_AT_FIRST, WORTH_A_LOOK = 200, 0.9
"""Patterns to begin with: those worth nine tenths of their machine at fluid prices."""
MANY_KINDS = 40
"""With more kinds than this, exact knapsacks for all of them would take all the effort: the most promising are solved.

Measured (docs/benchmarks.md): 1.3 % cheaper with 110 and with 300 kinds, no clear difference with 50.
"""
SHARE = 0.35
"""Of the effort, where there are many kinds: patterns that no effort is left to choose among are worth nothing."""
EXACT_AT_ONCE = 4
"""Knapsacks solved for the same prices where there are many: those of the highest fluid worth for their cost."""
FEW = 5
"""With fewer new patterns than this from greedy fillings, knapsacks are solved exactly."""


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

    def __init__(self, instance: MixProblem) -> None:
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
        prices: Floats = np.maximum(duals, 0.0) * self.unit
        return prices

    def used(self) -> list[Pattern]:
        return [pattern for pattern, variable in self.patterns.items() if variable.solution_value() > 1e-9]

    def scarcity(self) -> Floats:
        """What the limits add to each kind's price: they make scarce machines dearer."""
        extra = np.zeros(len(self.instance.prices))
        for cap, limit in zip(self.caps, self.instance.limits, strict=True):
            extra += max(0.0, -cap.dual_value()) * self.unit * np.array(limit.usage, dtype=np.float64)
        return extra

    @property
    def is_covered(self) -> bool:
        return bool(sum(missing.solution_value() for missing in self.missing) < 1e-6)


def generate(instance: MixProblem, start: Iterable[Pattern], effort: Effort, share: float = SHARE) -> Generated:
    """Patterns of the linear programme, or as many as a share of the effort allows for; `start` is a mix to begin with.

    Greedy fillings, and patterns like those in use, bring the programme near its optimum for little; knapsacks are
    solved exactly only when these find no more.
    """
    pricer, master = Pricer.of(instance), _Master(instance)
    own = Effort((share if len(instance.prices) > MANY_KINDS else 1.0) * effort.left)
    whole, effort = effort, own
    for pattern in (*start, *_alone(instance, pricer)):
        master.add(pattern)
    kinds = np.array([column.kind for column in pricer.columns], dtype=np.int64)
    noise = Noise(np.random.default_rng(1))
    for pattern in pricer.greedy(
        fluid_prices(instance), np.asarray(pricer.costs * WORTH_A_LOOK, dtype=np.float64), effort
    )[:NEW_AT_FIRST]:
        master.add(pattern)
    best, cuts = 0, []
    for _ in range(ROUNDS):
        master.solve(effort)
        value = master.objective.Value() * master.unit
        prices, worth = master.prices(), pricer.costs + master.scarcity()[kinds]
        found = pricer.near(master.used(), prices, worth, noise, effort) + pricer.greedy(prices, worth, effort)
        added = [master.add(pattern) for pattern in found[:NEW_AT_ONCE]]
        if sum(added) > FEW and not effort.is_over:
            continue
        new, cut = _priced(pricer, prices, effort)
        cuts.append(cut)
        best = max(best, farley(cut, pricer.costs))
        paying = [p for p, number in new if np.array(p.counts) @ prices > worth[number] * (1 + GAIN)]
        added += [master.add(pattern) for pattern in paying]
        if effort.is_over or not any(added) or (not instance.limits and best >= value * (1 - NEAR)):
            break
    master.solve(effort)
    whole.spend(own.spent)
    uses = np.array([variable.solution_value() for variable in master.patterns.values()])
    return Generated(list(master.patterns), uses, best, cuts, master.is_covered)


def fluid_prices(instance: MixProblem) -> Floats:
    """What items are worth by their requests alone, were resources bought by the drop: a linear programme's prices."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity, scale = solver.infinity(), np.maximum(instance.free.max(axis=0), 1).astype(np.float64)
    holds = np.array(instance.holds, dtype=np.float64)[instance.levels]
    needed = (instance.counts * holds) @ (instance.requests / scale)
    covers = [solver.Constraint(float(amount), infinity) for amount in needed]
    top = float(max(instance.prices.max(initial=1), 1))
    objective = solver.Objective()
    objective.SetMinimization()
    for price, free in zip(instance.prices.tolist(), instance.free, strict=True):
        machines = solver.NumVar(0.0, infinity, "")
        objective.SetCoefficient(machines, price / top)
        for cover, room in zip(covers, (free / scale).tolist(), strict=True):
            cover.SetCoefficient(machines, room)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return np.zeros(len(instance.counts))
    worth = np.array([max(cover.dual_value(), 0.0) for cover in covers]) * top
    fluid: Floats = (instance.requests / scale) @ worth * holds
    return fluid


def _alone(instance: MixProblem, pricer: Pricer) -> list[Pattern]:
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


def _priced(pricer: Pricer, prices: Floats, effort: Effort) -> tuple[list[tuple[Pattern, int]], Cut]:
    """The best pattern of each column that might pay, with its number, and the cut that the knapsacks prove.

    Once the effort is over, and for columns that could not pay anyway, the fluid bound stands for the knapsack.
    """
    whole = pricer.whole(prices)
    unit = float(whole.sum()) / max(float(prices.sum()), 1e-12)
    worths = pricer.fluid_mosts(whole).tolist()
    gains = np.array(worths, dtype=np.float64) / np.maximum(pricer.costs * unit, 1e-12)
    found = []
    is_many = len(pricer.instance.prices) > MANY_KINDS
    tried = np.argsort(-gains, kind="stable")[:EXACT_AT_ONCE] if is_many else np.arange(len(gains))
    for number in tried[gains[tried] > 1 + NEAR].tolist():
        if effort.is_over:
            break
        counts, worths[number] = pricer.exact(number, whole, effort)
        if counts.any():
            found.append((pattern_of(pricer.instance, pricer.columns[number].kind, counts), number))
    needed = int((whole * pricer.instance.counts).sum())
    return found, Cut(tuple(worths), needed, tuple(whole.tolist()))
