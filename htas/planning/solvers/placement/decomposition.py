"""The engine by decomposition: exchanges of pods, nodes filled anew, node patterns by column generation."""

from __future__ import annotations

import numpy as np

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.placement.filling import must_waste
from htas.planning.solvers.placement.greedy import best_fit, by_importance
from htas.planning.solvers.placement.master import Master
from htas.planning.solvers.placement.overflow import OverflowSearch
from htas.planning.solvers.placement.problem import Counts, SearchStart
from htas.planning.solvers.placement.refilling import Refilling
from htas.planning.solvers.placement.search import PlacementSearch, Reached
from htas.planning.solvers.placement.stages import SearchStage, searched_kinds, slice_of, stays_put

_FIRST_STEPS = 150
"""Exchanges tried for one more pod before bounds are asked: it mostly takes less than 100 where there is a place."""
_ATTEMPTS = 5
_MOST_NODES_ASKED = 200
"""With more, exchanges have all the time: on 1,000 nodes they placed 35 more of 5,000 pods than with turns."""
_FOR_REFILLING = 0.2, 0.4
"""Of what is left, at first and later: where it finds a place it mostly does so at the first attempt or two."""
_FOR_PATTERNS = 0.6
_FOR_EXCHANGES = 0.3
_PATTERNS_PER_S = 300_000
_MOST_PATTERNS = 800_000
_HALVES_PER_S = 400_000
_MOST_HALVES = 4_000_000
_MOST_ROOM = 1000
"""Nodes × resources: with more, patterns are too many however alike the nodes are."""
_MOST_COLUMNS = 3000
_COLUMNS_PER_S = 2000
"""Branch and bound looks at the clock seldom: with 12,000 columns and 2 s it took 38 s, with these it ends in time."""
_FEW_TIERS = 16
_NEIGHBOURHOODS_WITHOUT_GAIN = 200


class Decomposition(PlacementSearch):
    """Greedy placement, exchanges of pods, refilled nodes, node patterns, and neighbourhoods of nodes."""

    STAYING = 0.25  # what is not placed is worse than what moves

    # (A) The most pods placed.

    def place(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        problem = self.problem
        reached.placed_bound = min(reached.placed_bound, self.bound_by_room(stage))
        if not self.is_reached(stage, reached):
            self._add_by_preempting(stage, deadline)
        if not self.is_reached(stage, reached):
            self._add_by_exchanges(stage, reached, _FIRST_STEPS, deadline)
        is_asked = problem.nodes <= _MOST_NODES_ASKED and not self._is_cut_short(deadline)
        if is_asked and not self.is_reached(stage, reached):
            reached.placed_bound = min(reached.placed_bound, self.bound_by_room(stage, is_close=True))
        if not self.is_reached(stage, reached):
            reached.placed_bound = min(reached.placed_bound, self._bound_by_filling(stage, reached, deadline))
        for attempt in range(_ATTEMPTS):  # by turns until one reaches the bound, or the time is over
            self._add_by_turns(stage, reached, deadline, attempt)
        reached.is_placing_proven = self.is_reached(stage, reached)

    def _add_by_turns(self, stage: SearchStage, reached: Reached, deadline: float, attempt: int) -> None:
        """Refilling, patterns and exchanges: each starts from what the others have found, each time with more steps."""
        if self.is_reached(stage, reached) or self.clock.is_over(deadline):
            return
        is_large = self.problem.nodes > _MOST_NODES_ASKED
        if not is_large:
            self._add_by_refilling(stage, reached, self._part(_FOR_REFILLING[attempt > 0], deadline), attempt)
        if not self.is_reached(stage, reached):
            bound = self._by_patterns(stage, reached.placed_bound, self._part(_FOR_PATTERNS, deadline))
            reached.placed_bound = min(reached.placed_bound, bound)
        if not self.is_reached(stage, reached):
            steps = _FIRST_STEPS * 8 ** (attempt + 1)
            until = deadline if is_large else self._part(_FOR_EXCHANGES, deadline)
            self._add_by_exchanges(stage, reached, steps, until, attempt + 1)

    def _is_cut_short(self, deadline: float) -> bool:
        """Whether time is over, of so many tiers that what each does in any case adds up: 300 took a minute."""
        return self.problem.tiers > _FEW_TIERS and self.clock.is_over(deadline)

    def _part(self, share: float, deadline: float) -> float:
        """The end of a share of what is left."""
        return self.clock.now() + share * self.clock.left(deadline)

    def _bound_by_filling(self, stage: SearchStage, reached: Reached, deadline: float) -> int:
        """One less where all pods would have to fill every node to the brim, and some node cannot be."""
        problem = self.problem
        if reached.placed_bound < problem.wanted(stage.tier):
            return reached.placed_bound
        kept = stays_put(problem, stage)
        kinds = (problem.tier <= stage.tier) & ~kept
        room = problem.free(np.where(kept[:, None], problem.home, 0))
        limit = min(_MOST_HALVES, int(_HALVES_PER_S * self.clock.left(deadline)))
        is_wasted = must_waste(problem.requests[kinds], problem.count[kinds], problem.allowed[kinds], room, limit)
        self.clock.work(0.2)
        return reached.placed_bound - is_wasted

    def _add_by_preempting(self, stage: SearchStage, deadline: float) -> None:
        """What fits if less important pods give way, the least important first, nobody else disturbed."""
        problem = self.problem
        upto = np.asarray(problem.tier <= stage.tier)
        for level in range(problem.tiers - 1, stage.tier - 1, -1):
            if problem.placed(self.x, stage.tier) == problem.wanted(stage.tier) or self._is_cut_short(deadline):
                return
            kept = (problem.tier <= level) | (problem.budget_of >= 0)
            x = np.where(kept[:, None], self.x, 0)
            best_fit(problem, x, by_importance(problem, upto))
            self.accept(stage, x)

    def _add_by_exchanges(
        self, stage: SearchStage, reached: Reached, steps: int, deadline: float, attempt: int = 0
    ) -> None:
        """One more pod after another, each by exchanges of pods among all nodes, until one finds no place."""
        problem = self.problem
        start = self._start(stage, attempt)
        search = OverflowSearch(problem, start, self.clock)
        missing = reached.placed_bound - self.problem.placed(self.x, stage.tier)
        found: Counts | None = None
        while missing > 0 and search.waiting and not self.clock.is_over(deadline):
            search.add_one()
            if not search.repair(steps, deadline):
                break
            found, missing = search.placement(), missing - 1
        if found is not None:
            self.accept(stage, np.where((problem.tier <= stage.tier)[:, None], found, start.x))

    def _add_by_refilling(self, stage: SearchStage, reached: Reached, deadline: float, attempt: int) -> None:
        """One more pod after another, each by filling some nodes anew."""
        search = Refilling(self.problem, self._start(stage, attempt), self.clock)
        while not self.is_reached(stage, reached) and search.waiting and search.one_more(deadline):
            if not self.accept(stage, search.x):
                return

    def _start(self, stage: SearchStage, attempt: int) -> SearchStart:
        problem = self.problem
        kinds = searched_kinds(problem, stage)
        x = np.where(kinds[:, None], self.x, 0)
        may_wait = np.asarray(problem.tier == stage.tier)
        seed = self.clock.budget.seed + 1000 * attempt + stage.tier
        return SearchStart(x, self._frozen(stage, x), may_wait, kinds & (problem.tier <= stage.tier), seed)

    def _frozen(self, stage: SearchStage, x: Counts) -> Counts:
        """Pods that exchanges leave where they are: what earlier stages keep, budgets cover, or yields at home.

        And what made others yield: were it to leave again, they would have gone in vain.
        """
        problem = self.problem
        at_home = np.minimum(x, problem.home)
        still = (problem.tier < stage.tier) | problem.yields | (problem.budget_of >= 0)
        frozen = np.where(still[:, None], at_home, 0)
        lower_covered = (problem.tier > stage.tier) & (problem.budget_of >= 0)
        frozen[lower_covered] = x[lower_covered]
        yielded = ((problem.home > x) & (problem.yields & (problem.tier <= stage.tier))[:, None]).any(axis=0)
        frozen[:, yielded] = x[:, yielded]
        return np.asarray(frozen)

    # By node patterns.

    def _by_patterns(self, stage: SearchStage, bound: int, deadline: float) -> int:
        """The bound by node patterns; what they find is taken. Where there are too many patterns: the bound given."""
        left = self.clock.left(deadline)
        if not left or self.problem.capacity.size > _MOST_ROOM:
            return bound
        part = slice_of(self.problem, stage, self.x)
        limit = min(_MOST_PATTERNS, int(_PATTERNS_PER_S * left))
        master = Master.of(part.program, limit, self.clock)
        if master is None:
            return bound
        value = stage.value(self.problem, self.x)
        rest = part.rest(self.x, value)
        bound = min(bound, rest + master.tighten(part.part(self.x), deadline, value - rest))
        while bound > value and not self.clock.is_over(deadline):
            found = master.solve(part.part(self.x), value + 1 - rest, deadline, self._most_columns(deadline))
            bound = min(bound, rest + found.bound)
            if found.x is None or not self.accept(stage, part.whole(self.x, found.x)):
                break
            value = stage.value(self.problem, self.x)
        return max(bound, value)

    def _most_columns(self, deadline: float) -> int:
        return min(_MOST_COLUMNS, 200 + int(_COLUMNS_PER_S * self.clock.left(deadline)))

    # (B) The fewest disturbed.

    def stay(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        problem = self.problem
        reached.stays_bound = problem.most_stays(stage.tier)
        value = problem.stays(self.x, stage.tier)
        if value < reached.stays_bound:
            self._improve_by_neighbourhoods(stage, reached.stays_bound, deadline, 20)
            reached.stays_bound = self._by_patterns(stage, reached.stays_bound, deadline)
            self._improve_by_neighbourhoods(stage, reached.stays_bound, deadline, _NEIGHBOURHOODS_WITHOUT_GAIN)
        self.conclude_staying(stage, reached)

    def _improve_by_neighbourhoods(self, stage: SearchStage, bound: int, deadline: float, patience: int) -> None:
        """A few nodes at a time are solved by themselves, all others left as they are."""
        failures, longest = 0, 0.0
        # On 1,000 nodes one takes 0.2 s: one that would end late is not begun.
        while failures < patience and self.clock.left(deadline) > longest:
            began = self.clock.now()
            value = stage.value(self.problem, self.x)
            nodes = self._neighbourhood(stage)
            if value >= bound or nodes is None:
                return
            failures = 0 if self._solve_on(stage, nodes, value, deadline) else failures + 1
            longest = max(longest, self.clock.now() - began)

    def _neighbourhood(self, stage: SearchStage) -> Ints | None:
        """The node of a pod that is away, its home, and others drawn among those with pods that are away."""
        problem = self.problem
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

    def _solve_on(self, stage: SearchStage, nodes: Ints, value: int, deadline: float) -> bool:
        part = slice_of(self.problem, stage, self.x, nodes)
        master = Master.of(part.program, 20_000, self.clock)
        if master is None:
            return False
        rest = part.rest(self.x, value)
        until = min(deadline, self.clock.now() + 0.3)
        if master.tighten(part.part(self.x), until, value - rest) <= value - rest:
            return False
        found = master.solve(part.part(self.x), value + 1 - rest, until, self._most_columns(deadline))
        return found.x is not None and self.accept(stage, part.whole(self.x, found.x))
