"""Moves that bring pods from the cloud back to the edge, asked for once in a period (KubeDSM, Algorithm 2).

The document takes the M_C2E pods of the best score that fit into what is free in sum, so that its next step never has
anything to free. Here as many kinds of pods are candidates as the bound on subsets allows, those that need room freed
among them: a service short of one pod may be worth more than two pods of a service that misses its target anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.making_room import LEAST_GAIN, decide_moves, reorder_edge, with_one_more
from htas.planning.solvers.edge.program import EdgeProgram, as_one_node
from htas.planning.solvers.edge.search import FOR_TIDYING, EdgeSearch, SearchEffort, Start, moves
from htas.planning.solvers.edge.state import (
    CLOUD,
    EdgeDecision,
    EdgeState,
    Layout,
    decision,
    joinable,
    kinds_of,
    part_of,
)

AT_ONCE = 5
"""Pods that are chosen together; what more may be moved is chosen from where those have come to the edge. Subsets of 5
out of 8 kinds can all be looked at, of 50 out of two kinds not."""


def suggest(state: EdgeState, policy: EdgePolicy, work: SearchEffort | None = None) -> EdgeDecision:
    """The moves that raise the total quality of service most, and of those that raise it as much few.

    Where none does, pods change their edge nodes if that leaves much less of the edge in unusable pieces. New pods are
    not touched. An empty decision: nothing is better than what is. `work` is what it may take (None: the
    policy's `work_limit`); once that is used up, what was found so far stands.
    """
    if not state.nodes:
        return EdgeDecision()
    state = joinable(state)
    start, search = Layout(state), EdgeSearch(state, policy, work)
    found = _lifted(search, start)
    if search.quality(found) <= search.quality(start) + LEAST_GAIN:
        found = _tidied(search, start)
    made = decision(found)
    return EdgeDecision(moves=made.moves)


def _lifted(search: EdgeSearch, start: Layout) -> Layout:
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


def candidates(search: EdgeSearch, layout: Layout, most: int) -> list[list[int]]:
    """Kinds of pods in the cloud, by score (equation 10), as many as have no more subsets than may be looked at."""
    kinds = [kind[:most] for kind in kinds_of(search.state, search.movable_in_cloud(layout))]
    kinds.sort(key=lambda kind: (-_score(search, layout, kind), kind))
    ways = [1, *[0] * most]
    for number, kind in enumerate(kinds):
        ways = with_one_more(ways, len(kind))
        if sum(ways) > search.policy.subset_limit:
            return kinds[:number]
    return kinds


def _score(search: EdgeSearch, layout: Layout, kind: Sequence[int]) -> float:
    """What the pods of a kind add to the quality for their size, as many of them as make that most.

    Of the first alone (equation 10) one would not see the γ that the third earns.
    """
    return most_gained(search, layout, kind) / search.share(kind[0])


def most_gained(search: EdgeSearch, layout: Layout, kind: Sequence[int]) -> float:
    """The quality that one pod of a kind brings on the mean, when as many come as make that most."""
    service = search.service(kind)
    return max(search.qualities.gain(service, layout.near[service], n) / n for n in range(1, len(kind) + 1))


def _tidied(search: EdgeSearch, start: Layout) -> Layout:
    """Less fragmentation, as preparation: only where a service has pods in the cloud that may be let in and gain."""
    most = search.policy.cloud_to_edge_moves
    if not search.policy.reorder_moves or not most:
        return start
    kinds = kinds_of(search.state, search.movable_in_cloud(start))
    if not any(most_gained(search, start, kind[:most]) > LEAST_GAIN for kind in kinds):
        return start
    search.tries = search.policy.subset_limit // FOR_TIDYING
    return reorder_edge(Start(search, start)) or start


# A decision on moves made better by the integer program, within a bounded time, on the nodes that matter.

NODES_SEARCHED = 8
"""On a larger edge: those that change and the emptiest, so many in all."""


def improved(search: EdgeSearch, start: Layout, found: Layout, most: int) -> Layout:
    """A better layout than what was found, or as good a one with fewer moves, by the program on the nodes that matter;
    at most so many pods come from the cloud.

    They are all nodes of a small edge; of a larger one those that the layout changes and those with most left. The
    edge as one node tells how good it can get: what is as good with no more moves cannot be improved, as half of the
    decisions on 3 nodes; for what is as good with more moves only fewer moves are searched for.
    """
    reached = search.quality(found)
    policy = msgspec.structs.replace(search.policy, cloud_to_edge_moves=most)
    limit = as_one_node(search.state, policy, may_migrate=True, search_s=policy.search_s)
    is_best = reached >= limit.bound - LEAST_GAIN
    if is_best and limit.layout is not None and limit.is_least and moves(found) <= moves(limit.layout):
        return found
    pods = search.state.pods
    nodes = frozenset(_nodes_that_matter(search, start, found))
    edge = [pod for pod in search.movable_on_edge(start) if pods[pod].where in nodes]
    program = EdgeProgram(search.state, policy, [*search.movable_in_cloud(start), *edge], nodes)
    if limit.layout is not None:  # None where there was no time even for that
        program.between(reached, limit.bound)
    if is_best:
        other = program.with_fewer_moves(moves(found), policy.search_s)
    else:
        program.hint(found)
        other = program.solve(policy.search_s, is_exact=False).layout
    return found if other is None or not _is_better(search, other, found) else other


def _is_better(search: EdgeSearch, one: Layout, other: Layout) -> bool:
    gained = search.quality(one) - search.quality(other)
    return gained > LEAST_GAIN or (gained > -LEAST_GAIN and moves(one) < moves(other))


def _nodes_that_matter(search: EdgeSearch, start: Layout, found: Layout) -> list[int]:
    changed = {
        node
        for before, after in zip(start.where, found.where, strict=True)
        if before != after
        for node in (before, after)
        if node != CLOUD
    }
    emptiest = sorted(
        range(len(start.free)),
        key=lambda node: (node not in changed, -part_of(start.free[node], start.state.nodes[node].total), node),
    )
    return emptiest[: max(len(changed), NODES_SEARCHED)]
