"""New pods at once, without moving anything (KubeDSM, Algorithm 1)."""

from __future__ import annotations

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.beyond import place_many
from htas.planning.solvers.edge.deciding import decide_new
from htas.planning.solvers.edge.decision import Decision, decision
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.matching import relevant_nodes, table_is_small
from htas.planning.solvers.edge.search import Search
from htas.planning.solvers.edge.state import EdgeState, joinable, kinds_of


def place_new(state: EdgeState, policy: EdgePolicy) -> Decision:
    """A seat on the edge, or the cloud, for each new pod of a state; no moves."""
    state = joinable(state)
    start, search = Layout(state), Search(state, policy)
    new = [number for number, pod in enumerate(state.pods) if pod.is_new]
    kinds = kinds_of(state, [number for number in new if state.pods[number].allowed])
    if not kinds:
        return decision(start)
    if table_is_small(len(relevant_nodes(start, kinds, search.fragmentation)), kinds):
        return decision(decide_new(search, start, kinds))
    return decision(place_many(search, start, kinds))
