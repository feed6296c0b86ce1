"""The problem by node patterns: its bound by column generation, its optimum by the columns that can be part of it.

Columns c ∈ C are (node or group of identical nodes, pattern), y[c] how often it is used. Maximise Σ value·y (8) with at
most as many columns as a group has nodes (9), at most as many pods as there are of a kind (10), and the floors: what is
fixed by earlier stages, and disruption budgets (11). For any prices π ≥ 0 of kinds and λ ≥ 0 of floors

    L(π, λ) = Σ π·count - Σ λ·floor + Σ over nodes of max over patterns (value + λ·floor's value - π·counts)

bounds every placement from above; linear programming finds good prices, the patterns are priced by looking at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.placement.budget import SearchClock
from htas.planning.solvers.placement.integers import UNBOUNDED, IntegerProgram, rounded_down
from htas.planning.solvers.placement.patterns import Patterns, enumerate_patterns, fitting, yielding_in_vain
from htas.planning.solvers.placement.problem import Measure, Program
from htas.planning.solvers.placement.relaxation import Relaxation

_CLOSE = 0.02
"""Prices this close to the best ones leave out nearly as many columns."""
_COLUMNS_AT_ONCE = 24
"""Columns that one pricing of all patterns adds to the relaxation: one by one, 32 like nodes took 500 pricings."""
Floats = NDArray[np.float64]


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

    def __init__(self, program: Program, patterns: Patterns, clock: SearchClock) -> None:
        self.program = program
        self.patterns = patterns
        self._clock = clock
        self._dense = patterns.astype(np.float32)
        self._groups = self._grouped()
        self._prices = np.full(len(program.count), 0.5)
        self._penalties = np.zeros(len(program.floors))
        self.bound = float("inf")

    @classmethod
    def of(cls, program: Program, limit: int, clock: SearchClock) -> Master | None:
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
        # All operands are finite. In single precision OpenBLAS's vector kernels may still raise the processor's flag
        # for invalid operations, on lanes beyond the data; numpy reports that as a warning.
        with np.errstate(invalid="ignore"):
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
        total = float(prices @ self.program.count) - float(penalties @ np.array(self.program.least, dtype=np.float64))
        for group, values in zip(self._groups, reduced, strict=True):
            total += len(group.nodes) * float(values.max())
        return total

    # The bound.

    def tighten(self, x: Ints, deadline: float, enough: int) -> int:
        """Column generation from a placement `x`; returns the bound, at once if it comes down to `enough`."""
        rows = Relaxation(self.program.count, self.program.least, [len(group.nodes) for group in self._groups])
        for g, group in enumerate(self._groups):
            for node in group.nodes:
                chosen = self._find(group, x[:, node])
                if chosen is not None:
                    self._offer(rows, g, np.array([chosen]))
        solved = rows.solve(self._clock.stopwatch_left(deadline))
        if solved is None:
            return self._floor()
        prices, penalties = solved
        is_exact = True
        most = -(-_COLUMNS_AT_ONCE // len(self._groups))
        while True:
            reduced = self._reduced(prices, penalties)
            bound = self._lagrangian(prices, penalties, reduced)
            if bound < self.bound:
                self.bound, self._prices, self._penalties = bound, prices, penalties
            news = sum(self._offer(rows, g, _best(values, rows.share[g], most)) for g, values in enumerate(reduced))
            is_done = (not news and is_exact) or self.bound < rows.value + _CLOSE
            if is_done or self._floor() <= enough or self._clock.is_over(deadline):
                return self._floor()
            solved = rows.solve(self._clock.stopwatch_left(deadline))
            if solved is None:
                return self._floor()
            exact_prices, exact_penalties = solved
            # Prices half-way to the best ones known swing less; once they bring no column, the exact ones decide.
            is_exact = not news
            half = 1.0 if is_exact else 0.6
            prices = half * exact_prices + (1 - half) * self._prices
            penalties = half * exact_penalties + (1 - half) * self._penalties

    def _floor(self) -> int:
        return rounded_down(self.bound)

    def _find(self, group: _Group, counts: Ints) -> int | None:
        """Which of a group's columns a node's content is."""
        found = np.arange(len(group.patterns))
        for kind in np.flatnonzero(counts):
            found = found[self.patterns[group.patterns[found], kind] == counts[kind]]
        found = found[self.patterns[group.patterns[found]].sum(axis=1) == counts.sum()]
        return int(found[0]) if len(found) else None

    def _offer(self, rows: Relaxation, g: int, chosen: NDArray[np.int64]) -> int:
        group = self._groups[g]
        news = 0
        for column in chosen.tolist():
            if rows.knows(g, column):
                continue
            one = np.array([column])
            value = int(self._values(group, self.program.objective, one)[0])
            floors = [int(self._values(group, floor.measure, one)[0]) for floor in self.program.floors]
            rows.add(g, column, value, self.patterns[group.patterns[column]], floors)
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
        gap = self.bound - target + 1e-4
        kept = [np.flatnonzero(values >= values.max() - gap) for values in reduced]
        total = sum(map(len, kept))
        is_whole = total <= most_columns
        if not is_whole:
            losses = np.concatenate([values.max() - values[keep] for values, keep in zip(reduced, kept, strict=True)])
            worst = np.partition(losses, most_columns)[most_columns]
            kept = [keep[values.max() - values[keep] < worst] for values, keep in zip(reduced, kept, strict=True)]
        found = self._integer(kept, target, deadline)
        if is_whole and found.bound < target:
            self.bound = min(self.bound, target - 1)
        elif is_whole and found.x is not None:
            self.bound = min(self.bound, max(found.bound, target))
        return Bounded(self._floor(), found.x, total)

    def _integer(self, kept: list[NDArray[np.int64]], target: int, deadline: float) -> Bounded:
        """(8) to (11) over the columns kept, by branch and bound."""
        program = self.program
        sizes = [len(group.nodes) for group in self._groups]
        may_be_empty = [not self.patterns[group.patterns].any(axis=1).all() for group in self._groups]
        integers = IntegerProgram(program.count, program.least, sizes, may_be_empty, target)
        for g, (group, keep) in enumerate(zip(self._groups, kept, strict=True)):
            values = self._values(group, program.objective, keep)
            floors = np.array([self._values(group, floor.measure, keep) for floor in program.floors])
            integers.add(g, keep, values, self.patterns[group.patterns[keep]], floors)
        outcome = integers.solve(self._clock, deadline)
        if outcome.is_infeasible:
            return Bounded(target - 1, None)
        if outcome.used is None:
            return Bounded(UNBOUNDED, None)
        x = np.zeros_like(program.home)
        for g, column, times in outcome.used:
            for _ in range(times):
                x[:, self._groups[g].nodes[self._taken(x, g)]] = self.patterns[self._groups[g].patterns[column]]
        return Bounded(outcome.bound, x)

    def _taken(self, x: Ints, g: int) -> int:
        """The first node of a group that has no pattern yet (an empty pattern may be overwritten)."""
        nodes = self._groups[g].nodes
        return next((i for i, node in enumerate(nodes) if not x[:, node].any()), 0)


def _best(values: Floats, share: float, most: int) -> NDArray[np.int64]:
    """The columns worth most, of those worth more than what the node is worth now."""
    better = np.flatnonzero(values > share + 1e-7)
    if len(better) > most:
        better = better[np.argpartition(-values[better], most)[:most]]
    return better
