"""The search, tier by tier from the highest priority: first the most placed, then the fewest disturbed.

What it holds is at any time a whole, valid placement that is lexicographically no worse than the present one; each
stage improves it or proves that it cannot be improved, and what a stage reached is kept by those after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from htas.planning.solvers.placement.bounds import most_by_room
from htas.planning.solvers.placement.budget import SearchClock, Shares
from htas.planning.solvers.placement.filling import usable
from htas.planning.solvers.placement.greedy import best_fit, by_importance, settle
from htas.planning.solvers.placement.problem import Counts, PlacementProblem
from htas.planning.solvers.placement.stages import SearchStage, stays_put


@dataclass(slots=True)
class Reached:
    """What a tier came to; bounds hold for every placement that is as good for the tiers above."""

    placed_bound: int
    is_placing_proven: bool = False
    stays_bound: int = 0
    is_staying_proven: bool = False


class PlacementSearch(ABC):
    """One search over a problem: its tiers and stages; how a stage is solved is the engine's."""

    STAYING: ClassVar[float]
    """Of a tier's share of the time, what its second stage has."""

    def __init__(self, problem: PlacementProblem, clock: SearchClock) -> None:
        self.problem = problem
        self.clock = clock
        self._random = np.random.default_rng(clock.budget.seed)
        self._all_stay = -1
        self.x: Counts = problem.home.copy()
        self.reached: list[Reached] = []
        best_fit(problem, self.x, by_importance(problem, np.ones(problem.kinds, dtype=np.bool_)))

    def run(self) -> None:
        """All tiers within the budget."""
        shares = Shares(self.clock, self.problem.tiers, self.STAYING)
        for tier in range(self.problem.tiers):
            reached = Reached(self._simple_bound(tier))
            self.reached.append(reached)
            self.place(SearchStage(tier, False, self._all_stay), reached, shares.deadline())
            self.stay(SearchStage(tier, True, self._all_stay), reached, shares.deadline())

    def _simple_bound(self, tier: int) -> int:
        above = self.reached[-1].placed_bound if tier else 0
        here = self.problem.tier == tier
        return above + int(self.problem.count[here].sum())

    @abstractmethod
    def place(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        """(A) The most pods placed, into `self.x`, with the bound and whether it is reached."""

    @abstractmethod
    def stay(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        """(B) The fewest disturbed, likewise."""

    def is_reached(self, stage: SearchStage, reached: Reached) -> bool:
        return self.problem.placed(self.x, stage.tier) >= reached.placed_bound

    def bound_by_room(self, stage: SearchStage, *, is_close: bool = False) -> int:
        """What all nodes together have room for; if it is to be close, of each node only what pods can take of it."""
        problem = self.problem
        kept = stays_put(problem, stage)
        kinds = (problem.tier <= stage.tier) & ~kept
        room = problem.free(np.where(kept[:, None], problem.home, 0))
        if is_close:
            room = usable(problem.requests[kinds], problem.count[kinds], problem.allowed[kinds], room)
            self.clock.work(problem.nodes * 5e-4)
        above = kinds & (problem.tier < stage.tier)
        # Pods above that all have places take their room whatever is done; else only the count of them is fixed.
        upto = stage.tier - 1
        must = above & bool(stage.tier and problem.placed(self.x, upto) == problem.wanted(upto))
        fits_any = (problem.requests <= room.max(axis=0, initial=0)).all(axis=1) & problem.allowed.any(axis=1)
        found = most_by_room(problem.requests[kinds], problem.count[kinds], must[kinds], room, fits_any[kinds])
        return found + int(problem.home[kept].sum())

    def accept(self, stage: SearchStage, x: Counts) -> bool:
        """Take a placement of the tiers up to the stage's, completed by those below, unless it is worse or invalid."""
        whole = settle(self.problem, x, self.x, stage.tier)
        if not self.problem.is_valid(whole) or self.problem.score(whole) < self.problem.score(self.x):
            return False
        self.x = whole
        return True

    def conclude_staying(self, stage: SearchStage, reached: Reached) -> None:
        """Whether the second stage is proven, and whether all that runs must stay where it is from now on."""
        value = self.problem.stays(self.x, stage.tier)
        reached.is_staying_proven = reached.is_placing_proven and value >= reached.stays_bound
        if value == self.problem.most_stays(stage.tier):
            self._all_stay = stage.tier
