"""Pricing: for prices of items, patterns that are worth more than their machine costs; or the proof there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from htas.planning.cluster.classes import Bools, Ints
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, Pattern, pattern_of

Floats = NDArray[np.float64]
WHOLE = 10**8
"""Item prices are made whole numbers such that the dearest machine is worth so many."""
SEARCH = 0.05
"""CP-SAT's own measure of work for one knapsack: nearly all end long before."""


STEPS = 4500
"""Of effort, for one of CP-SAT's units of work: they take three to five seconds where the models are small."""
GAIN = 1e-7
"""A pattern is worth taking in when it gains so much of its machine's cost: below, floating point speaks."""
BIG = np.int64(2**31)
FEW_FILLINGS = 2**11
ALL = slice(None)
ENOUGH = 2e-4
"""A knapsack proved so near is left; what is proved counts."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Repeatable disorder: the same numbers every time a plan is made."""

    source: np.random.Generator
    times: int = 8
    strength: float = 0.25

    def factors(self, shape: tuple[int, ...]) -> Floats:
        factors: Floats = np.exp(self.source.normal(0.0, self.strength, shape))
        return factors


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of machine held for a level: what it may hold are items of that level and shorter ones."""

    kind: int
    level: int


@dataclass(frozen=True, eq=False)
class Pricer:
    """Knapsacks of all kinds and levels of one instance."""

    instance: MixProblem
    columns: tuple[Column, ...]
    costs: Ints
    most: Ints
    """columns × items: how many fit alone"""
    free: Ints
    """columns × resources: that of each column's kind"""

    @classmethod
    def of(cls, instance: MixProblem) -> Pricer:
        levels = sorted(set(instance.levels.tolist()))
        columns = [
            Column(kind, level)
            for kind in range(len(instance.prices))
            for level in levels
            if (instance.most[kind][instance.levels == level] > 0).any()
        ]
        kinds = np.array([column.kind for column in columns], dtype=np.int64)
        tops = np.array([column.level for column in columns], dtype=np.int64)
        allowed: Bools = instance.levels[None, :] <= tops[:, None]
        costs = np.array([instance.cost(c.kind, c.level) for c in columns], dtype=np.int64)
        return cls(instance, tuple(columns), costs, np.where(allowed, instance.most[kinds], 0), instance.free[kinds])

    def greedy(self, prices: Floats, worth: Floats, effort: Effort) -> list[Pattern]:
        """Patterns of every column filled in several orders of price per use: those worth more than `worth`."""
        keys = self._keys(prices)
        columns = np.tile(np.arange(len(self.columns)), len(keys))
        orders = np.repeat(np.argsort(-keys, axis=1, kind="stable"), len(self.columns), axis=0)
        return self._better(columns, None, orders, prices, worth, effort)

    def near(
        self, patterns: Sequence[Pattern], prices: Floats, worth: Floats, noise: Noise, effort: Effort
    ) -> list[Pattern]:
        """Patterns like those given: half of what one holds is put back, and the room filled in a disturbed order."""
        numbers = {column: number for number, column in enumerate(self.columns)}
        known = [(numbers[Column(p.kind, p.level)], p.counts) for p in patterns if Column(p.kind, p.level) in numbers]
        if not known:
            return []
        columns = np.repeat([number for number, _ in known], noise.times)
        held = np.repeat(np.array([counts for _, counts in known], dtype=np.int64), noise.times, axis=0)
        kept = noise.source.binomial(held, noise.source.uniform(0.2, 0.9, (len(held), 1)))
        keys = self._keys(prices)[noise.source.integers(0, 2 + self.requests.shape[1], len(held))]
        orders = np.argsort(-keys * noise.factors(keys.shape), axis=1, kind="stable")
        return self._better(columns, kept, orders, prices, worth, effort)

    @property
    def requests(self) -> Ints:
        return self.instance.requests

    def _keys(self, prices: Floats) -> Floats:
        """Items' prices by what they use: as they are, by each resource, and by all of them."""
        shares = self.requests / np.maximum(self.requests.max(axis=0), 1.0)
        mixes = [*np.eye(shares.shape[1]), np.ones(shares.shape[1])]
        return np.array([prices, *(prices / np.maximum(shares @ mix, 1e-12) for mix in mixes)])

    def _better(
        self, columns: Ints, kept: Ints | None, orders: Ints, prices: Floats, worth: Floats, effort: Effort
    ) -> list[Pattern]:
        filled = self._filled(columns, kept, orders)
        effort.spend(filled.size * 1e-4 + 1.0)
        gains = (filled @ prices - worth[columns]) / np.maximum(self.costs[columns], 1)
        found: dict[Pattern, float] = {}
        for row in np.flatnonzero(gains > GAIN).tolist():
            pattern = pattern_of(self.instance, self.columns[columns[row]].kind, filled[row])
            found.setdefault(pattern, float(gains[row]))
        return sorted(found, key=lambda pattern: (-found[pattern], pattern.kind, pattern.counts))

    def _filled(self, columns: Ints, kept: Ints | None, orders: Ints) -> Ints:
        """rows × items: machines of the given columns filled, each in its own order, beside what they keep."""
        rows = np.arange(len(columns))
        filled: Ints = np.zeros((len(columns), len(self.requests)), dtype=np.int64) if kept is None else kept.copy()
        room = self.free[columns] - filled @ self.requests
        most = self.most[columns] - filled
        asked = np.maximum(self.requests, 1)
        is_asked = self.requests > 0
        for items in orders.T:
            fit = np.where(is_asked[items], room // asked[items], BIG).min(axis=1)
            fit = np.minimum(fit, most[rows, items])
            filled[rows, items] += fit
            room -= fit[:, None] * self.requests[items]
        return filled

    def whole(self, prices: Floats) -> Ints:
        """Prices as whole numbers, rounded down, in a unit that fits CP-SAT; zero for those that are nothing."""
        dearest = float((self.most * prices[None, :]).sum(axis=1).max(initial=1.0))
        unit = WHOLE / max(min(dearest, float(self.costs.max(initial=1))), 1e-12)
        whole: Ints = np.maximum(np.floor(prices * unit), 0).astype(np.int64)
        return whole

    def fluid_most(self, number: int, prices: Ints) -> int:
        """What no pattern of a column is worth more than."""
        return int(self.fluid_mosts(prices, slice(number, number + 1))[0])

    def fluid_mosts(self, prices: Ints, columns: slice = ALL) -> Ints:
        """No pattern of a column is worth more: the best of bounds on one resource at a time, and on all in one.

        For all columns together, since there may be thousands: one by one, 2,000 of them took 0.4 s for each prices.
        """
        most: Ints = np.where(prices > 0, self.most[columns], 0)
        free = self.free[columns]
        usable = free > 0
        shares = np.where(usable[:, None, :], self.requests[None, :, :] / np.maximum(free, 1)[:, None, :], 0.0)
        best: Ints = (prices * most).sum(axis=1)
        for resource in range(free.shape[1]):
            worth = _fluid(prices, most, shares[:, :, resource])
            best = np.where(usable[:, resource], np.minimum(best, worth), best)
        together = shares.sum(axis=2) / np.maximum(usable.sum(axis=1), 1)[:, None]
        least: Ints = np.where(usable.any(axis=1), np.minimum(best, _fluid(prices, most, together)), best)
        return least

    def exact(self, number: int, prices: Ints, effort: Effort) -> tuple[Ints, int]:
        """(the best pattern found, what no pattern of the column exceeds), in whole prices."""
        items = np.flatnonzero((self.most[number] > 0) & (prices > 0)).tolist()
        if prod(int(self.most[number, item]) + 1 for item in items) <= FEW_FILLINGS:
            effort.spend(0.2)
            return self._tried(number, prices, items)
        effort.spend(2.0 + 0.15 * len(items))
        model = cp_model.CpModel()
        amounts = [model.new_int_var(0, int(self.most[number, item]), "") for item in items]
        for resource, room in enumerate(self.free[number].tolist()):
            uses = [int(self.requests[item, resource]) for item in items]
            if sum(use * int(self.most[number, item]) for use, item in zip(uses, items, strict=True)) > room:
                model.add(cp_model.LinearExpr.weighted_sum(amounts, uses) <= room)
        model.maximize(cp_model.LinearExpr.weighted_sum(amounts, [int(prices[item]) for item in items]))
        solver = solver_with(SEARCH)
        solver.parameters.relative_gap_limit = ENOUGH
        status = solver.solve(model)
        effort.spend(STEPS * solver.response_proto.deterministic_time)
        counts: Ints = np.zeros(len(prices), dtype=np.int64)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return counts, self.fluid_most(number, prices)
        for item, amount in zip(items, amounts, strict=True):
            counts[item] = solver.value(amount)
        value = int((counts * prices).sum())
        # Within the gap CP-SAT says OPTIMAL too, so its bound is taken; values are far below 2^53, hence exact.
        return counts, max(value, int(np.ceil(solver.best_objective_bound)))

    def _tried(self, number: int, prices: Ints, items: list[int]) -> tuple[Ints, int]:
        """The same by trying every filling: setting CP-SAT up takes longer for a handful of pods."""
        sizes = [int(self.most[number, item]) + 1 for item in items]
        fillings: Ints = np.indices(sizes).reshape(len(items), prod(sizes)).T
        fits = (fillings @ self.requests[items] <= self.free[number]).all(axis=1)
        worths = np.where(fits, fillings @ prices[items], -1)
        best = int(worths.argmax())
        counts: Ints = np.zeros(len(prices), dtype=np.int64)
        counts[items] = fillings[best]
        return counts, int(worths[best])


def _fluid(prices: Ints, most: Ints, use: Floats) -> Ints:
    """Of each row the fractional knapsack of capacity 1, rounded up and a little more for what floating point may lose.

    `most` and `use` are rows × items: how many of an item there may be, and what one of it uses.
    """
    with np.errstate(divide="ignore"):
        order = np.argsort(-prices / np.maximum(use, 1e-280), axis=1, kind="stable")
    used = np.cumsum(np.take_along_axis(use * most, order, axis=1), axis=1)
    worth = np.cumsum(np.take_along_axis(prices * most, order, axis=1), axis=1)
    rows = np.arange(len(use))
    last = (used < 1.0).sum(axis=1)
    is_whole = last >= use.shape[1]
    last = np.minimum(last, use.shape[1] - 1)
    item = order[rows, last]
    before = np.where(last > 0, worth[rows, last - 1], 0)
    before_use = np.where(last > 0, used[rows, last - 1], 0.0)
    part = (1.0 - before_use) / np.maximum(use[rows, item], 1e-280) * prices[item]
    broken = before + (np.where(is_whole, 0.0, part) * (1 + 1e-9)).astype(np.int64) + 2
    bound: Ints = np.where(is_whole, worth[:, -1], broken)
    return bound


def solver_with(search: float) -> cp_model.CpSolver:
    """One worker, a fixed seed and CP-SAT's own measure of work: the same question has the same answer."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = search
    return solver
