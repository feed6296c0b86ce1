"""A fixed set of nodes, as it is sized once for the peak of the work."""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.flavours import Flavour
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, Node
from htas.sandbox.workload import Arrival

HEADROOM = 1.3
"""Nodes for the peak, and for what does not fill them."""


def nodes_for(flavour: Flavour, arrivals: Iterable[Arrival], least: int = 2) -> tuple[Node, ...]:
    """Nodes of one flavour for the peak of what would run at once if nothing waited, with HEADROOM."""
    changes = []
    for each in arrivals:
        asked = each.task.requests
        shares = [asked.cpu_m / max(1, flavour.allocatable.cpu_m)]
        shares.append(asked.memory_bytes / max(1, flavour.allocatable.memory_bytes))
        share = max(shares) * each.replicas
        changes.append((each.at_s, share))
        if each.task.runs_s is not None:
            changes.append((each.at_s + each.task.runs_s, -share))
    now = peak = 0.0
    for _, share in sorted(changes):
        now += share
        peak = max(peak, now)
    count = max(least, math.ceil(peak * HEADROOM))
    return tuple(_node(flavour, f"fixed-{number:03d}") for number in range(1, count + 1))


def _node(flavour: Flavour, name: str) -> Node:
    labels = {HOSTNAME_LABEL: name, INSTANCE_TYPE_LABEL: flavour.name, **flavour.labels}
    return Node(name, flavour.allocatable, uid=f"uid-{name}", labels=labels)
