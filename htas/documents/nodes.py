"""The nodes that are there: what they are asked for, how old they are and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from htas.documents.figures import Figures, KnownFigures
from htas.documents.forms import Sorted
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.model.stages import Stage


class NodeLine(msgspec.Struct, frozen=True):
    """One node of an export: `cpu` and `memory` are requests over allocatable, `created` is ISO 8601 in UTC."""

    node: str
    group: str
    flavour: str
    zone: str
    cpu: float
    memory: float
    pods: int
    created: str
    age_s: int
    price_per_hour: str
    state: str


class PresentCluster(msgspec.Struct, frozen=True):
    """The cluster at an instant, and what its nodes come to. `waiting` counts the pods that no node has."""

    now: float
    currency: str
    waiting: int
    lines: Sequence[NodeLine]
    nanos_per_hour: int
    upcoming: Mapping[Stage, float] = {}
    """When each kind of cycle is due next by its period, as the daemon that leads has published it; empty: unknown."""
    recommended: Sequence[str] = ()
    """What a daemon that only recommends would have saved, in words, a line each."""
    cpu: float = 0.0
    """Requests over allocatable, of all nodes together; `memory` likewise."""
    memory: float = 0.0
    kept: Mapping[str, int] = {}
    """Why nodes are kept, as the daemon that leads has published it: how many by reason."""
    unplaced: Mapping[str, int] = {}
    """Why pods are pending, likewise."""


class Reasons(msgspec.Struct, frozen=True):
    """Why nodes are kept and pods are pending: how many by reason."""

    kept: Mapping[str, int] = {}
    unplaced: Mapping[str, int] = {}


ORDER: Mapping[Sorted, Callable[[NodeLine], tuple[object, str]]] = {
    Sorted.NAME: lambda line: (0, line.node),
    Sorted.CPU: lambda line: (-line.cpu, line.node),
    Sorted.MEMORY: lambda line: (-line.memory, line.node),
    Sorted.AGE: lambda line: (-line.age_s, line.node),
    Sorted.PRICE: lambda line: (-float(line.price_per_hour or 0), line.node),
}
"""Most first, oldest first; of equals by name."""


def pods_by_node(view: ClusterView) -> Mapping[str, Sequence[Pod]]:
    """The pods of each node, a node without any left out."""
    on: dict[str, list[Pod]] = defaultdict(list)
    for pod in view.pods:
        if pod.node is not None:
            on[pod.node].append(pod)
    return on


def present_of(
    view: ClusterView,
    now: float,
    policy: Policy,
    sort: Sorted,
    upcoming: Mapping[Stage, float] | None = None,
    known: KnownFigures | None = None,
    recommended: Sequence[str] = (),
    reasons: Reasons | None = None,
    on: Mapping[str, Sequence[Pod]] | None = None,
    registered: Mapping[str, str] = {},
) -> PresentCluster:
    """What a cluster's nodes come to at an instant; `known`: what was worked out for an earlier one, `on` the pods by
    node where that is known.
    """
    on, known = on if on is not None else pods_by_node(view), known or KnownFigures()
    found = [(node, known.of(node, on.get(node.name, ()), policy, now)) for node in view.nodes]
    lines = sorted(
        (
            node_line(node, figures, len(on.get(node.name, ())), now, registered.get(node.name, ""))
            for node, figures in found
        ),
        key=ORDER[sort],
    )
    waiting = len(view.pods) - sum(map(len, on.values()))
    total = sum(figures.nanos for _, figures in found)
    why = reasons or Reasons()
    return PresentCluster(
        now,
        policy.catalogue.currency,
        waiting,
        lines,
        total,
        upcoming or {},
        recommended,
        _together([figures.cpu for _, figures in found], [node.allocatable.cpu_m for node in view.nodes]),
        _together([figures.memory for _, figures in found], [node.allocatable.memory_bytes for node in view.nodes]),
        why.kept,
        why.unplaced,
    )


def _together(shares: Sequence[float], sizes: Sequence[int]) -> float:
    """The share of all that is offered."""
    asked = sum(share * size for share, size in zip(shares, sizes, strict=True))
    return round(asked / sum(sizes), 4) if sum(sizes) else 0.0


def node_line(node: Node, figures: Figures, pods: int, now: float, registered: str = "") -> NodeLine:
    """One node with what is known of it."""
    return NodeLine(
        node=node.name,
        group=figures.group,
        flavour=figures.flavour,
        zone=node.zone or "",
        cpu=round(figures.cpu, 4),
        memory=round(figures.memory, 4),
        pods=pods,
        created=figures.created,
        age_s=max(0, int(now - node.created_at)),
        price_per_hour=figures.price,
        state="draining" if node.is_draining else registered or ("ready" if node.is_ready else "not ready"),
    )
