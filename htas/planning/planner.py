"""The planner: snapshot in, plan out. Its stages, in order, are its table of contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from htas.model.plan import Carrying, Plan
from htas.model.pods import Pod
from htas.model.policy import FallbackMode, Policy
from htas.model.reasons import Cancelled
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.begun import as_begun, carried_over, gone_on
from htas.planning.cluster.opening import open_simulation
from htas.planning.cluster.simulation import pods_by_row
from htas.planning.disrupt.cleaning.cleaner import Cleaning, clean
from htas.planning.disrupt.edge.moving import Suggestion, suggest_moves
from htas.planning.disrupt.fallback import FallingBack, fall_back
from htas.planning.disrupt.rearrangement.carrying import Carried, carry_on, given_up, with_carrying
from htas.planning.hope import is_there_hope
from htas.planning.namespaces.limiting import within_limits
from htas.planning.place.placing import Placer
from htas.planning.place.queue import place
from htas.planning.place.situation import Situation
from htas.planning.provision.lengthening import lengthening_of
from htas.planning.provision.scale_up import Buying, buy
from htas.planning.writing import Placements, written

Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
"""What decides: `plan`, or in an experiment somebody else's way of deciding."""

MOST_TURNS = 3
"""So often all is placed anew in one plan. What is in the way after that is left to the next plan."""


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage] = ALL_STAGES) -> Plan:
    """What to do about a snapshot. Reads nothing but its arguments and changes none of them.

    First, work is sorted (who waits, of which kind, for how long: `open_simulation`) and a rearrangement under way is
    carried on. Then: place what waits on what is there and what is coming (`place`); count what is about to free, and
    buy for the rest (`buy`); preempt or search where nothing can be bought (`fall_back`); move to the edge what is far
    from its users (`_suggest`); give back what is not worth its price (`_clean`); and write all of it down with its
    reasons (`written`). Where lesser work had just been given room that somebody is preempted for, all of that is done
    anew, with the preemptions as begun (`as_begun`).

    `stages` are the cycles that are due: placing always is; buying, cleaning and the edge have cycles of their own.

    Where namespaces have limits, whoever is beyond one is held back, and all of that is done without them.
    """
    return within_limits(lambda seen: _turned(seen, policy, now, stages), snapshot, policy)


def _turned(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    """All stages, and once more for as long as lesser work is in the way of what somebody is preempted for."""
    made, falling_back = _planned(snapshot, policy, now, stages)
    for turn in range(1, MOST_TURNS + 1):
        if not falling_back.is_lesser_work_in_the_way:
            break
        snapshot = as_begun(snapshot, falling_back)
        made, falling_back = _planned(snapshot, policy, now, stages, falling_back, is_last=turn == MOST_TURNS)
    return made


def _planned(
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    stages: frozenset[Stage],
    begun: FallingBack | None = None,
    *,
    is_last: bool = False,
) -> tuple[Plan, FallingBack]:
    """One way through the stages; `begun` is what the way before this one preempted. The last one preempts no more."""
    opening = open_simulation(snapshot, policy, now)
    lengthening = lengthening_of(opening, snapshot, policy)
    placer = Placer(policy, opening.pools, lengthening)
    preempted_for = frozenset(begun.nominated) if begun else frozenset[str]()
    situation = Situation(opening, snapshot, policy, now, placer, preempted_for)
    carried = carry_on(opening, snapshot, policy, now)
    demands = place(situation)
    placed_at_first = _keys(pods_by_row(opening.sim.assignments()))
    work_is_waiting = is_there_hope(situation, demands) or bool(opening.sim.nominees)
    buying = buy(situation, demands, lengthening, is_due=Stage.AUTOSCALING in stages)
    falling_back = _fallen_back(situation, buying, begun, is_last=is_last)
    if falling_back.is_suggestion_in_the_way:
        carried = given_up(Cancelled.WORK_WAITS, "work waits that nothing can be bought for")
    placements = pods_by_row(opening.sim.assignments())
    suggestion = _suggest(situation, falling_back, placements, is_due=Stage.EDGE in stages)
    cleaning = _clean(
        situation,
        buying,
        falling_back,
        placements,
        work_is_waiting,
        suggestion,
        _taken_away(carried, falling_back, suggestion, snapshot),
        is_due=Stage.CLEANING in stages,
    )
    made = written(situation, buying, falling_back, cleaning, placements, placed_at_first)
    if suggestion.shifts:
        return msgspec.structs.replace(made, carry=Carrying(suggest=suggestion.shifts)), falling_back
    return with_carrying(made, carried), falling_back


def _fallen_back(situation: Situation, buying: Buying, begun: FallingBack | None, *, is_last: bool) -> FallingBack:
    """What is done for work that nothing can be bought for, beside what has begun."""
    opening, snapshot, policy = situation.opening, situation.snapshot, situation.policy
    if begun is None:
        return fall_back(opening, snapshot, policy, buying.unplaced)
    carried = carried_over(begun, buying.unplaced, opening.sim.nominees)
    if is_last or policy.fallback.mode is not FallbackMode.PREEMPT:  # the optimiser has been asked
        return carried
    return gone_on(carried, fall_back(opening, snapshot, policy, buying.unplaced))


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
    buying: Buying,
    falling_back: FallingBack,
    placements: dict[int, list[Pod]],
    work_is_waiting: bool,
    suggestion: Suggestion,
    leaving: Sequence[Pod],
    *,
    is_due: bool,
) -> Cleaning:
    """Empty and release what is not worth its price, but nothing that this plan needs."""
    opening, snapshot = situation.opening, situation.snapshot
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
        may_replace=is_at_rest and opening.rearrangement is None and not suggestion.shifts,
    )
