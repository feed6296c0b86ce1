"""The edge's model (KubeDSM, equations 1 to 9) solved exactly, and bounded: what tests and the bench measure by."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.program import EdgeProgram, as_one_node, changeable
from htas.planning.solvers.edge.search import Qualities
from htas.planning.solvers.edge.state import EdgeDecision, EdgeState, Layout, decision


@dataclass(frozen=True, slots=True)
class Optimum:
    """`bound` is what no decision's total quality can exceed; `is_proven` where `decision` reaches it and none with
    fewer moves does."""

    decision: EdgeDecision
    quality: float
    bound: float
    is_proven: bool


def optimum(state: EdgeState, policy: EdgePolicy, *, may_migrate: bool, search_s: float) -> Optimum:
    """The best decision on a state: the most quality of service, then the fewest moves (equation 9).

    Without `may_migrate` new pods are placed and nothing moves; with it pods move, at most M_C2E and M_ER, and new pods
    wait. `search_s` is in CP-SAT's measure of work, about seconds of one core, for each of the two.
    """
    pods = changeable(state, may_migrate=may_migrate)
    answer = EdgeProgram(state, policy, pods).solve(search_s, is_exact=True)
    layout = answer.layout or Layout(state)
    quality = Qualities(state, policy).total(layout.near)
    return Optimum(decision(layout), quality, answer.bound, answer.is_best and answer.is_least)


def quality_bound(state: EdgeState, policy: EdgePolicy, *, may_migrate: bool, search_s: float) -> float:
    """A total quality of service that no decision on a state exceeds. `search_s` as in `optimum`."""
    return as_one_node(state, policy, may_migrate=may_migrate, search_s=search_s).bound


def carried_out(state: EdgeState, made: EdgeDecision) -> Layout:
    """The layout that a decision leads to."""
    layout = Layout(state)
    for move in made.moves:
        layout.put(move.pod, move.target)
    for seat in made.seats:
        layout.put(seat.pod, seat.target)
    return layout


def total_quality(layout: Layout, policy: EdgePolicy) -> float:
    """QoS(u) (equation 1): the sum over the services that have pods."""
    return Qualities(layout.state, policy).total(layout.near)
