"""The annotation by which a ReplicaSet that shrinks knows which of its pods to delete first, and HTAS's costs of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from zlib import crc32

from htas.model.nodes import Node

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation with a number of 32 bits: of two Ready pods the one with the lower goes first. Without it: 0."""
HIGHEST_OF_OURS = -1_000_000_000
"""HTAS's costs are this or lower, so that nobody else's are taken for them."""
_COST = re.compile(r"0|-?[1-9]\d{0,9}", re.ASCII)
_SINCE = 1_577_836_800
"""2020-01-01 00:00 UTC, in seconds since 1970."""
_PERIOD_S = 600
_LONGEST_S = 1_146_000_000
"""Until 2056: what is lower than -2,146,000,000 is left to the last pod of all, which a move is to be rid of."""


def cost_on(node: Node) -> int:
    """The later a node came the lower: `HIGHEST_OF_OURS` less a second for each since 2020, in tens of minutes.

    Machines of ten minutes are told apart by their names (600 ways): of equal costs each machine loses pods in turn. On
    a node of 2026-11-28 08:00 UTC it is -1,218,016,000 to -1,218,016,599.
    """
    came_s = max(0, min(int(node.created_at) - _SINCE, _LONGEST_S))
    return HIGHEST_OF_OURS - came_s // _PERIOD_S * _PERIOD_S - crc32(node.name.encode()) % _PERIOD_S


def stated_cost(annotations: Mapping[str, str]) -> int | None:
    """The API server takes whole numbers of 32 bits alone; whatever else a dump has counts for nothing."""
    stated = annotations.get(DELETION_COST, "")
    cost = int(stated) if _COST.fullmatch(stated) else None
    return cost if cost is not None and -(2**31) <= cost < 2**31 else None


def is_ours(cost: int | None) -> bool:
    """Whether HTAS wrote it. -2,147,483,648, the least there is, others write, too."""
    return cost is not None and -(2**31) < cost <= HIGHEST_OF_OURS
