"""Pricing: for prices of items, patterns that are worth more than their machine costs; or the proof there are none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from htas.planning.classes import Bools, Ints
from htas.planning.scaling.cheapest_mix.instance import Effort, Instance, Pattern, pattern_of

Floats = NDArray[np.float64]
WHOLE = 10**8
"""Item prices are made whole numbers such that the dearest machine is worth so many."""
SEARCH = 0.05
"""CP-SAT's own measure of work for one knapsack: nearly all end long before."""


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of machine held for a level: what it may hold are items of that level and shorter ones."""

    kind: int
    level: int


@dataclass(frozen=True, eq=False)
class Pricer:
    """Knapsacks of all kinds and levels of one instance."""

    instance: Instance
    columns: tuple[Column, ...]
    costs: Ints
    most: Ints
    """columns × items: how many fit alone"""
    free: Ints

    @classmethod
    def of(cls, instance: Instance) -> Pricer:
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
        """Patterns filled in several orders of price per use; those worth more than `worth`, the best of each column."""
        found: dict[Pattern, float] = {}
        for order in self._orders(prices):
            filled = self._filled(order)
            gains = filled @ prices - worth
            effort.spend(0.004 * len(order) + 0.5)
            for number in np.flatnonzero(gains > 1e-7 * self.costs).tolist():
                pattern = pattern_of(self.instance, self.columns[number].kind, filled[number])
                found[pattern] = float(gains[number] / max(self.costs[number], 1))
        return sorted(found, key=lambda pattern: (-found[pattern], pattern.kind, pattern.counts))

    def _orders(self, prices: Floats) -> list[list[int]]:
        requests = self.instance.requests.astype(np.float64)
        scale = np.maximum(requests.max(axis=0), 1.0)
        shares = requests / scale
        wanted = np.flatnonzero(prices > 0)
        mixes = [*np.eye(shares.shape[1]), np.ones(shares.shape[1])]
        orders = [np.argsort(-prices[wanted], kind="stable")]
        for mix in mixes:
            use = shares[wanted] @ mix
            orders.append(np.argsort(-prices[wanted] / np.maximum(use, 1e-12), kind="stable"))
        return [wanted[order].tolist() for order in orders]

    def _filled(self, order: list[int]) -> Ints:
        room = self.free.copy()
        filled: Ints = np.zeros_like(self.most)
        for item in order:
            request = self.instance.requests[item]
            needs = np.flatnonzero(request)
            fit = self.most[:, item]
            for resource in needs.tolist():
                fit = np.minimum(fit, room[:, resource] // request[resource])
            filled[:, item] = fit
            room -= fit[:, None] * request[None, :]
        return filled

    def whole(self, prices: Floats) -> Ints:
        """Prices as whole numbers, rounded down, in a unit that fits CP-SAT; zero for those that are nothing."""
        dearest = float((self.most * prices[None, :]).sum(axis=1).max(initial=1.0))
        unit = WHOLE / max(min(dearest, float(self.costs.max(initial=1))), 1e-12)
        whole: Ints = np.maximum(np.floor(prices * unit), 0).astype(np.int64)
        return whole

    def fluid_most(self, number: int, prices: Ints) -> int:
        """No pattern of a column is worth more: the best of bounds on one resource at a time, and on all in one."""
        most = self.most[number]
        items = np.flatnonzero((most > 0) & (prices > 0))
        if not len(items):
            return 0
        requests, free = self.instance.requests[items], self.free[number]
        best = int((prices[items] * most[items]).sum())
        usable = free > 0
        shares = requests[:, usable] / free[usable]
        for use in [*shares.T, shares.mean(axis=1)]:
            best = min(best, _fluid(prices[items], most[items], use))
        return best

    def exact(self, number: int, prices: Ints, effort: Effort) -> tuple[Ints, int]:
        """(the best pattern found, what no pattern of the column exceeds), in whole prices."""
        items = np.flatnonzero((self.most[number] > 0) & (prices > 0)).tolist()
        effort.spend(2.0 + 0.15 * len(items))
        model = cp_model.CpModel()
        amounts = [model.new_int_var(0, int(self.most[number, item]), "") for item in items]
        for resource, room in enumerate(self.free[number].tolist()):
            uses = [int(self.instance.requests[item, resource]) for item in items]
            if sum(use * int(self.most[number, item]) for use, item in zip(uses, items, strict=True)) > room:
                model.add(cp_model.LinearExpr.weighted_sum(amounts, uses) <= room)
        model.maximize(cp_model.LinearExpr.weighted_sum(amounts, [int(prices[item]) for item in items]))
        solver = solver_with(SEARCH)
        status = solver.solve(model)
        effort.spend(1000 * solver.response_proto.deterministic_time)
        counts: Ints = np.zeros(len(prices), dtype=np.int64)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return counts, self.fluid_most(number, prices)
        for item, amount in zip(items, amounts, strict=True):
            counts[item] = solver.value(amount)
        value = int((counts * prices).sum())
        most = value if status == cp_model.OPTIMAL else int(np.ceil(solver.best_objective_bound))
        return counts, max(value, most)


def _fluid(prices: Ints, most: Ints, use: Floats) -> int:
    """The fractional knapsack of capacity 1, rounded up and a little more for what floating point may have lost."""
    with np.errstate(divide="ignore"):
        order = np.argsort(-prices / np.maximum(use, 1e-300), kind="stable")
    used = np.cumsum((use * most)[order])
    worth = np.cumsum((prices * most)[order])
    last = int(np.searchsorted(used, 1.0))
    if last >= len(order):
        return int(worth[-1])
    before_use = float(used[last - 1]) if last else 0.0
    before = int(worth[last - 1]) if last else 0
    item = order[last]
    part = (1.0 - before_use) / float(use[item]) * float(prices[item])
    return before + int(part * (1 + 1e-9)) + 2


def solver_with(search: float) -> cp_model.CpSolver:
    """One worker, a fixed seed and CP-SAT's own measure of work: the same question has the same answer."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = search
    return solver
