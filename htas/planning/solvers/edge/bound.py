"""What no decision can exceed: the same model with all edge nodes as one (KubeDSM, equation 8 summed over the nodes).

As one node has no pieces that pods do not fit into, and no moves within itself, it can do whatever the nodes can.
"""

from __future__ import annotations

from dataclasses import replace

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.program import Answer, EdgeProgram, changeable
from htas.planning.solvers.edge.state import CLOUD, EdgeNode, EdgePod, EdgeState, joinable, summed

_HERE = frozenset({0})


def as_one_node(
    state: EdgeState, policy: EdgePolicy, *, may_migrate: bool, search_s: float, part: float = 1.0
) -> Answer:
    """The best layout of a state whose edge nodes are one, with only a `part` of what is free there."""
    one = merged(state, part)
    return EdgeProgram(one, policy, changeable(one, may_migrate=may_migrate)).solve(search_s, is_exact=False)


def merged(state: EdgeState, part: float) -> EdgeState:
    """The same pods with one edge node; what over-full nodes lack is not taken from the others, and room that nobody
    may use is not offered to all."""
    state = joinable(state)
    width = len(state.nodes[0].total)
    total = summed((node.total for node in state.nodes), width)
    free = summed((tuple(int(max(0, left) * part) for left in node.free) for node in state.nodes), width)
    return EdgeState((EdgeNode("edge", total, free),), state.services, tuple(_merged(pod) for pod in state.pods))


def _merged(pod: EdgePod) -> EdgePod:
    return replace(pod, where=CLOUD if pod.where == CLOUD else 0, allowed=_HERE if pod.allowed else frozenset())
