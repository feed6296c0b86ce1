"""Moves that bring pods from the cloud back to the edge, asked for once in a period (KubeDSM, Algorithm 2).

The document takes the M_C2E pods of the best score that fit into what is free in sum, so that its next step never has
anything to free. Here as many kinds of pods are candidates as the bound on subsets allows, those that need room freed
among them: a service short of one pod may be worth more than two pods of a service that misses its target anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.best_fit import LEAST_GAIN, reorder_edge
from htas.planning.solvers.edge.deciding import decide_moves, with_one_more
from htas.planning.solvers.edge.decision import Decision, decision
from htas.planning.solvers.edge.improving import improved
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.search import FOR_TIDYING, Search, Work
from htas.planning.solvers.edge.start import Start
from htas.planning.solvers.edge.state import CLOUD, EdgeState, joinable, kinds_of

AT_ONCE = 5
"""Pods that are chosen together; what more may be moved is chosen from where those have come to the edge. Subsets of 5
out of 8 kinds can all be looked at, of 50 out of two kinds not."""


def suggest(state: EdgeState, policy: EdgePolicy, work: Work | None = None) -> Decision:
    """The moves that raise the total quality of service most, and of those that raise it as much few.

    Where none does, pods change their edge nodes if that leaves much less of the edge in unusable pieces. New pods are
    not touched. An empty decision: nothing is better than what is. `work` is what it may take (None: the
    policy's `work_limit`); once that is used up, what was found so far stands.
    """
    if not state.nodes:
        return Decision()
    state = joinable(state)
    start, search = Layout(state), Search(state, policy, work)
    found = _lifted(search, start)
    if search.quality(found) <= search.quality(start) + LEAST_GAIN:
        found = _tidied(search, start)
    made = decision(found)
    return Decision(moves=made.moves)


def _lifted(search: Search, start: Layout) -> Layout:
    """Pods from the cloud on the edge, a few at a time: none of the later ones takes back what the first have gained,
    so that more moves are never worth less."""
    most, found = search.policy.cloud_to_edge_moves, start
    while (left := most - lifts(found)) > 0:
        kinds = candidates(search, found, min(left, AT_ONCE))
        more = decide_moves(search, found, kinds, min(left, AT_ONCE))
        if found is start:
            more = improved(search, start, more, min(left, AT_ONCE))
        if search.quality(more) <= search.quality(found) + LEAST_GAIN:
            break
        found = more
    return improved(search, start, found, most) if most > AT_ONCE else found


def lifts(layout: Layout) -> int:
    """How many running pods a layout has brought from the cloud."""
    places = zip(layout.where, layout.state.pods, strict=True)
    return sum(where != CLOUD == pod.where and not pod.is_new for where, pod in places)


def candidates(search: Search, layout: Layout, most: int) -> list[list[int]]:
    """Kinds of pods in the cloud, by score (equation 10), as many as have no more subsets than may be looked at."""
    kinds = [kind[:most] for kind in kinds_of(search.state, search.movable_in_cloud(layout))]
    kinds.sort(key=lambda kind: (-_score(search, layout, kind), kind))
    ways = [1, *[0] * most]
    for number, kind in enumerate(kinds):
        ways = with_one_more(ways, len(kind))
        if sum(ways) > search.policy.subset_limit:
            return kinds[:number]
    return kinds


def _score(search: Search, layout: Layout, kind: Sequence[int]) -> float:
    """What the pods of a kind add to the quality for their size, as many of them as make that most.

    Of the first alone (equation 10) one would not see the γ that the third earns.
    """
    return most_gained(search, layout, kind) / search.share(kind[0])


def most_gained(search: Search, layout: Layout, kind: Sequence[int]) -> float:
    """The quality that one pod of a kind brings on the mean, when as many come as make that most."""
    service = search.service(kind)
    return max(search.qualities.gain(service, layout.near[service], n) / n for n in range(1, len(kind) + 1))


def _tidied(search: Search, start: Layout) -> Layout:
    """Less fragmentation, as preparation: only where a service has pods in the cloud that may be let in and gain."""
    most = search.policy.cloud_to_edge_moves
    if not search.policy.reorder_moves or not most:
        return start
    kinds = kinds_of(search.state, search.movable_in_cloud(start))
    if not any(most_gained(search, start, kind[:most]) > LEAST_GAIN for kind in kinds):
        return start
    search.tries = search.policy.subset_limit // FOR_TIDYING
    return reorder_edge(Start(search, start)) or start
