"""The finish: how many of each pattern, in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

import numpy as np
from ortools.sat.python import cp_model

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, Pattern, pattern_of
from htas.planning.solvers.cheapest_mix.pricing import STEPS, Floats, solver_with

Counts = dict[Pattern, int]
LARGEST = 2**52


def cost_of(mix: Mapping[Pattern, int]) -> int:
    return sum(pattern.cost * count for pattern, count in mix.items())


def covers(instance: MixProblem, mix: Mapping[Pattern, int]) -> bool:
    held = np.zeros(len(instance.counts), dtype=np.int64)
    for pattern, count in mix.items():
        held += np.array(pattern.counts, dtype=np.int64) * count
    return bool((held >= instance.counts).all())


def within_limits(instance: MixProblem, mix: Mapping[Pattern, int]) -> bool:
    return all(
        sum(limit.usage[pattern.kind] * count for pattern, count in mix.items()) <= limit.left
        for limit in instance.limits
    )


def choose(
    instance: MixProblem, patterns: Sequence[Pattern], hint: Mapping[Pattern, int], search: float, effort: Effort
) -> Counts | None:
    """The cheapest whole numbers of patterns that CP-SAT finds within its share of work; None: it found none."""
    model = cp_model.CpModel()
    most = int(instance.counts.sum())
    amounts = [model.new_int_var(0, most, "") for _ in patterns]
    held = np.array([pattern.counts for pattern in patterns], dtype=np.int64)
    for item, count in enumerate(instance.counts.tolist()):
        using = np.flatnonzero(held[:, item]).tolist()
        if count and not using:
            return None
        if count:
            uses = held[using, item].tolist()
            model.add(cp_model.LinearExpr.weighted_sum([amounts[i] for i in using], uses) >= count)
    for limit in instance.limits:
        uses = [limit.usage[pattern.kind] for pattern in patterns]
        model.add(cp_model.LinearExpr.weighted_sum(amounts, uses) <= max(limit.left, 0))
    costs = [pattern.cost for pattern in patterns]
    scale = max(gcd(*costs), -(-max(costs, default=1) * most // LARGEST), 1)
    model.minimize(cp_model.LinearExpr.weighted_sum(amounts, [-(-cost // scale) for cost in costs]))
    for pattern, amount in zip(patterns, amounts, strict=True):
        model.add_hint(amount, hint.get(pattern, 0))
    solver = solver_with(search)
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    effort.spend(5.0 + 0.05 * len(patterns) + STEPS * solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return {
        pattern: value for pattern, amount in zip(patterns, amounts, strict=True) if (value := solver.value(amount))
    }


def tidied(instance: MixProblem, mix: Mapping[Pattern, int]) -> Counts:
    """The same machines without what is held twice, each of the cheapest kind for what it holds; limits allowing."""
    left = instance.counts.copy()
    tidy: Counts = {}
    for pattern, count in sorted(mix.items(), key=lambda item: (-item[0].cost, item[0].kind, item[0].counts)):
        wanted = np.array(pattern.counts, dtype=np.int64)
        whole = min(count, int((left[wanted > 0] // wanted[wanted > 0]).min(initial=count)))
        if whole:
            best = _cheapest(instance, pattern.kind, wanted)
            tidy[best] = tidy.get(best, 0) + whole
            left -= wanted * whole
        for _ in range(count - whole):
            held = np.minimum(wanted, left)
            if held.any():
                best = _cheapest(instance, pattern.kind, held)
                tidy[best] = tidy.get(best, 0) + 1
                left -= held
    return tidy


def _cheapest(instance: MixProblem, kind: int, held: Ints) -> Pattern:
    """What is held, on the cheapest kind that may hold it: any where nothing limits them, else the one it had."""
    if instance.limits:
        return pattern_of(instance, kind, held)
    fits = (held @ instance.requests <= instance.free).all(axis=1) & instance.takes[:, held > 0].all(axis=1)
    kinds = np.flatnonzero(fits)
    return pattern_of(instance, int(kinds[np.argmin(instance.prices[kinds])]), held)


def widened(mix: Mapping[Pattern, int], kept: Ints, items: int) -> Counts:
    """Patterns of a part of an instance as patterns of the whole."""
    wide: Counts = {}
    for pattern, count in mix.items():
        counts = np.zeros(items, dtype=np.int64)
        counts[kept] = pattern.counts
        wide[Pattern(pattern.kind, pattern.level, tuple(counts.tolist()), pattern.cost)] = count
    return wide


def rounded_down(patterns: Sequence[Pattern], uses: Floats, counts: Ints) -> tuple[Counts, Ints]:
    """(the whole part of a linear programme's solution, what it leaves of the items)."""
    whole: Counts = {}
    left = counts.copy()
    for pattern, use in zip(patterns, uses.tolist(), strict=True):
        count = int(use + 1e-6)
        if count > 0:
            whole[pattern] = count
            left -= np.array(pattern.counts, dtype=np.int64) * count
    return whole, np.maximum(left, 0)


def joined(*mixes: Mapping[Pattern, int]) -> Counts:
    total: Counts = {}
    for mix in mixes:
        for pattern, count in mix.items():
            total[pattern] = total.get(pattern, 0) + count
    return total
