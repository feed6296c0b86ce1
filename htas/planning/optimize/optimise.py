"""The optimiser's entry: a snapshot in, a rearrangement out."""

from __future__ import annotations

from collections.abc import Callable

from htas.model.policy import Policy
from htas.model.rearrangement import PriorityTier, Rearrangement, RearrangementStatus
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.planning.optimize.build import build
from htas.planning.optimize.decode import DecodedStep, seats_after, steps_of, verified, written
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.engines import ENGINES
from htas.planning.solvers.placement.problem import PlacementProblem
from htas.planning.solvers.placement.search import Reached


def optimise(
    snapshot: ClusterSnapshot, policy: Policy, now: float, budget: SearchBudget, elapsed: Callable[[], float]
) -> Rearrangement:
    """The best placement by priority found within the budget; at worst the present one with what fits beside it.

    `elapsed` is the caller's stopwatch in seconds, started when the search was asked for: building the problem counts.
    A budget of 0 s tries what needs no search. Raises ValueError (by Budget) for negative seconds or no workers.
    """
    simulated = open_simulation(snapshot, policy, now)
    problem = build(simulated, snapshot, policy, now)
    search = ENGINES[budget.engine](problem, SearchClock(budget, elapsed))
    search.run()
    wanted = steps_of(problem, simulated, search.x)
    leaving = MigrationMethods(snapshot.cluster, policy)
    steps = verified(simulated, problem, wanted, leaving)
    is_as_found = len(steps) == len(wanted) and set(map(id, steps)) == set(map(id, wanted))
    steps += seats_after(simulated, policy)
    tiers = _tiers(problem, search.reached, steps, is_as_found)
    if _score(tiers, before=False) <= _score(tiers, before=True):
        tiers = _tiers(problem, search.reached, [], is_as_found and not steps)
        steps = []
    moves, seats = written(simulated, steps, leaving)
    status = _status(tiers, bool(steps))
    return Rearrangement(now, status, tiers, moves, seats, _message(tiers, len(moves), len(seats)))


def _tiers(
    problem: PlacementProblem, reached: list[Reached], steps: list[DecodedStep], is_as_found: bool
) -> tuple[PriorityTier, ...]:
    """What came out, counted from the steps themselves."""
    tiers = []
    stays = undecided = wanted_above = placed_above = 0
    for t, priority in enumerate(problem.priorities):
        here = problem.tier == t
        own = [step for step in steps if step.pod.priority == priority]
        settled_wanted, settled_placed = problem.settled[t]
        undecided += problem.undecided[t]
        running = int(problem.home[here].sum()) + settled_placed
        wanted = int(problem.count[here].sum()) + settled_wanted + problem.undecided[t]
        gone = sum(step.source is not None and step.target is None for step in own)
        moved = sum(step.source is not None and step.target is not None for step in own)
        after = running - gone + sum(step.source is None for step in own)
        stays += 2 * running - 2 * gone - moved
        settled = sum(placed for _, placed in problem.settled[: t + 1])
        wanted_above, placed_above = wanted_above + wanted, placed_above + after
        bound = min(reached[t].placed_bound + settled + undecided, wanted_above)
        stays_bound = reached[t].stays_bound + 2 * settled
        placing = placed_above >= bound or (reached[t].is_placing_proven and is_as_found and not undecided)
        tiers.append(
            PriorityTier(
                priority=priority,
                wanted=wanted,
                placed_before=running,
                placed_after=after,
                placed_bound=max(bound, placed_above),
                is_placing_proven=placing,
                stays=stays,
                stays_bound=max(stays_bound, stays),
                is_staying_proven=placing and stays >= stays_bound,
            )
        )
    return tuple(tiers)


def _score(tiers: tuple[PriorityTier, ...], *, before: bool) -> tuple[int, ...]:
    return tuple(tier.placed_before if before else tier.placed_after for tier in tiers)


def _status(tiers: tuple[PriorityTier, ...], is_better: bool) -> RearrangementStatus:
    if all(tier.is_placing_proven for tier in tiers):
        return RearrangementStatus.PROVEN_OPTIMAL if is_better else RearrangementStatus.ALREADY_OPTIMAL
    return RearrangementStatus.IMPROVED if is_better else RearrangementStatus.NO_BETTER_FOUND


def _message(tiers: tuple[PriorityTier, ...], moves: int, seats: int) -> str:
    before, after = (sum(_score(tiers, before=before)) for before in (True, False))
    wanted = sum(tier.wanted for tier in tiers)
    bound = tiers[-1].placed_bound if tiers else 0
    return f"{after} of {wanted} pods placed (now {before}, at most {bound}): {seats} seated, {moves} leave their nodes"
