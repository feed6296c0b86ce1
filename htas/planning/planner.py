"""The planner: snapshot in, plan out. Its stages, in order, are its table of contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import msgspec

from htas.model.plan import Carrying, Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.simulation import pods_by_row
from htas.planning.disrupt.cleaning.cleaner import ScaleDown, clean
from htas.planning.disrupt.edge.rebalance import EdgeMoves, suggest_moves
from htas.planning.disrupt.fallback import Fallback, Preemptions
from htas.planning.disrupt.rearrangement.advance import RearrangementSteps, advance, cancelled, with_steps
from htas.planning.namespaces.limiting import within_limits
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer
from htas.planning.place.queue import SchedulingQueue
from htas.planning.provision.lengthening import Lengthening, lengthening_of
from htas.planning.provision.scale_up import ScaleUp, buy
from htas.planning.satisfiable import is_satisfiable
from htas.planning.writing import Placements, write_plan

Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
"""What decides: `plan`, or in an experiment somebody else's way of deciding."""


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage] = ALL_STAGES) -> Plan:
    """What to do about a snapshot. Reads nothing but its arguments and changes none of them.

    1. `open_simulation`: who runs where, who waits, and of which kind; a rearrangement under way is carried on.
    2. `_provide`: place what waits on what is there and what is coming; count what is about to free, and buy for the
       rest; preempt, or ask for the optimiser, where nothing can be bought.
    3. `_suggest`: move to the edge what is far from its users.
    4. `_clean`: give back what is not worth its price.
    5. `write_plan`: all of it with its reasons.

    `stages` are the cycles that are due: placing always is; buying, cleaning and the edge have cycles of their own.

    Where namespaces have limits, whoever is beyond one is held back, and all of that is done without them.
    """
    return within_limits(lambda seen: _planned(seen, policy, now, stages), snapshot, policy)


def _planned(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    simulated = open_simulation(snapshot, policy, now)
    lengthening = lengthening_of(simulated, snapshot, policy)
    context = PlanContext(simulated, snapshot, policy, now, Placer(policy, simulated.pools, lengthening))
    carried = advance(simulated, snapshot, policy, now)
    provided = _provide(context, lengthening, is_buying_due=Stage.AUTOSCALING in stages)
    if provided.preemptions.is_suggestion_in_the_way:
        carried = cancelled(OutcomeReason.WORK_WAITS, "work waits that nothing can be bought for")
    placements = pods_by_row(simulated.sim.assignments())
    suggestion = _suggest(context, provided.preemptions, placements, is_due=Stage.EDGE in stages)
    leaving = _taken_away(carried, provided.preemptions, suggestion, snapshot)
    cleaning = _clean(context, provided, placements, suggestion, leaving, is_due=Stage.CLEANING in stages)
    made = write_plan(context, provided.scale_up, provided.preemptions, cleaning, placements, provided.placed_at_first)
    if suggestion.moves:
        return msgspec.structs.replace(made, carry=Carrying(suggest=suggestion.moves))
    return with_steps(made, carried)


@dataclass(frozen=True, slots=True)
class _Provided:
    """What was done for the pods that wait: their places are in the simulation."""

    scale_up: ScaleUp
    preemptions: Preemptions
    placed_at_first: Set[str]
    """Pods that found room before anything was bought, by key."""
    work_is_waiting: bool


def _provide(context: PlanContext, lengthening: Lengthening | None, *, is_buying_due: bool) -> _Provided:
    """Room for the pods that wait: on nodes, on machines to buy, or where less important pods leave.

    Nearly always everybody is placed, then bought for, and then preempted for. But where somebody is to be preempted
    for and less important work has just been given room, that is taken back, and each priority has its turn, as
    kube-scheduler has it: its pods are placed, and those for whom nothing would be bought preempt, before anybody less
    important is placed.
    """
    sim, queue = context.simulated.sim, SchedulingQueue(context)

    def bought(demands: Sequence[Demand]) -> tuple[ScaleUp, Set[str], bool]:
        placed = _keys(pods_by_row(sim.assignments()))
        waits = is_satisfiable(context, demands) or bool(sim.nominees)
        return buy(context, demands, lengthening, is_due=is_buying_due), placed, waits

    def shortage(demands: Sequence[Demand]) -> Sequence[UnplacedPod]:
        with sim.fork():
            copies = [Demand(demand.cls, demand.count) for demand in demands]
            return buy(context, copies, lengthening, is_due=is_buying_due).unplaced

    with sim.fork() as at_once:
        scale_up, placed, waits = bought(queue.place())
        fallback = Fallback(context)
        waiting = fallback.waiting(scale_up.unplaced)
        if not fallback.is_outranked(waiting):
            at_once.commit()
            with sim.fork() as preempting:
                fallback.preempt(waiting)
                if fallback.acts_against_a_suggestion:
                    return _Provided(scale_up, fallback.suggestion_given_up(scale_up.unplaced), placed, waits)
                preempting.commit()
            return _Provided(scale_up, fallback.result(scale_up.unplaced), placed, waits)
    with sim.fork() as in_turn:
        fallback = Fallback(context)
        demands = queue.place_in_turn(lambda left, priority: fallback.preempt_in_turn(left, priority, shortage))
        scale_up, placed, waits = bought(demands)
        if not fallback.acts_against_a_suggestion:
            in_turn.commit()
            return _Provided(scale_up, fallback.result(scale_up.unplaced), placed, waits)
    scale_up, placed, waits = bought(queue.place())
    return _Provided(scale_up, fallback.suggestion_given_up(scale_up.unplaced), placed, waits)


def _keys(placements: Placements) -> set[str]:
    return {pod.key for pods in placements.values() for pod in pods}


def _suggest(
    context: PlanContext, preemptions: Preemptions, placements: dict[int, list[Pod]], *, is_due: bool
) -> EdgeMoves:
    """What to move to the edge, unless room is being made for waiting work, or nothing can be journalled."""
    if not is_due or preemptions.acts or context.simulated.sim.nominees or context.snapshot.store_problem:
        return EdgeMoves()
    return suggest_moves(context, placements)


def _taken_away(
    carried: RearrangementSteps, preemptions: Preemptions, suggestion: EdgeMoves, snapshot: ClusterSnapshot
) -> list[Pod]:
    """Pods that this plan has leave their nodes, whatever for: what budgets allow is spent on them."""
    uids = {step.uid for step in carried.carrying.steps}
    steps = [pod for pod in snapshot.cluster.pods if pod.uid in uids] if uids else []
    return [*preemptions.leaving, *suggestion.leaving, *steps]


def _clean(
    context: PlanContext,
    provided: _Provided,
    placements: dict[int, list[Pod]],
    suggestion: EdgeMoves,
    leaving: Sequence[Pod],
    *,
    is_due: bool,
) -> ScaleDown:
    """Empty and release what is not worth its price, but nothing that this plan needs."""
    simulated, snapshot = context.simulated, context.snapshot
    scale_up, work_is_waiting = provided.scale_up, provided.work_is_waiting
    names = simulated.sim.table.nodes
    needed = {names[row].name for row in placements} | {names[nominee.row].name for nominee in simulated.sim.nominees}
    needed |= scale_up.kept | suggestion.needed
    if simulated.rearrangement is not None:
        needed |= simulated.rearrangement.nodes
    is_at_rest = not (
        work_is_waiting or simulated.coming or scale_up.bought or snapshot.moves or simulated.sim.nominees
    )
    return clean(
        simulated.sim,
        simulated.book,
        context.placer.anywhere(),
        snapshot,
        context.policy,
        context.now,
        is_due=is_due,
        work_is_waiting=work_is_waiting or any(names[row].name in simulated.coming for row in placements),
        needed=frozenset(needed),
        leaving=leaving,
        may_replace=is_at_rest and simulated.rearrangement is None and not suggestion.moves,
    )
