"""Moves that bring pods from the cloud back to the edge, asked for once in a period (KubeDSM, Algorithm 2)."""

from __future__ import annotations

from htas.model.edge import EdgePolicy
from htas.planning.edge.state import Decision, EdgeState


def suggest(state: EdgeState, policy: EdgePolicy) -> Decision:
    """The moves that raise the total quality of service most, and of those that raise it as much the fewest.

    New pods are not touched. An empty decision: nothing is better than what is.
    """
    raise NotImplementedError
