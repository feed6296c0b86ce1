"""The mix: from an instance and a mix at hand to the cheapest one found, with the bound that proves how good it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.bounds import Cut, farley, resource_cuts, whole_bound
from htas.planning.solvers.cheapest_mix.exact import is_small, prove
from htas.planning.solvers.cheapest_mix.finish import (
    Counts,
    choose,
    cost_of,
    covers,
    joined,
    rounded_down,
    tidied,
    widened,
    within_limits,
)
from htas.planning.solvers.cheapest_mix.generation import Generated, generate
from htas.planning.solvers.cheapest_mix.instance import Effort, Limit, MixProblem, Pattern, pattern_of
from htas.planning.solvers.cheapest_mix.pricing import Pricer
from htas.planning.solvers.cheapest_mix.shapes import optimum

GOOD = 5e-4
"""Searching on is not worth it where a mix is proved within so much of the best."""
SEARCH, LITTLE_SEARCH = 0.3, 0.05
"""CP-SAT's own measure of work for one choice among patterns: of the whole, and of a part looked at again."""
PROOF = 1.5
"""The same for the last choice where there is little work."""
DYNAMIC, LITTLE_DYNAMIC = 0.8, 0.05
"""The share of the effort that dynamic programming may take: for the whole, and for a part looked at again."""
PODS_AGAIN = (40, 80, 24, 120)
"""So many pods, about, are looked at again at a time."""
MACHINES_AGAIN = 4
"""And so many machines at least."""
FEW_SETS = 2**14
CHOOSE_EVERY = 8
TRIES = 40


@dataclass(frozen=True, slots=True)
class Mix:
    """Machines by pattern, and what no mix for this instance undercuts (limits aside)."""

    counts: Counts
    cost: int
    bound: int
    is_proved: bool = False


def cheapest(instance: MixProblem, hints: Mapping[Pattern, int], effort: Effort) -> Mix | None:
    """The cheapest mix found, no dearer than `hints` where they hold all items; None: none was found within the limits.

    `hints` are machines of another way to buy: good patterns at least.
    """
    small, kept, stands_in = instance.in_64_bits().undominated()
    mix = _cheapest(small, _on_kinds(hints, stands_in, small), effort)
    if mix is None:
        return None
    counts = _on_kinds(mix.counts, kept, instance)
    if instance.is_exact_in_64_bits:
        return replace(mix, counts=counts)
    return Mix(counts, cost_of(counts), 0)  # in coarser units nothing is proved


def _on_kinds(mix: Mapping[Pattern, int], kinds: Ints, instance: MixProblem) -> Counts:
    """The same machines, of the kinds that stand for theirs in another instance."""
    found: Counts = {}
    for pattern, count in mix.items():
        moved = pattern_of(instance, int(kinds[pattern.kind]), np.array(pattern.counts, dtype=np.int64))
        found[moved] = found.get(moved, 0) + count
    return found


def _cheapest(instance: MixProblem, hints: Mapping[Pattern, int], effort: Effort) -> Mix | None:
    optimal = optimum(instance, DYNAMIC, effort)
    if optimal is not None:
        return Mix(optimal, cost_of(optimal), cost_of(optimal), is_proved=True)
    generated = generate(instance, hints, effort)
    is_whole = bool(hints) and covers(instance, hints) and within_limits(instance, hints)
    search = _Search(instance, tidied(instance, hints) if is_whole else None, generated, effort)
    if generated.is_feasible:
        search.improve()
    if search.best is None:
        return None
    return Mix(search.best, search.cost, min(search.bound, search.cost), search.is_proved)


def _whole_bound(instance: MixProblem, generated: Generated, cost: int) -> int:
    pricer = Pricer.of(instance)
    return whole_bound([*generated.cuts[-6:], *resource_cuts(instance, pricer)], pricer.costs, cost)


@dataclass(slots=True)
class _Search:
    """The ways to whole numbers, one after another, until the best is good or the effort is over."""

    instance: MixProblem
    best: Counts | None
    generated: Generated
    effort: Effort
    bound: int = field(default=0)
    is_proved: bool = field(default=False)
    pool: dict[Pattern, None] = field(default_factory=dict)
    """All patterns met: those of a part are what the whole lacks for its last machines."""
    seen: set[frozenset[tuple[Pattern, int]]] = field(default_factory=set)

    @property
    def cost(self) -> int:
        return cost_of(self.best or {})

    @property
    def is_done(self) -> bool:
        is_good = self.best is not None and self.cost - self.bound <= GOOD * self.cost
        return self.is_proved or is_good or self.effort.is_over

    def improve(self) -> None:
        self.pool = dict.fromkeys(self.generated.patterns)
        self._round()
        self._choose()
        if self.best is None:
            return
        self.bound = max(self.generated.bound, _whole_bound(self.instance, self.generated, self.cost))
        if not self.is_done and is_small(self.instance):
            self._prove()
        for number in range(TRIES):
            if self.is_done:
                return
            self._look_again(number)
            if number % CHOOSE_EVERY == CHOOSE_EVERY - 1 and not self.is_done:
                self._choose()

    def _choose(self) -> None:
        """The best of all patterns met that could be part of anything better."""
        patterns = list(self.pool)
        cut = _best_cut(self.instance, self.generated)
        if cut is not None and self.best is not None and not self.instance.limits:
            prices, unit = _worths(self.instance, cut)
            gap = self.cost - float(prices @ self.instance.counts) / unit
            held = np.array([pattern.counts for pattern in patterns], dtype=np.int64)
            lost = np.array([p.cost for p in patterns], dtype=np.float64) - held @ prices / unit
            patterns = [patterns[i] for i in np.flatnonzero(lost <= gap * (1 + 1e-6) + 1).tolist()]
        self._offer(choose(self.instance, patterns, self.best or {}, SEARCH, self.effort))

    def _offer(self, mix: Counts | None) -> None:
        """Take a mix if it is better and holds everything within the limits."""
        if mix is None or not covers(self.instance, mix):
            return
        mix = tidied(self.instance, mix)
        if (self.best is None or cost_of(mix) < self.cost) and within_limits(self.instance, mix):
            self.best = mix

    def _round(self) -> None:
        """The linear programme's whole part, and the cheapest mix for what that leaves."""
        whole, left = rounded_down(self.generated.patterns, self.generated.uses, self.instance.counts)
        rest = self._rest(left, whole)
        if rest is not None:
            self._offer(joined(whole, rest))

    def _rest(self, left: Ints, kept_mix: Mapping[Pattern, int]) -> Counts | None:
        """A cheap mix for some of the items, beside the machines kept."""
        if not left.any():
            return {}
        part, kept = self.instance.part(left, _less(self.instance.limits, kept_mix))
        optimal = optimum(part, LITTLE_DYNAMIC, self.effort)
        if optimal is not None:
            return widened(optimal, kept, len(left))
        generated = generate(part, (), self.effort)
        mix = choose(part, generated.patterns, {}, LITTLE_SEARCH, self.effort)
        self.pool.update(dict.fromkeys(widened(dict.fromkeys(generated.patterns, 1), kept, len(left))))
        if mix is None:
            return None
        mix = tidied(part, mix)
        if is_small(part, FEW_SETS) and (cut := _best_cut(part, generated)) is not None:
            mix, _ = prove(part, mix, *_worths(part, cut), LITTLE_SEARCH, self.effort)
        return widened(mix, kept, len(left))

    def _prove(self) -> None:
        cut = _best_cut(self.instance, self.generated)
        if cut is not None and self.best is not None:
            mix, proved = prove(self.instance, self.best, *_worths(self.instance, cut), PROOF, self.effort)
            self._offer(mix)
            if proved:
                self.is_proved, self.bound = True, self.cost

    def _look_again(self, number: int) -> None:
        """Some machines are taken apart and bought anew: those least worth their price, and others beside them."""
        machines = list(self._machines(number))
        taken: Counts = {}
        pods = 0
        for pattern in machines:
            taken[pattern] = taken.get(pattern, 0) + 1
            pods += sum(pattern.counts)
            if pods >= PODS_AGAIN[number % len(PODS_AGAIN)] and sum(taken.values()) >= MACHINES_AGAIN:
                break
        tried = frozenset(taken.items())
        if tried in self.seen:
            return
        self.seen.add(tried)
        others = {p: n - taken.get(p, 0) for p, n in (self.best or {}).items() if n > taken.get(p, 0)}
        left = sum(
            (np.array(p.counts, dtype=np.int64) * n for p, n in taken.items()), np.zeros_like(self.instance.counts)
        )
        rest = self._rest(left, others)
        if rest is not None:
            self._offer(joined(others, rest))

    def _machines(self, number: int) -> Iterator[Pattern]:
        """The machines of the best mix, each once, the least worth their price first; from try to try others lead."""
        cut = self.generated.cuts[-1] if self.generated.cuts else None
        worth = np.array(cut.prices if cut is not None else self.instance.counts, dtype=np.float64)
        each = [p for p, n in (self.best or {}).items() for _ in range(n)]
        each.sort(key=lambda p: (float(np.array(p.counts) @ worth) / max(p.cost, 1), p.kind, p.counts))
        if number:
            step = 1 + (number * 7) % max(1, len(each) - 1)
            head, tail = each[:1], each[1:]
            each = [*head, *(tail[(i * step + number) % len(tail)] for i in range(len(tail)))] if tail else head
            seen: dict[int, int] = {}
            each = [p for p in each if _count(seen, p) <= (self.best or {}).get(p, 0)]
        yield from each


def _count(seen: dict[int, int], pattern: Pattern) -> int:
    seen[id(pattern)] = seen.get(id(pattern), 0) + 1
    return seen[id(pattern)]


def _less(limits: tuple[Limit, ...], mix: Mapping[Pattern, int]) -> tuple[Limit, ...]:
    """What machines leave of the limits."""
    return tuple(
        Limit(limit.usage, limit.left - sum(limit.usage[pattern.kind] * count for pattern, count in mix.items()))
        for limit in limits
    )


def _best_cut(instance: MixProblem, generated: Generated) -> Cut | None:
    """The cut of the highest bound; None where none has any, as where a machine that costs nothing holds something."""
    costs = Pricer.of(instance).costs
    bounds = [(farley(cut, costs), cut) for cut in generated.cuts]
    return max((each for each in bounds if each[0] > 0), key=lambda each: each[0], default=(0, None))[1]


def _worths(instance: MixProblem, cut: Cut) -> tuple[Ints, float]:
    """The items' prices of a cut, and the unit in which no machine holds more than it costs."""
    costs = Pricer.of(instance).costs.tolist()
    unit = max(worth / cost for worth, cost in zip(cut.worths, costs, strict=True) if worth)
    return np.array(cut.prices, dtype=np.int64), unit
