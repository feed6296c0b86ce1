"""Pools: runs of rows with one order of preference, the fixed capacity first, then each node group in turn."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

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


def pool_ranks(policy: Policy, nodes: Sequence[Node], outgoing: Set[str]) -> list[int]:
    """Where each node's row belongs: rows of a pool are neighbours. Of a group, those on the edge come first.

    Outgoing nodes come last: what would be placed there is soon to be moved.
    """
    ranks = {group.name: rank for rank, group in enumerate(policy.groups)}
    return [
        2 * ranks.get(node.group or "", -1)
        + (policy.tier_of(node) is Tier.CLOUD)
        + (2 * len(ranks) + 2 if node.name in outgoing else 0)
        for node in nodes
    ]


def pools_of(policy: Policy, nodes: Sequence[Node], outgoing: Set[str]) -> list[Pool]:
    """Pools of rows that are sorted by `pool_ranks`."""
    names = {group.name for group in policy.groups}
    pools: list[Pool] = []
    start = 0
    kinds = [
        (node.group if node.group in names else None, policy.tier_of(node), node.name in outgoing) for node in nodes
    ]
    for row in range(1, len(nodes) + 1):
        if row == len(nodes) or kinds[row] != kinds[start]:
            group, tier, _ = kinds[start]
            pools.append(Pool(group, slice(start, row), tier is Tier.EDGE))
            start = row
    return pools
