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
from htas.planning.cluster.opening import open_simulation
from htas.planning.cluster.simulation import pods_by_row
from htas.planning.disrupt.cleaning.cleaner import Cleaning, clean
from htas.planning.disrupt.edge.moving import Suggestion, suggest_moves
from htas.planning.disrupt.fallback import Fallback, FallingBack
from htas.planning.disrupt.rearrangement.carrying import Carried, carry_on, given_up, with_carrying
from htas.planning.hope import is_there_hope
from htas.planning.namespaces.limiting import within_limits
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer
from htas.planning.place.queue import SchedulingQueue
from htas.planning.place.situation import Situation
from htas.planning.provision.lengthening import Lengthening, lengthening_of
from htas.planning.provision.scale_up import Buying, buy
from htas.planning.writing import Placements, written

Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
"""What decides: `plan`, or in an experiment somebody else's way of deciding."""


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage] = ALL_STAGES) -> Plan:
    """What to do about a snapshot. Reads nothing but its arguments and changes none of them.

    1. `open_simulation`: who runs where, who waits, and of which kind; a rearrangement under way is carried on.
    2. `_provide`: place what waits on what is there and what is coming; count what is about to free, and buy for the
       rest; preempt, or ask for the optimiser, where nothing can be bought.
    3. `_suggest`: move to the edge what is far from its users.
    4. `_clean`: give back what is not worth its price.
    5. `written`: all of it with its reasons.

    `stages` are the cycles that are due: placing always is; buying, cleaning and the edge have cycles of their own.

    Where namespaces have limits, whoever is beyond one is held back, and all of that is done without them.
    """
    return within_limits(lambda seen: _planned(seen, policy, now, stages), snapshot, policy)


def _planned(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    opening = open_simulation(snapshot, policy, now)
    lengthening = lengthening_of(opening, snapshot, policy)
    situation = Situation(opening, snapshot, policy, now, Placer(policy, opening.pools, lengthening))
    carried = carry_on(opening, snapshot, policy, now)
    provided = _provide(situation, lengthening, is_buying_due=Stage.AUTOSCALING in stages)
    if provided.falling_back.is_suggestion_in_the_way:
        carried = given_up(OutcomeReason.WORK_WAITS, "work waits that nothing can be bought for")
    placements = pods_by_row(opening.sim.assignments())
    suggestion = _suggest(situation, provided.falling_back, placements, is_due=Stage.EDGE in stages)
    leaving = _taken_away(carried, provided.falling_back, suggestion, snapshot)
    cleaning = _clean(situation, provided, placements, suggestion, leaving, is_due=Stage.CLEANING in stages)
    made = written(situation, provided.buying, provided.falling_back, cleaning, placements, provided.placed_at_first)
    if suggestion.moves:
        return msgspec.structs.replace(made, carry=Carrying(suggest=suggestion.moves))
    return with_carrying(made, carried)


@dataclass(frozen=True, slots=True)
class _Provided:
    """What was done for the pods that wait: their places are in the simulation."""

    buying: Buying
    falling_back: FallingBack
    placed_at_first: Set[str]
    """Pods that found room before anything was bought, by key."""
    work_is_waiting: bool


def _provide(situation: Situation, lengthening: Lengthening | None, *, is_buying_due: bool) -> _Provided:
    """Room for the pods that wait: on nodes, on machines to buy, or where less important pods leave.

    Nearly always everybody is placed, then bought for, and then preempted for. But where somebody is to be preempted
    for and less important work has just been given room, that is taken back, and each priority has its turn, as
    kube-scheduler has it: its pods are placed, and those for whom nothing would be bought preempt, before anybody less
    important is placed.
    """
    sim, queue = situation.opening.sim, SchedulingQueue(situation)

    def bought(demands: Sequence[Demand]) -> tuple[Buying, Set[str], bool]:
        placed = _keys(pods_by_row(sim.assignments()))
        waits = is_there_hope(situation, demands) or bool(sim.nominees)
        return buy(situation, demands, lengthening, is_due=is_buying_due), placed, waits

    def shortage(demands: Sequence[Demand]) -> Sequence[UnplacedPod]:
        with sim.fork():
            copies = [Demand(demand.cls, demand.count) for demand in demands]
            return buy(situation, copies, lengthening, is_due=is_buying_due).unplaced

    with sim.fork() as at_once:
        buying, placed, waits = bought(queue.place())
        fallback = Fallback(situation)
        waiting = fallback.waiting(buying.unplaced)
        if not fallback.is_outranked(waiting):
            at_once.commit()
            with sim.fork() as preempting:
                fallback.preempt(waiting)
                if fallback.acts_against_a_suggestion:
                    return _Provided(buying, fallback.suggestion_given_up(buying.unplaced), placed, waits)
                preempting.commit()
            return _Provided(buying, fallback.result(buying.unplaced), placed, waits)
    with sim.fork() as in_turn:
        fallback = Fallback(situation)
        demands = queue.place_in_turn(lambda left, priority: fallback.preempt_in_turn(left, priority, shortage))
        buying, placed, waits = bought(demands)
        if not fallback.acts_against_a_suggestion:
            in_turn.commit()
            return _Provided(buying, fallback.result(buying.unplaced), placed, waits)
    buying, placed, waits = bought(queue.place())
    return _Provided(buying, fallback.suggestion_given_up(buying.unplaced), placed, waits)


def _keys(placements: Placements) -> set[str]:
    return {pod.key for pods in placements.values() for pod in pods}


def _suggest(
    situation: Situation, falling_back: FallingBack, placements: dict[int, list[Pod]], *, is_due: bool
) -> Suggestion:
    """What to move to the edge, unless room is being made for waiting work, or nothing can be journalled."""
    if not is_due or falling_back.acts or situation.opening.sim.nominees or situation.snapshot.store_problem:
        return Suggestion()
    return suggest_moves(situation, placements)


def _taken_away(
    carried: Carried, falling_back: FallingBack, suggestion: Suggestion, snapshot: ClusterSnapshot
) -> list[Pod]:
    """Pods that this plan has leave their nodes, whatever for: what budgets allow is spent on them."""
    uids = {step.uid for step in carried.carrying.steps}
    steps = [pod for pod in snapshot.cluster.pods if pod.uid in uids] if uids else []
    return [*falling_back.leaving, *suggestion.leaving, *steps]


def _clean(
    situation: Situation,
    provided: _Provided,
    placements: dict[int, list[Pod]],
    suggestion: Suggestion,
    leaving: Sequence[Pod],
    *,
    is_due: bool,
) -> Cleaning:
    """Empty and release what is not worth its price, but nothing that this plan needs."""
    opening, snapshot = situation.opening, situation.snapshot
    buying, work_is_waiting = provided.buying, provided.work_is_waiting
    names = opening.sim.table.nodes
    needed = {names[row].name for row in placements} | {names[nominee.row].name for nominee in opening.sim.nominees}
    needed |= buying.kept | suggestion.needed
    if opening.rearrangement is not None:
        needed |= opening.rearrangement.nodes
    is_at_rest = not (work_is_waiting or opening.coming or buying.bought or snapshot.moves or opening.sim.nominees)
    return clean(
        opening.sim,
        opening.book,
        situation.placer.anywhere(),
        snapshot,
        situation.policy,
        situation.now,
        is_due=is_due,
        work_is_waiting=work_is_waiting or any(names[row].name in opening.coming for row in placements),
        needed=frozenset(needed),
        leaving=leaving,
        may_replace=is_at_rest and opening.rearrangement is None and not suggestion.moves,
    )
