"""Which nodes are our machines', and whether so many of them are away that it must be the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from htas.model.claims import Instance
from htas.model.nodes import Node

UNREADY_SHARE, UNREADY_COUNT = 0.45, 3
"""Cluster Autoscaler's max-total-unready-percentage and ok-total-unready-count: beyond, it is the network's fault."""


def too_many_unready(nodes: Sequence[Node]) -> bool:
    """Whether more nodes are not Ready than break down by themselves."""
    unready = sum(not node.is_ready for node in nodes)
    return unready > UNREADY_COUNT and unready > UNREADY_SHARE * len(nodes)


def nodes_of_claims(cluster: str, nodes: Iterable[Node], machines: Mapping[str, Instance]) -> dict[str, Node]:
    """Our nodes by claim: by their label, or by the machine they say they run on where they came without it."""
    claim_of = {instance.id: claim for claim, instance in machines.items()}
    found: dict[str, Node] = {}
    for node in nodes:
        if node.cluster == cluster and node.claim is not None:
            found[node.claim] = node
        elif node.cluster is None and node.machine in claim_of:
            found.setdefault(claim_of[node.machine], node)
    return found
