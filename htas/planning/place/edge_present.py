"""The edge as a cluster shows it, without a simulation: who is where. For metrics and people; nothing is decided on it.

Pods that wait or are not Ready count as in the cloud, as do those on nodes that are not Ready: no user reaches them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from htas.model.edge import Tier
from htas.model.nodes import GROUP_LABEL, Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.planning.cluster.services import served
from htas.planning.solvers.edge.state import CLOUD, EdgeNode, EdgePod, EdgeService, EdgeState, Size, minus, summed


def edge_nodes(nodes: Iterable[Node], policy: Policy) -> list[Node]:
    return [node for node in nodes if policy.tier_of(node) is Tier.EDGE]


def empty_groups(nodes: Iterable[Node], policy: Policy) -> list[str]:
    """What is to be told of groups whose machines nobody buys and that no node belongs to: a label is missing."""
    there = {node.group for node in nodes}
    return [
        f"group {group.name} is of tier edge and no node belongs to it: label nodes {GROUP_LABEL}={group.name}"
        for group in policy.groups
        if not group.is_elastic and group.name not in there
    ]


def services_of(pods: Iterable[Pod]) -> tuple[EdgeService, ...]:
    """Services by name, each with the target that its newest pod states: while it is rolled out they may differ."""
    newest: dict[str, Pod] = {}
    for pod in pods:
        name = pod.service or ""
        if name not in newest or (newest[name].created_at, newest[name].name) < (pod.created_at, pod.name):
            newest[name] = pod
    return tuple(EdgeService(name, newest[name].qos) for name in sorted(newest))


def present(view: ClusterView, policy: Policy) -> EdgeState:
    """Nobody waits to be placed and nobody may be moved in it; any pod is taken to be allowed on any edge node."""
    nodes = edge_nodes(view.nodes, policy)
    index = {node.name: i for i, node in enumerate(nodes)}
    taken: dict[int, list[Size]] = defaultdict(list)
    for pod in view.pods:
        if pod.node in index:
            taken[index[pod.node]].append(_size(pod.requests))
    pods = served(view)
    services = services_of(pods)
    number = {service.name: i for i, service in enumerate(services)}
    near = {node.name: i for i, node in enumerate(nodes) if node.is_ready}
    anywhere = frozenset(range(len(nodes)))
    return EdgeState(
        tuple(
            EdgeNode(node.name, _size(node.allocatable), minus(_size(node.allocatable), summed(taken[i], 2)))
            for i, node in enumerate(nodes)
        ),
        services,
        tuple(
            EdgePod(
                pod.key,
                number[pod.service or ""],
                _size(pod.requests),
                near.get(pod.node or "", CLOUD) if pod.ready_since is not None else CLOUD,
                may_move=False,
                allowed=anywhere,
            )
            for pod in pods
        ),
    )


def _size(amounts: Resources) -> Size:
    return amounts.cpu_m, amounts.memory_bytes
