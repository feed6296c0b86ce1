"""A decision on moves made better by the integer program, within a bounded time, on the nodes that matter."""

from __future__ import annotations

import msgspec

from htas.planning.solvers.edge.best_fit import LEAST_GAIN
from htas.planning.solvers.edge.bound import as_one_node
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.program import EdgeProgram
from htas.planning.solvers.edge.search import Search, moves
from htas.planning.solvers.edge.state import CLOUD, part_of

NODES_SEARCHED = 8
"""On a larger edge: those that change and the emptiest, so many in all."""


def improved(search: Search, start: Layout, found: Layout, most: int) -> Layout:
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


def _is_better(search: Search, one: Layout, other: Layout) -> bool:
    gained = search.quality(one) - search.quality(other)
    return gained > LEAST_GAIN or (gained > -LEAST_GAIN and moves(one) < moves(other))


def _nodes_that_matter(search: Search, start: Layout, found: Layout) -> list[int]:
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
