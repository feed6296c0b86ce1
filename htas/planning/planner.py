"""The planner: snapshot in, plan out. Its stages, in order, are its table of contents."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason
from htas.model.search_failures import OptionalSearch, SearchFailure
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.cluster.optional_searches import OptionalSearches, SearchRunner, as_it_is, failure_of
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.cluster.simulation import pods_by_row
from htas.planning.disrupt.cleaning.cleaner import RestOfPlan, ScaleDown, clean
from htas.planning.disrupt.edge.rebalance import EdgeMoves, suggest_moves
from htas.planning.disrupt.fallback import Preemptions
from htas.planning.disrupt.rearrangement.advance import RearrangementSteps, advance, cancelled
from htas.planning.place.context import PlanContext
from htas.planning.place.placing import Placer
from htas.planning.provision.own_machine import lengthening_of
from htas.planning.schedule import Scheduled, schedule
from htas.planning.writing import place_only, write_plan

Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
"""What decides: `plan`, or in an experiment (`tools/lab`) a baseline."""


def plan(
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    stages: frozenset[Stage] = ALL_STAGES,
    runner: SearchRunner = as_it_is,
) -> Plan:
    """What to do about a snapshot. It reads nothing but its arguments, and changes none of them.

    `_whole_plan` has the steps. `stages` are the cycles that are due: placing is always due; launching, cleaning and
    the edge have cycles of their own.

    `runner` runs the optional searches. The plan does without a search that raises, and names it in `failures`. Where
    anything else but placing raises, or the snapshot lacks facts (`defects`), the plan only binds.
    """
    with _collected_rarely():
        return _planned(snapshot, policy, now, stages, runner)


NEW_OBJECTS = 50_000
"""After so many Python's collector looks for cycles while a plan is made: some ten megabytes, were all of them in such.

A plan of 100,000 pods makes a few million objects, nearly all of which last as long as it does. At Python's own 700
they were gone through 2,900 times, which took a sixth of the time.
"""


@contextmanager
def _collected_rarely() -> Iterator[None]:
    """The threshold is the process's: of plans made at the same time the first to end sets it back."""
    before = gc.get_threshold()
    if 0 < before[0] < NEW_OBJECTS:  # 0: the process does without
        gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        if 0 < before[0] < NEW_OBJECTS:
            gc.set_threshold(*before)


def _planned(
    snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage], runner: SearchRunner
) -> Plan:
    searches = OptionalSearches(runner)
    if snapshot.defects:
        return _placed_only(snapshot, policy, now, ())
    try:
        return runner(OptionalSearch.BEYOND_PLACING, lambda: _whole_plan(snapshot, policy, now, stages, searches))
    except Exception as error:  # whatever it is: pods are bound all the same
        failures = (*searches.failures, failure_of(OptionalSearch.BEYOND_PLACING, error))
    return _placed_only(snapshot, policy, now, failures)


def _placed_only(snapshot: ClusterSnapshot, policy: Policy, now: float, failures: Sequence[SearchFailure]) -> Plan:
    """The plan of a cycle in which anything but placing failed."""
    simulated = open_simulation(snapshot, policy, now)
    context = PlanContext(simulated, snapshot, policy, now, Placer(policy, simulated.pools, None), OptionalSearches())
    with _kept_for_urgent(simulated):
        return place_only(context, failures)


def _kept_for_urgent(simulated: SimulatedCluster) -> AbstractContextManager[None]:
    """No pod is placed on nodes that are kept for urgent work."""
    row_of = simulated.sim.table.row_of
    return simulated.sim.closed([row_of[name] for name in simulated.kept_for_urgent if name in row_of])


def _whole_plan(
    snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage], searches: OptionalSearches
) -> Plan:
    # 1. Simulate the present: which pods run where and which are pending, and how an open rearrangement goes on.
    simulated = open_simulation(snapshot, policy, now)
    lengthening = lengthening_of(simulated, snapshot, policy)
    placer = Placer(policy, simulated.pools, lengthening)
    context = PlanContext(simulated, snapshot, policy, now, placer, searches)
    steps = advance(simulated, snapshot, policy, now)
    with _kept_for_urgent(simulated):
        # 2. Place pending pods, launch for the rest, and preempt or search where nothing can be launched.
        scheduled = schedule(context, lengthening, is_buying_due=Stage.AUTOSCALING in stages)
        placements = pods_by_row(simulated.sim.assignments())
        # 3. Move services to the edge, nearer to their users.
        is_edge_due = Stage.EDGE in stages and scheduled.room is None
        edge_moves = _suggest(context, scheduled.preemptions, placements, is_due=is_edge_due)
    # 4. Cancel the rearrangement if it is for the edge and in the way of pending pods.
    if scheduled.preemptions.is_suggestion_in_the_way:
        steps = cancelled(OutcomeReason.PODS_PENDING, "pods are pending that nothing can be launched for")
    # 5. Drain and delete nodes that are not worth their price.
    disrupted = _disrupted(scheduled, edge_moves, steps, snapshot)
    scale_down = _clean(context, scheduled, placements, edge_moves, disrupted, is_due=Stage.CLEANING in stages)
    # 6. Write the plan down, with the reason of each decision.
    return write_plan(context, scheduled, edge_moves, scale_down, placements, steps)


def _suggest(
    context: PlanContext, preemptions: Preemptions, placements: dict[int, list[Pod]], *, is_due: bool
) -> EdgeMoves:
    """What to move to the edge, unless room is being made for waiting work, or nothing can be journalled."""
    if not is_due or preemptions.acts or context.simulated.sim.nominees or context.snapshot.store_problem:
        return EdgeMoves()
    return context.attempt(OptionalSearch.EDGE_MOVES, lambda: suggest_moves(context, placements), EdgeMoves)


def _disrupted(
    scheduled: Scheduled, edge_moves: EdgeMoves, steps: RearrangementSteps, snapshot: ClusterSnapshot
) -> list[Pod]:
    """Pods that leave their nodes by this plan already."""
    uids = {step.uid for step in steps.carrying.steps}
    moved = [pod for pod in snapshot.cluster.pods if pod.uid in uids] if uids else []
    room = scheduled.room.leaving if scheduled.room is not None else ()
    return [*scheduled.preemptions.leaving, *edge_moves.leaving, *moved, *room]


def _clean(
    context: PlanContext,
    scheduled: Scheduled,
    placements: dict[int, list[Pod]],
    edge_moves: EdgeMoves,
    disrupted: Sequence[Pod],
    *,
    is_due: bool,
) -> ScaleDown:
    """Empty and release what is not worth its price, but nothing that this plan needs."""
    simulated, snapshot = context.simulated, context.snapshot
    scale_up, work_is_waiting = scheduled.scale_up, scheduled.work_is_waiting
    names = simulated.sim.table.nodes
    needed = {names[row].name for row in placements} | {names[nominee.row].name for nominee in simulated.sim.nominees}
    needed |= scale_up.kept | edge_moves.needed
    if scheduled.room is not None:
        needed |= scheduled.room.way.nodes(simulated.sim)
    if simulated.rearrangement is not None:
        needed |= simulated.rearrangement.nodes
    is_at_rest = not (
        work_is_waiting or simulated.coming or scale_up.bought or snapshot.moves or simulated.sim.nominees
    )
    is_rearranged = scheduled.room is not None or simulated.rearrangement is not None or bool(edge_moves.proposals)
    rest = RestOfPlan(
        work_is_waiting=work_is_waiting or any(names[row].name in simulated.coming for row in placements),
        needed=frozenset(needed),
        leaving=disrupted,
        may_replace=is_at_rest and not is_rearranged,
        may_repair=not is_rearranged,
        bought=tuple(scale_up.bought.values()),
    )
    with simulated.sim.defaults.counted(simulated.sim.table):
        return context.attempt(
            OptionalSearch.CLEANING,
            lambda: clean(context, rest, is_due=is_due),
            lambda: ScaleDown((), (), snapshot.memory),
        )
