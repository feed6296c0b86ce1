"""Pools: runs of rows with one order of preference, the fixed capacity first, then each node group in turn."""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from dataclasses import dataclass
from itertools import groupby

from htas.model.edge import Tier
from htas.model.nodes import Node
from htas.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows [start, stop) of one group (None: of no group) and one tier; `is_coming`: machines on their way."""

    group: str | None
    rows: slice
    is_edge: bool = False
    is_coming: bool = False


def in_pools(
    policy: Policy, nodes: Sequence[Node], outgoing: Container[str], coming: Set[str]
) -> tuple[list[Node], tuple[Pool, ...]]:
    """Nodes in the order of their rows, those of a pool beside each other, and the pools in order of preference.

    Of a group, those on the edge come first, and of these what is there before what is on its way, so that no pod waits
    for a machine while a node has room. Outgoing nodes come last: what would be placed there is soon to be moved.
    """
    ranks = {group.name: rank for rank, group in enumerate(policy.groups)}

    def kind(node: Node) -> tuple[bool, int, bool, bool]:
        is_cloud = policy.tier_of(node) is Tier.CLOUD
        return node.name in outgoing, ranks.get(node.group or "", -1), is_cloud, node.name in coming

    rows = sorted(nodes, key=lambda node: (kind(node), node.name))
    pools: list[Pool] = []
    for (_, rank, is_cloud, is_coming), some in groupby(rows, key=kind):
        start = pools[-1].rows.stop if pools else 0
        group = policy.groups[rank].name if rank >= 0 else None
        pools.append(Pool(group, slice(start, start + len(list(some))), not is_cloud, is_coming))
    return rows, tuple(pools)
