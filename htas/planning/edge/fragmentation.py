"""Room that is left but that no pod can use."""

from __future__ import annotations

from htas.planning.edge.state import EdgeState


def node_fragmentation(state: EdgeState) -> list[float]:
    """Of each edge node, the share of it, 0 to 1, that is free and yet of no use to the services' pods."""
    raise NotImplementedError
