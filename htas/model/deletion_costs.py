"""The annotation by which a ReplicaSet that shrinks knows which of its pods to delete first, and HTAS's costs of it."""

from __future__ import annotations

from zlib import crc32

from htas.model.nodes import Node

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""A number of 32 bits; of two pods that are Ready the one of the lower goes first, and a pod without it counts as 0."""
HIGHEST_OF_OURS = -1_000_000_000
"""HTAS's costs are at most this, so that nobody else's are taken for them."""
_NODES_A_MINUTE = 16
"""Machines of one minute are told apart by their names: of pods with equal costs each machine gives up some in turn."""
_LAST_MINUTE = 71_000_000
"""Of the year 2104; -2,147,483,648 is the least that there is."""


def cost_on(node: Node) -> int:
    """The later a node came the lower: `HIGHEST_OF_OURS` - 16 for each minute since 1970 - 0 to 15 by its name.

    On a node of 2026-11-28 08:00 UTC, minute 29,930,880, it is -1,478,894,080 to -1,478,894,095.
    """
    minute = max(0, min(int(node.created_at) // 60, _LAST_MINUTE))
    return HIGHEST_OF_OURS - minute * _NODES_A_MINUTE - crc32(node.name.encode()) % _NODES_A_MINUTE


def is_ours(cost: int | None) -> bool:
    return cost is not None and cost <= HIGHEST_OF_OURS
