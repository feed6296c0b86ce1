"""Moves that bring pods from the cloud back to the edge, asked for once in a period (KubeDSM, Algorithm 2).

The document takes the M_C2E pods of the best score that fit into what is free in sum, so that its next step never has
anything to free. Here as many kinds of pods are candidates as the bound on subsets allows, those that need room freed
among them: a service short of one pod may be worth more than two pods of a service that misses its target anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.edge import EdgePolicy
from htas.planning.edge.best_fit import LEAST_GAIN, reorder_edge
from htas.planning.edge.deciding import decide_moves, subsets_at_most
from htas.planning.edge.decision import Decision, decision
from htas.planning.edge.improving import improved
from htas.planning.edge.layout import Layout
from htas.planning.edge.search import FOR_TIDYING, Search
from htas.planning.edge.state import EdgeState, joinable, kinds_of


def suggest(state: EdgeState, policy: EdgePolicy) -> Decision:
    """The moves that raise the total quality of service most, and of those that raise it as much few.

    Where none does, pods change their edge nodes if that leaves much less of the edge in unusable pieces. New pods are
    not touched. An empty decision: nothing is better than what is.
    """
    if not state.nodes:
        return Decision()
    state = joinable(state)
    start, search = Layout(state), Search(state, policy)
    found = start
    if policy.cloud_to_edge_moves:
        kinds = candidates(search, start)
        found = decide_moves(search, start, kinds)
        found = improved(search, start, found)
    if search.quality(found) <= search.quality(start) + LEAST_GAIN:
        found = _tidied(search, start)
    made = decision(found)
    return Decision(moves=made.moves)


def candidates(search: Search, start: Layout) -> list[list[int]]:
    """Kinds of pods in the cloud, by score (equation 10), as many as have no more subsets than may be looked at."""
    most = search.policy.cloud_to_edge_moves
    kinds = [kind[:most] for kind in kinds_of(search.state, search.movable_in_cloud())]
    many = 0
    while many < len(kinds) and subsets_at_most(many + 1, most) <= search.policy.subset_limit:
        many += 1
    return sorted(kinds, key=lambda kind: (-_score(search, start, kind), kind))[:many]


def _score(search: Search, start: Layout, kind: Sequence[int]) -> float:
    """What the pods of a kind add to the quality for their size, as many of them as make that most.

    Of the first alone (equation 10) one would not see the γ that the third earns.
    """
    service = search.service(kind)
    gains = [search.qualities.gain(service, start.near[service], n) / n for n in range(1, len(kind) + 1)]
    return max(gains) / search.share(kind[0])


def _tidied(search: Search, start: Layout) -> Layout:
    """Less fragmentation, as preparation: only where a service has pods in the cloud that it might once let in."""
    if not search.policy.reorder_moves or not search.movable_in_cloud():
        return start
    search.tries = search.policy.subset_limit // FOR_TIDYING
    return reorder_edge(search, start) or start
