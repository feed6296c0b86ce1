"""Claims as the cloud and the cluster show them: what is known without a journal, or beside a broken one.

Which nodes are our machines', and whether so many of them are away that it must be the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.planning.cluster.initialization import still_awaited


def claims_seen(
    nodes: Iterable[Node], instances: Iterable[Instance], policy: Policy, now: float
) -> tuple[NodeClaim, ...]:
    """A claim for each node and machine that bears this cluster's name.

    A node that registered less than `timeouts.initialization` ago may still be waiting for taints to go or devices to
    come. Any other one counts as initialized.
    """
    ours = [node for node in nodes if node.cluster == policy.cluster and node.claim is not None]
    claims = {node.claim or "": _initialized(_of_node(node), node, policy, now) for node in ours}
    for instance in instances:
        state = instance.state.of_its_claim
        if instance.cluster != policy.cluster or instance.claim is None or state is None:
            continue
        if instance.claim not in claims:
            claims[instance.claim] = _of_instance(instance, instance.claim, state)
    return tuple(claims[claim] for claim in sorted(claims))


def ready_by_now(
    claims: Iterable[NodeClaim], nodes: Iterable[Node], policy: Policy, learned: Mapping[str, Resources]
) -> tuple[NodeClaim, ...]:
    """The same claims; launched ones whose node is initialized count as Ready, though that is not written down yet.

    Not those whose node came without our labels: it is given them, and its taints, before work may go there.
    """
    there = {node.claim: node for node in nodes if node.cluster == policy.cluster and node.is_ready}
    return tuple(
        msgspec.structs.replace(claim, state=ClaimState.READY)
        if claim.is_coming
        and (node := there.get(claim.id)) is not None
        and not still_awaited(claim, node, policy, learned)
        else claim
        for claim in claims
    )


def _initialized(claim: NodeClaim, node: Node, policy: Policy, now: float) -> NodeClaim:
    """A claim known by its node alone, as Ready once nothing is awaited any more."""
    if claim.state is not ClaimState.REGISTERED or not node.is_ready:
        return claim
    is_new = now - node.created_at < policy.timeouts.initialization_s
    if is_new and still_awaited(claim, node, policy):
        return msgspec.structs.replace(claim, node_ready_at=node.ready_since)
    return msgspec.structs.replace(claim, state=ClaimState.READY)


def _of_node(node: Node) -> NodeClaim:
    return NodeClaim(
        id=node.claim or "",
        group=node.group or "",
        flavour=node.flavour or "",
        state=_state(node),
        created_at=node.created_at,
        since=node.created_at,
        node=node.name,
    )


def _state(node: Node) -> ClaimState:
    if node.is_draining:
        return ClaimState.DRAINING
    return ClaimState.REGISTERED


def _of_instance(instance: Instance, claim: str, state: ClaimState) -> NodeClaim:
    return NodeClaim(
        id=claim,
        group=instance.group or "",
        flavour=instance.flavour,
        state=state,
        created_at=instance.created_at,
        since=instance.created_at,
        zone=instance.zone,
        instance=instance.id,
        rented_at=instance.launched_at,
    )


UNREADY_SHARE, UNREADY_COUNT = 0.45, 3
"""Cluster Autoscaler's max-total-unready-percentage and ok-total-unready-count: beyond, it is the network's fault."""


def too_many_unready(nodes: Sequence[Node]) -> bool:
    """Whether more nodes are not Ready than break down by themselves."""
    unready = sum(not node.is_ready for node in nodes)
    return unready > UNREADY_COUNT and unready > UNREADY_SHARE * len(nodes)
