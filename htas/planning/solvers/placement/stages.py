"""What each stage maximises, over what, and what it must keep: programs of node patterns for a tier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htas.planning.cluster.classes import Bools, Ints
from htas.planning.solvers.placement.problem import Counts, Floor, Measure, PlacementProblem, Program, load


@dataclass(frozen=True, slots=True)
class SearchStage:
    """(A) of a tier, the most pods placed, or with `is_staying` (B), the fewest disturbed.

    `all_stay` is the last tier up to which it is known that every running pod must stay: every placement that is best
    for these tiers has them at home, so they are taken out of the search.
    """

    tier: int
    is_staying: bool
    all_stay: int = -1

    def value(self, problem: PlacementProblem, x: Counts) -> int:
        return problem.stays(x, self.tier) if self.is_staying else problem.placed(x, self.tier)


@dataclass(frozen=True, slots=True)
class Slice:
    """A program over some nodes of a problem, and how its placements are put back into the whole one."""

    program: Program
    kinds: Ints
    nodes: Ints
    base: Counts
    """What is on the nodes besides."""

    def part(self, x: Counts) -> Counts:
        return np.asarray(x[np.ix_(self.kinds, self.nodes)])

    def rest(self, x: Counts, value: int) -> int:
        """What of a placement's value is none of the program's."""
        return value - self.program.objective.of(self.part(x), self.program.home)

    def whole(self, x: Counts, part: Counts) -> Counts:
        result = x.copy()
        result[:, self.nodes] = self.base
        result[np.ix_(self.kinds, self.nodes)] = part
        return result


def slice_of(problem: PlacementProblem, stage: SearchStage, x: Counts, nodes: Ints | None = None) -> Slice:
    """The program of a stage given what earlier stages fixed: `x` is the best placement so far.

    On some nodes alone (a neighbourhood) everything elsewhere is as in `x`, and what waits may be used.
    """
    nodes = np.arange(problem.nodes) if nodes is None else nodes
    kept = stays_put(problem, stage)
    searched = searched_kinds(problem, stage) & ~kept
    kinds = np.flatnonzero(searched)
    base = np.where(kept[:, None], problem.home[:, nodes], 0)
    elsewhere = x.copy()
    elsewhere[:, nodes] = 0
    count = problem.count[kinds] - elsewhere[kinds].sum(axis=1)
    program = Program(
        requests=problem.requests[kinds],
        count=np.asarray(count),
        room=np.asarray(problem.capacity[nodes] - load(base, problem.requests)),
        allowed=problem.allowed[np.ix_(kinds, nodes)],
        home=problem.home[np.ix_(kinds, nodes)],
        tier=problem.tier[kinds],
        yields=problem.yields[kinds],
        objective=_measure(problem, stage, kinds),
        floors=tuple(_floors(problem, stage, x, elsewhere, kinds, kept)),
    )
    return Slice(program, kinds, nodes, base)


def searched_kinds(problem: PlacementProblem, stage: SearchStage) -> Bools:
    """Those up to the tier; and pods under a budget, which bind even where they are less important."""
    return np.asarray((problem.tier <= stage.tier) | (problem.budget_of >= 0))


def stays_put(problem: PlacementProblem, stage: SearchStage) -> Bools:
    """Running kinds that must all be at home."""
    return np.asarray(problem.is_running & (problem.tier <= stage.all_stay))


def _measure(problem: PlacementProblem, stage: SearchStage, kinds: Ints) -> Measure:
    here = problem.tier[kinds] <= stage.tier
    if stage.is_staying:
        counted = (here & problem.is_running[kinds]).astype(np.int64)
        return Measure(counted, counted)
    return Measure(here.astype(np.int64), np.zeros(len(kinds), dtype=np.int64))


def _floors(
    problem: PlacementProblem, stage: SearchStage, x: Counts, elsewhere: Counts, kinds: Ints, kept: Bools
) -> list[Floor]:
    """Constraint (7): what earlier stages reached; constraint (6): what budgets allow."""
    earlier = [SearchStage(tier, staying) for tier in range(stage.tier) for staying in (False, True)]
    if stage.is_staying:
        earlier.append(SearchStage(stage.tier, False))
    floors = []
    for done in earlier:
        counted = problem.tier <= done.tier
        if done.is_staying and done.tier <= stage.all_stay:
            continue
        measure = _measure(problem, done, kinds)
        rest = elsewhere + np.where(kept[:, None], x - elsewhere, 0)
        least = done.value(problem, x) - done.value(problem, rest)
        if least > 0 and counted.any():
            floors.append(Floor(measure, least))
    for budget, allowed in enumerate(problem.budgets):
        covered = problem.budget_of == budget
        at_home = covered[kinds].astype(np.int64)
        least = int(problem.home[covered].sum()) - allowed
        least -= int(np.minimum(elsewhere, problem.home)[covered].sum())
        least -= int(np.minimum(x - elsewhere, problem.home)[covered & kept].sum())
        if at_home.any() and least > 0:
            floors.append(Floor(Measure(np.zeros_like(at_home), at_home), least))
    return floors
