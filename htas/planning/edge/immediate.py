"""New pods at once, without moving anything (KubeDSM, Algorithm 1)."""

from __future__ import annotations

from htas.model.edge import EdgePolicy
from htas.planning.edge.state import Decision, EdgeState


def place_new(state: EdgeState, policy: EdgePolicy) -> Decision:
    """A seat on the edge, or the cloud, for each new pod of a state; no moves."""
    raise NotImplementedError
