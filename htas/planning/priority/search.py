"""The search, tier by tier from the highest priority: first the most placed, then the fewest disturbed.

What it holds is at any time a whole, valid placement that is lexicographically no worse than the present one; each
stage improves it or proves that it cannot be improved, and what a stage reached is kept by those after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htas.planning.classes import Ints
from htas.planning.priority.bounds import most_by_room
from htas.planning.priority.budget import Clock, Shares
from htas.planning.priority.filling import must_waste
from htas.planning.priority.greedy import best_fit, by_importance, settle
from htas.planning.priority.master import Master
from htas.planning.priority.overflow import OverflowSearch
from htas.planning.priority.problem import Counts, Problem, load
from htas.planning.priority.stages import Stage, searched_kinds, slice_of, stays_put

_FIRST_STEPS = 150
"""Exchanges tried for one more pod before bounds are asked: it mostly takes less than 100 where there is a place."""
_ATTEMPTS = 5
_FOR_PATTERNS = 0.75
_PATTERNS_PER_S = 300_000
_MOST_PATTERNS = 800_000
_HALVES_PER_S = 400_000
_MOST_HALVES = 4_000_000
_MOST_ROOM = 1000
"""Nodes × resources: with more, patterns are too many however alike the nodes are."""
_MOST_COLUMNS = 3000
_COLUMNS_PER_S = 2000
"""Branch and bound looks at the clock seldom: with 12,000 columns and 2 s it took 38 s, with these it ends in time."""
_NEIGHBOURHOODS_WITHOUT_GAIN = 200


@dataclass(slots=True)
class Reached:
    """What a tier came to; bounds hold for every placement that is as good for the tiers above."""

    placed_bound: int
    is_placing_proven: bool = False
    stays_bound: int = 0
    is_staying_proven: bool = False


class Search:
    """One search over a problem."""

    def __init__(self, problem: Problem, clock: Clock) -> None:
        self._problem = problem
        self._clock = clock
        self._random = np.random.default_rng(clock.budget.seed)
        self._all_stay = -1
        self._is_exact_above = True
        """Whether every stage so far was proven: only then do bounds of later ones mean the best there is."""
        self.x: Counts = problem.home.copy()
        self.reached: list[Reached] = []
        best_fit(problem, self.x, by_importance(problem, np.ones(problem.kinds, dtype=np.bool_)))

    def run(self) -> None:
        """All tiers within the budget."""
        shares = Shares(self._clock, self._problem.tiers)
        for tier in range(self._problem.tiers):
            reached = Reached(self._simple_bound(tier))
            self.reached.append(reached)
            self._place(Stage(tier, False, self._all_stay), reached, shares.deadline())
            self._stay(Stage(tier, True, self._all_stay), reached, shares.deadline())

    def _simple_bound(self, tier: int) -> int:
        above = self.reached[-1].placed_bound if tier else 0
        here = self._problem.tier == tier
        return above + int(self._problem.count[here].sum())

    # (A) The most pods placed.

    def _place(self, stage: Stage, reached: Reached, deadline: float) -> None:
        reached.placed_bound = min(reached.placed_bound, self._bound_by_room(stage))
        if not self._is_reached(stage, reached):
            self._add_by_preempting(stage)
        if not self._is_reached(stage, reached):
            self._add_by_exchanges(stage, reached, _FIRST_STEPS, deadline)
        if not self._is_reached(stage, reached):
            reached.placed_bound = min(reached.placed_bound, self._bound_by_filling(stage, reached, deadline))
        attempt = 0
        while not self._is_reached(stage, reached) and not self._clock.is_over(deadline):
            # Patterns and exchanges by turns: each starts from what the other has found, the latter with more steps.
            most = self._clock.now() + _FOR_PATTERNS * self._clock.left(deadline)
            bound = self._by_patterns(stage, reached.placed_bound, most)
            reached.placed_bound = min(reached.placed_bound, bound)
            attempt += 1
            self._add_by_exchanges(stage, reached, _FIRST_STEPS * 8**attempt, deadline, attempt)
            if attempt == _ATTEMPTS:
                break
        reached.is_placing_proven = self._is_reached(stage, reached)

    def _bound_by_filling(self, stage: Stage, reached: Reached, deadline: float) -> int:
        """One less where all pods would have to fill every node to the brim, and some node cannot be."""
        problem = self._problem
        if reached.placed_bound < problem.wanted(stage.tier):
            return reached.placed_bound
        kept = stays_put(problem, stage)
        kinds = (problem.tier <= stage.tier) & ~kept
        room = problem.capacity - load(problem.home[kept], problem.requests[kept])
        limit = min(_MOST_HALVES, int(_HALVES_PER_S * self._clock.left(deadline)))
        is_wasted = must_waste(problem.requests[kinds], problem.count[kinds], problem.allowed[kinds], room, limit)
        self._clock.work(0.2)
        return reached.placed_bound - is_wasted

    def _is_reached(self, stage: Stage, reached: Reached) -> bool:
        return self._problem.placed(self.x, stage.tier) >= reached.placed_bound

    def _bound_by_room(self, stage: Stage) -> int:
        problem = self._problem
        kept = stays_put(problem, stage)
        kinds = (problem.tier <= stage.tier) & ~kept
        room = problem.capacity - load(problem.home[kept], problem.requests[kept])
        above = kinds & (problem.tier < stage.tier)
        # Pods above that all have places take their room whatever is done; else only the count of them is fixed.
        upto = stage.tier - 1
        must = above & bool(stage.tier and problem.placed(self.x, upto) == problem.wanted(upto))
        fits_any = (problem.requests <= room.max(axis=0, initial=0)).all(axis=1) & problem.allowed.any(axis=1)
        found = most_by_room(problem.requests[kinds], problem.count[kinds], must[kinds], room, fits_any[kinds])
        return found + int(problem.home[kept].sum())

    def _add_by_preempting(self, stage: Stage) -> None:
        """What fits if less important pods give way, the least important first, nobody else disturbed."""
        problem = self._problem
        upto = np.asarray(problem.tier <= stage.tier)
        for level in range(problem.tiers - 1, stage.tier - 1, -1):
            if problem.placed(self.x, stage.tier) == problem.wanted(stage.tier):
                return
            kept = (problem.tier <= level) | (problem.budget_of >= 0)
            x = np.where(kept[:, None], self.x, 0)
            best_fit(problem, x, by_importance(problem, upto))
            self._accept(stage, x)

    def _add_by_exchanges(self, stage: Stage, reached: Reached, steps: int, deadline: float, attempt: int = 0) -> None:
        """One more pod after another, each by exchanges of pods among all nodes, until one finds no place."""
        problem = self._problem
        kinds = searched_kinds(problem, stage)
        x = np.where(kinds[:, None], self.x, 0)
        may_wait = np.asarray(problem.tier == stage.tier)
        kinds = kinds & (problem.tier <= stage.tier)
        seed = self._clock.budget.seed + 1000 * attempt + stage.tier
        search = OverflowSearch(problem, x, self._frozen(stage, x), may_wait, kinds, seed, self._clock)
        missing = reached.placed_bound - self._problem.placed(self.x, stage.tier)
        found: Counts | None = None
        while missing > 0 and search.waiting and not self._clock.is_over(deadline):
            search.add_one()
            if not search.repair(steps, deadline):
                break
            found, missing = search.placement(), missing - 1
        if found is not None:
            self._accept(stage, np.where((problem.tier <= stage.tier)[:, None], found, x))

    def _frozen(self, stage: Stage, x: Counts) -> Counts:
        """Pods that exchanges leave where they are: what earlier stages keep, budgets cover, or yields at home.

        And what made others yield: were it to leave again, they would have gone in vain.
        """
        problem = self._problem
        at_home = np.minimum(x, problem.home)
        still = (problem.tier < stage.tier) | problem.yields | (problem.budget_of >= 0)
        frozen = np.where(still[:, None], at_home, 0)
        lower_covered = (problem.tier > stage.tier) & (problem.budget_of >= 0)
        frozen[lower_covered] = x[lower_covered]
        yielded = ((problem.home > x) & (problem.yields & (problem.tier <= stage.tier))[:, None]).any(axis=0)
        frozen[:, yielded] = x[:, yielded]
        return np.asarray(frozen)

    def _accept(self, stage: Stage, x: Counts) -> bool:
        """Take a placement of the tiers up to the stage's, completed by those below, unless it is worse or invalid."""
        whole = settle(self._problem, x, self.x, stage.tier)
        if not self._problem.is_valid(whole) or self._problem.score(whole) < self._problem.score(self.x):
            return False
        self.x = whole
        return True

    # By node patterns.

    def _by_patterns(self, stage: Stage, bound: int, deadline: float) -> int:
        """The bound by node patterns; what they find is taken. Where there are too many patterns: the bound given."""
        left = self._clock.left(deadline)
        if not left or self._problem.capacity.size > _MOST_ROOM:
            return bound
        part = slice_of(self._problem, stage, self.x)
        limit = min(_MOST_PATTERNS, int(_PATTERNS_PER_S * left))
        master = Master.of(part.program, limit, self._clock)
        if master is None:
            return bound
        value = stage.value(self._problem, self.x)
        rest = value - part.program.objective.of(part.part(self.x), part.program.home)
        bound = min(bound, rest + master.tighten(part.part(self.x), deadline, value - rest))
        while bound > value and not self._clock.is_over(deadline):
            found = master.solve(part.part(self.x), value + 1 - rest, deadline, self._most_columns(deadline))
            bound = min(bound, rest + found.bound)
            if found.x is None or not self._accept(stage, part.whole(self.x, found.x)):
                break
            value = stage.value(self._problem, self.x)
        return max(bound, value)

    def _most_columns(self, deadline: float) -> int:
        return min(_MOST_COLUMNS, 200 + int(_COLUMNS_PER_S * self._clock.left(deadline)))

    # (B) The fewest disturbed.

    def _stay(self, stage: Stage, reached: Reached, deadline: float) -> None:
        problem = self._problem
        reached.stays_bound = problem.most_stays(stage.tier)
        value = problem.stays(self.x, stage.tier)
        if value < reached.stays_bound:
            self._improve_by_neighbourhoods(stage, reached.stays_bound, deadline, 20)
            reached.stays_bound = self._by_patterns(stage, reached.stays_bound, deadline)
            self._improve_by_neighbourhoods(stage, reached.stays_bound, deadline, _NEIGHBOURHOODS_WITHOUT_GAIN)
            value = problem.stays(self.x, stage.tier)
        reached.is_staying_proven = reached.is_placing_proven and value >= reached.stays_bound
        if value == problem.most_stays(stage.tier):
            self._all_stay = stage.tier

    def _improve_by_neighbourhoods(self, stage: Stage, bound: int, deadline: float, patience: int) -> None:
        """A few nodes at a time are solved by themselves, all others left as they are."""
        failures, longest = 0, 0.0
        # On 1,000 nodes one takes 0.2 s: one that would end late is not begun.
        while failures < patience and self._clock.left(deadline) > longest:
            began = self._clock.now()
            value = stage.value(self._problem, self.x)
            nodes = self._neighbourhood(stage)
            if value >= bound or nodes is None:
                return
            failures = 0 if self._solve_on(stage, nodes, value, deadline) else failures + 1
            longest = max(longest, self._clock.now() - began)

    def _neighbourhood(self, stage: Stage) -> Ints | None:
        """The node of a pod that is away, its home, and others drawn among those with pods that are away."""
        problem = self._problem
        here = (problem.tier <= stage.tier) & problem.is_running & (problem.tier > stage.all_stay)
        away = np.maximum(self.x - problem.home, 0)[here]
        missed = np.maximum(problem.home - self.x, 0)[here]
        kinds = np.flatnonzero(missed.any(axis=1))
        if not len(kinds):
            return None
        kind = int(self._random.choice(kinds))
        homes, guests = np.flatnonzero(missed[kind]), np.flatnonzero(away[kind])
        nodes = {int(self._random.choice(homes))}
        if len(guests):
            nodes.add(int(self._random.choice(guests)))
        touched = np.flatnonzero(missed.any(axis=0) | away.any(axis=0))
        self._random.shuffle(touched)
        for node in touched.tolist():
            if len(nodes) >= 4:
                break
            nodes.add(node)
        return np.array(sorted(nodes))

    def _solve_on(self, stage: Stage, nodes: Ints, value: int, deadline: float) -> bool:
        part = slice_of(self._problem, stage, self.x, nodes)
        master = Master.of(part.program, 20_000, self._clock)
        if master is None:
            return False
        rest = value - part.program.objective.of(part.part(self.x), part.program.home)
        until = min(deadline, self._clock.now() + 0.3)
        if master.tighten(part.part(self.x), until, value - rest) <= value - rest:
            return False
        found = master.solve(part.part(self.x), value + 1 - rest, until, self._most_columns(deadline))
        return found.x is not None and self._accept(stage, part.whole(self.x, found.x))
