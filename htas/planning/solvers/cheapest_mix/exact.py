"""Little work: all that one machine could hold is written down, and the best choice among it is proved.

With twenty different pods there are 2^20 sets of them. For each, the cheapest machine that holds it; then only sets
are kept that a mix as cheap as the one at hand could use (their price less what they are worth is within the gap), and
that no larger set of the same cost makes superfluous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from ortools.sat.python import cp_model

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.finish import Counts, cost_of
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, Pattern, pattern_of
from htas.planning.solvers.cheapest_mix.pricing import STEPS, solver_with

MOST_SETS = 2**20
MOST_CHOSEN = 30_000
NONE = np.int64(2**62)


def is_small(instance: MixProblem, sets: int = MOST_SETS) -> bool:
    """Whether all sets can be written down. Limits would make the cheapest machine of a set a matter of the others."""
    return not instance.limits and prod(int(count) + 1 for count in instance.counts.tolist()) <= sets


def prove(
    instance: MixProblem, mix: Mapping[Pattern, int], prices: Ints, unit: float, search: float, effort: Effort
) -> tuple[Counts, bool]:
    """(the best mix, whether it is proved to be). `prices ÷ unit` are what items are worth, from a valid cut."""
    sizes = tuple(int(count) + 1 for count in instance.counts.tolist())
    costs, kinds = cheapest_machines(instance, sizes, effort)
    worth = _sums(prices.astype(np.float64) / unit, sizes)
    target = cost_of(mix)
    gap = target - float((prices * instance.counts).sum()) / unit
    useful = (costs < NONE) & (costs - worth <= gap + 1e-6 * target + 1)
    useful &= ~_superfluous(costs, sizes)
    useful[0] = False
    chosen = np.flatnonzero(useful)
    if not len(chosen) or len(chosen) > MOST_CHOSEN:
        return dict(mix), False
    held = np.array(np.unravel_index(chosen, sizes), dtype=np.int64).T
    patterns = [pattern_of(instance, int(kinds[i]), counts) for i, counts in zip(chosen.tolist(), held, strict=True)]
    return _choose(instance, patterns, held, mix, search, effort)


def _sums(each: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Σ each[i] · count[i] of every set, in the order of `np.unravel_index`."""
    total = np.zeros(1, dtype=each.dtype)
    for value, size in zip(each.tolist(), sizes, strict=True):
        total = (total[:, None] + np.arange(size, dtype=each.dtype)[None, :] * each.dtype.type(value)).ravel()
    return total


def longest_level(levels: Sequence[Sequence[int]]) -> Ints:
    """The highest level in every set; `levels` are by item, for none of it, one, two … of it."""
    longest: Ints = np.zeros(1, dtype=np.int64)
    for by_count in levels:
        longest = np.maximum(longest[:, None], np.array(by_count, dtype=np.int64)[None, :]).ravel()
    return longest


def cheapest_machines(instance: MixProblem, sizes: tuple[int, ...], effort: Effort) -> tuple[Ints, Ints]:
    """For every set the least cost of one machine that holds it (`NONE`: none does), and its kind."""
    asked = [_sums(instance.requests[:, r], sizes) for r in range(instance.requests.shape[1])]
    levels = [[0, *[level] * (size - 1)] for level, size in zip(instance.levels.tolist(), sizes, strict=True)]
    holds = np.array(instance.holds, dtype=np.int64)[longest_level(levels)]
    costs: Ints = np.full(prod(sizes), NONE, dtype=np.int64)
    kinds: Ints = np.zeros(prod(sizes), dtype=np.int64)
    for kind in np.argsort(instance.prices, kind="stable").tolist():
        fits = costs == NONE
        for resource, amounts in enumerate(asked):
            fits &= amounts <= instance.free[kind, resource]
        refused = np.where(instance.takes[kind], 0, 1).astype(np.int64)
        if refused.any():
            fits &= _sums(refused, sizes) == 0
        costs[fits] = int(instance.prices[kind]) * holds[fits]
        kinds[fits] = kind
        effort.spend(len(costs) / 100_000)
    return costs, kinds


def _superfluous(costs: Ints, sizes: tuple[int, ...]) -> np.ndarray:
    """Sets to which another item could be added for nothing."""
    cube = costs.reshape(sizes)
    more = np.zeros(sizes, dtype=np.bool_)
    for axis, size in enumerate(sizes):
        if size > 1:
            here = [slice(None)] * len(sizes)
            there = [slice(None)] * len(sizes)
            here[axis], there[axis] = slice(0, size - 1), slice(1, size)
            more[tuple(here)] |= cube[tuple(there)] <= cube[tuple(here)]
    return more.ravel()


def _choose(
    instance: MixProblem, patterns: list[Pattern], held: Ints, mix: Mapping[Pattern, int], search: float, effort: Effort
) -> tuple[Counts, bool]:
    model = cp_model.CpModel()
    most = int(instance.counts.max(initial=1))
    amounts = [model.new_int_var(0, most, "") for _ in patterns]
    for item, count in enumerate(instance.counts.tolist()):
        if count:
            using = np.flatnonzero(held[:, item]).tolist()
            if not using:
                return dict(mix), False
            model.add(
                cp_model.LinearExpr.weighted_sum([amounts[i] for i in using], held[using, item].tolist()) >= count
            )
    costs = [pattern.cost for pattern in patterns]
    objective = cp_model.LinearExpr.weighted_sum(amounts, costs)
    model.add(objective <= cost_of(mix))
    model.minimize(objective)
    solver = solver_with(search)
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    effort.spend(5 + 0.05 * len(patterns) + STEPS * solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return dict(mix), False
    found = {p: value for p, amount in zip(patterns, amounts, strict=True) if (value := solver.value(amount))}
    return found, status == cp_model.OPTIMAL
