"""The problem by node patterns: its bound by column generation, its optimum by the columns that can be part of it.

Columns c ∈ C are (node or group of identical nodes, pattern), y[c] how often it is used. Maximise Σ value·y (8) with at
most as many columns as a group has nodes (9), at most as many pods as there are of a kind (10), and the floors: what is
fixed by earlier stages, and disruption budgets (11). For any prices π ≥ 0 of kinds and λ ≥ 0 of floors

    L(π, λ) = Σ π·count - Σ λ·floor + Σ over nodes of max over patterns (value + λ·floor's value - π·counts)

bounds every placement from above; linear programming finds good prices, the patterns are priced by looking at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model

from htas.planning.classes import Bools, Ints
from htas.planning.priority.budget import Clock
from htas.planning.priority.patterns import Patterns, enumerate_patterns, fitting, yielding_in_vain

TOLERANCE = 1e-4
"""Bounds are computed in floating point and rounded down to integers; so far above one they are still that one."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A linear function of a placement: Σ each[k]·x[k, j] + Σ at_home[k]·min(x[k, j], home[k, j])."""

    each: Ints
    at_home: Ints

    def of(self, x: Ints, home: Ints) -> int:
        return int(self.each @ x.sum(axis=1) + self.at_home @ np.minimum(x, home).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Floor:
    """What a placement must reach at least."""

    measure: Measure
    least: int


@dataclass(frozen=True, slots=True)
class Program:
    """Part of a problem: some kinds on some nodes, what else is there already taken off `room`."""

    requests: Ints
    count: Ints
    room: Ints
    allowed: Bools
    home: Ints
    tier: Ints
    yields: Bools
    objective: Measure
    floors: tuple[Floor, ...]


@dataclass(slots=True)
class Bounded:
    """`bound` holds for every placement; `x` is the best one found, or None."""

    bound: int
    x: Ints | None
    columns: int = 0


@dataclass(slots=True)
class _Group:
    """Nodes that are alike for this program, and the patterns they take."""

    nodes: list[int]
    patterns: NDArray[np.int32]
    bonus: list[tuple[int, Ints]]
    """(kind, how many of the pattern's pods would be at home) for the kinds that count so."""


class Master:
    """One program with its patterns enumerated."""

    def __init__(self, program: Program, patterns: Patterns, clock: Clock) -> None:
        self.program = program
        self.patterns = patterns
        self._clock = clock
        self._dense = patterns.astype(np.float32)
        self._groups = self._grouped()
        self._prices = np.full(len(program.count), 0.5)
        self._penalties = np.zeros(len(program.floors))
        self.bound = float("inf")

    @classmethod
    def of(cls, program: Program, limit: int, clock: Clock) -> Master | None:
        """None where there are more patterns than `limit`."""
        patterns = enumerate_patterns(program.requests, program.count, program.room, limit)
        clock.work((limit if patterns is None else len(patterns)) * 4e-7 * (len(program.count) / 8 + 1))
        return None if patterns is None else cls(program, patterns, clock)

    def _grouped(self) -> list[_Group]:
        program = self.program
        matters = program.yields | program.objective.at_home.astype(np.bool_)
        for floor in program.floors:
            matters |= floor.measure.at_home.astype(np.bool_)
        home = np.where(matters[:, None], program.home, 0)
        alike: dict[bytes, list[int]] = {}
        for node in range(len(program.room)):
            key = program.room[node].tobytes() + program.allowed[:, node].tobytes() + home[:, node].tobytes()
            alike.setdefault(key, []).append(node)
        loads = self.patterns.astype(np.int64) @ program.requests
        groups = []
        for nodes in alike.values():
            node = nodes[0]
            fit = fitting(self.patterns, loads, program.room[node], program.allowed[:, node])
            own = program.home[:, node]
            if program.yields.any():
                fit = fit[~yielding_in_vain(self.patterns[fit], own, program.tier, program.yields)]
            bonus = [
                (int(k), np.minimum(self.patterns[fit, k], own[k]).astype(np.int64))
                for k in np.flatnonzero(home[:, node])
            ]
            groups.append(_Group(nodes, fit, bonus))
        self._clock.work(len(self.patterns) * len(groups) * 1e-8)
        return groups

    # Values of columns.

    def _values(self, group: _Group, measure: Measure, chosen: NDArray[np.int64]) -> Ints:
        """A measure's value of some columns of a group (`chosen` counts in the group's own list)."""
        values = self.patterns[group.patterns[chosen]].astype(np.int64) @ measure.each
        for kind, at_home in group.bonus:
            if measure.at_home[kind]:
                values += measure.at_home[kind] * at_home[chosen]
        return np.asarray(values)

    def _reduced(self, prices: Floats, penalties: Floats) -> list[Floats]:
        """What each column of each group is worth at these prices."""
        each = self.program.objective.each - prices
        at_home = self.program.objective.at_home.astype(np.float64)
        for penalty, floor in zip(penalties, self.program.floors, strict=True):
            each = each + penalty * floor.measure.each
            at_home = at_home + penalty * floor.measure.at_home
        worth = (self._dense @ each.astype(np.float32)).astype(np.float64)
        found = []
        for group in self._groups:
            values = worth[group.patterns]
            for kind, count in group.bonus:
                if at_home[kind]:
                    values = values + at_home[kind] * count
            found.append(values)
            self._clock.work(len(values) * 5e-9 * (1 + len(group.bonus)))
        return found

    def _lagrangian(self, prices: Floats, penalties: Floats, reduced: list[Floats]) -> float:
        total = float(prices @ self.program.count)
        total -= sum(p * floor.least for p, floor in zip(penalties, self.program.floors, strict=True))
        return total + sum(
            len(group.nodes) * float(values.max()) for group, values in zip(self._groups, reduced, strict=True)
        )

    # The bound.

    def tighten(self, x: Ints, deadline: float, enough: int) -> int:
        """Column generation from a placement `x`; returns the bound, at once if it comes down to `enough`."""
        relaxed = _Relaxed(self.program, [len(group.nodes) for group in self._groups])
        for g, group in enumerate(self._groups):
            for node in group.nodes:
                chosen = self._find(group, x[:, node])
                if chosen is not None:
                    self._offer(relaxed, g, np.array([chosen]))
        prices, penalties = relaxed.solve()
        while True:
            reduced = self._reduced(prices, penalties)
            bound = self._lagrangian(prices, penalties, reduced)
            if bound < self.bound:
                self.bound, self._prices, self._penalties = bound, prices, penalties
            news = sum(
                self._offer(relaxed, g, _best(values, relaxed.share[g])) for g, values in enumerate(reduced)
            )
            is_done = not news and relaxed.is_exact
            if is_done or self._floor() <= max(enough, relaxed.floor()) or self._clock.is_over(deadline):
                return self._floor()
            exact_prices, exact_penalties = relaxed.solve()
            # Prices half-way to the best ones known swing less; once they bring no column, the exact ones decide.
            half = 0.6 if news else 1.0
            relaxed.is_exact = half == 1.0
            prices = half * exact_prices + (1 - half) * self._prices
            penalties = half * exact_penalties + (1 - half) * self._penalties

    def _floor(self) -> int:
        return int(np.floor(self.bound + TOLERANCE)) if np.isfinite(self.bound) else 2**62

    def _find(self, group: _Group, counts: Ints) -> int | None:
        """Which of a group's columns a node's content is."""
        found = np.flatnonzero((self.patterns[group.patterns] == counts).all(axis=1))
        return int(found[0]) if len(found) else None

    def _offer(self, relaxed: _Relaxed, g: int, chosen: NDArray[np.int64]) -> int:
        group = self._groups[g]
        news = 0
        for column in chosen.tolist():
            if (g, column) in relaxed.known:
                continue
            one = np.array([column])
            value = int(self._values(group, self.program.objective, one)[0])
            floors = [int(self._values(group, floor.measure, one)[0]) for floor in self.program.floors]
            relaxed.add(g, column, value, self.patterns[group.patterns[column]], floors)
            news += 1
        return news

    # The optimum.

    def solve(self, x: Ints, target: int, deadline: float, most_columns: int) -> Bounded:
        """The best placement worth `target` or more, by the columns that one so good can have.

        A placement with column c is worth at most L - (the best of its node at these prices - c's worth): those for
        which that is less than `target` are left out. With more than `most_columns` the best are tried alone, and
        nothing is proven.
        """
        reduced = self._reduced(self._prices, self._penalties)
        gap = self.bound - target + TOLERANCE
        kept = [np.flatnonzero(values >= values.max() - gap) for values in reduced]
        total = sum(map(len, kept))
        is_whole = total <= most_columns
        if not is_whole:
            losses = np.concatenate([values.max() - values[keep] for values, keep in zip(reduced, kept, strict=True)])
            worst = np.partition(losses, most_columns)[most_columns]
            kept = [
                keep[values.max() - values[keep] < worst] for values, keep in zip(reduced, kept, strict=True)
            ]
        found = self._integer(kept, target, deadline)
        if is_whole and found.bound < target:
            self.bound = min(self.bound, target - 1)
        elif is_whole and found.x is not None:
            self.bound = min(self.bound, max(found.bound, target))
        return Bounded(self._floor(), found.x, total)

    def _integer(self, kept: list[NDArray[np.int64]], target: int, deadline: float) -> Bounded:
        program, model = self.program, cp_model.CpModel()
        used: list[tuple[int, int, cp_model.IntVar]] = []
        kinds: list[list[tuple[cp_model.IntVar, int]]] = [[] for _ in program.count]
        worth: list[tuple[cp_model.IntVar, int]] = []
        floors: list[list[tuple[cp_model.IntVar, int]]] = [[] for _ in program.floors]
        for g, (group, keep) in enumerate(zip(self._groups, kept, strict=True)):
            size = len(group.nodes)
            variables = [model.new_int_var(0, size, "") for _ in keep]
            model.add(cp_model.LinearExpr.sum(variables) == size)
            used += [(g, int(column), y) for column, y in zip(keep, variables, strict=True)]
            chosen = self.patterns[group.patterns[keep]]
            for i, k in zip(*(part.tolist() for part in np.nonzero(chosen)), strict=True):
                kinds[k].append((variables[i], int(chosen[i, k])))
            worth += zip(variables, self._values(group, program.objective, keep).tolist(), strict=True)
            for terms, floor in zip(floors, program.floors, strict=True):
                terms += zip(variables, self._values(group, floor.measure, keep).tolist(), strict=True)
        for terms, count in zip(kinds, program.count.tolist(), strict=True):
            if terms:
                model.add(_weighted(terms) <= count)
        for terms, floor in zip(floors, program.floors, strict=True):
            model.add(_weighted(terms) >= floor.least)
        model.add(_weighted(worth) >= target)
        model.maximize(_weighted(worth))
        solver = solver_for(self._clock, deadline)
        status = solver.solve(model)
        self._clock.work(solver.response_proto.deterministic_time + 1e-5 * len(used))
        if status == cp_model.INFEASIBLE:
            return Bounded(target - 1, None)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Bounded(2**62, None)
        x = np.zeros_like(program.home)
        for g, column, y in used:
            times = solver.value(y)
            for _ in range(times):
                x[:, self._groups[g].nodes[self._taken(x, g)]] = self.patterns[self._groups[g].patterns[column]]
        return Bounded(int(np.floor(solver.best_objective_bound + TOLERANCE)), x)

    def _taken(self, x: Ints, g: int) -> int:
        """The first node of a group that has no pattern yet (an empty pattern may be overwritten)."""
        nodes = self._groups[g].nodes
        return next((i for i, node in enumerate(nodes) if not x[:, node].any()), 0)


class _Relaxed:
    """The linear relaxation over the columns offered so far."""

    def __init__(self, program: Program, sizes: list[int]) -> None:
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._objective = self._solver.Objective()
        self._objective.SetMaximization()
        infinity = self._solver.infinity()
        self._kinds = [self._solver.Constraint(-infinity, float(count)) for count in program.count]
        self._groups = [self._solver.Constraint(-infinity, float(size)) for size in sizes]
        self._floors = [self._solver.Constraint(float(floor.least), infinity) for floor in program.floors]
        self.known: set[tuple[int, int]] = set()
        self.share = np.zeros(len(sizes))
        """What a node of each group is worth at the relaxation's prices."""
        self.is_exact = True
        self._value = 0.0

    def add(self, group: int, column: int, value: int, pattern: NDArray[np.int8], floors: Sequence[int]) -> None:
        self.known.add((group, column))
        variable = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._objective.SetCoefficient(variable, float(value))
        self._groups[group].SetCoefficient(variable, 1.0)
        for kind in np.flatnonzero(pattern):
            self._kinds[kind].SetCoefficient(variable, float(pattern[kind]))
        for row, amount in zip(self._floors, floors, strict=True):
            row.SetCoefficient(variable, float(amount))

    def solve(self) -> tuple[Floats, Floats]:
        """Prices of kinds and penalties of floors."""
        self._solver.Solve()
        self._value = self._objective.Value()
        self.share = np.array([row.dual_value() for row in self._groups])
        prices = np.maximum([row.dual_value() for row in self._kinds], 0.0)
        penalties = np.maximum([-row.dual_value() for row in self._floors], 0.0)
        return prices, np.asarray(penalties, dtype=np.float64).reshape(len(self._floors))

    def floor(self) -> int:
        """No bound by this relaxation comes below it."""
        return int(np.floor(self._value + TOLERANCE))


def _best(values: Floats, share: float) -> NDArray[np.int64]:
    """The column worth most, if it is worth more than what the node is worth now."""
    best = int(values.argmax())
    return np.array([best]) if values[best] > share + 1e-7 else np.zeros(0, dtype=np.int64)


def _weighted(terms: Sequence[tuple[cp_model.IntVar, int]]) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum([variable for variable, _ in terms], [weight for _, weight in terms])


def solver_for(clock: Clock, deadline: float) -> cp_model.CpSolver:
    """CP-SAT within what is left; deterministic, however many workers, unless the stopwatch ends it."""
    solver = cp_model.CpSolver()
    parameters, left = solver.parameters, max(clock.left(deadline), 0.001)
    parameters.random_seed = clock.budget.seed
    parameters.num_workers = clock.budget.workers
    parameters.interleave_search = clock.budget.workers > 1
    if clock.budget.is_deterministic:
        parameters.max_deterministic_time = left
    else:
        parameters.max_time_in_seconds = left
    return solver
