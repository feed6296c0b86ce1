"""The document's own model (KubeDSM, equations 1 to 9) as an integer program: what the heuristics are measured by."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.edge import EdgePolicy
from htas.planning.edge.state import Decision, EdgeState


@dataclass(frozen=True, slots=True)
class Optimum:
    """`bound` is what no decision's total quality can exceed; `is_proven` where `decision` reaches it."""

    decision: Decision
    quality: float
    bound: float
    is_proven: bool


def optimum(state: EdgeState, policy: EdgePolicy, *, may_migrate: bool, search_s: float) -> Optimum:
    """The best decision on a state: the most quality of service, then the fewest moves (equation 9).

    Without `may_migrate` new pods are placed and nothing moves; with it moves are limited by M_C2E and M_ER.
    `search_s` is in CP-SAT's measure of work, about seconds of one core.
    """
    raise NotImplementedError
