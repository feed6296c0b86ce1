"""What HTAS would be in charge of: a cluster that others run, as it would look had HTAS bought and filled it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from htas.model.billing import Price
from htas.model.claims import ClaimState, NodeClaim
from htas.model.modes import Charge
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, DO_NOT_DISRUPT, GROUP_LABEL, OWN_LABELS, Node
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy, Workload
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.planning.cluster.offered import capped_view
from htas.planning.what_if.likeness import as_seen, offered_by

PRESENT = "(present)"
"""The group of nodes that no configured group would buy: it takes any work and buys nothing."""


def is_in_charge_of(node: Node, policy: Policy, charge: Charge) -> bool:
    """Whether HTAS would judge, empty and give back a node: it has a price, and none of its labels says otherwise."""
    is_priced = policy.catalogue.named(node.flavour) is not None
    return is_priced and not node.is_control_plane and not policy.is_given(node) and charge.has_node(node)


def policy_in_charge(policy: Policy, nodes: Iterable[Node]) -> Policy:
    """The policy with a group for nodes that no configured one would buy, and flavours that look as the nodes do."""
    workers = list(nodes)
    present = NodeGroup(PRESENT, Workload.ANY, flavours=(), cleaning=policy.groups[0].cleaning)
    catalogue = as_seen(policy.catalogue, workers) if workers else policy.catalogue
    return msgspec.structs.replace(policy, catalogue=catalogue, groups=(*policy.groups, present))


def taken_over(node: Node, policy: Policy) -> Node:
    """A node as if HTAS had bought it, for the first of the groups that would have."""
    groups = (group.name for group in policy.groups if _would_buy(group, node, policy))
    ours = {CLUSTER_LABEL: policy.cluster, CLAIM_LABEL: node.name, GROUP_LABEL: next(groups, PRESENT)}
    return msgspec.structs.replace(node, labels={**node.labels, **ours})


def _would_buy(group: NodeGroup, node: Node, policy: Policy) -> bool:
    is_sold = any(flavour.name == node.flavour for flavour in policy.flavours_of(group))
    return is_sold and group.is_elastic and set(group.taints) <= set(node.taints)


def left_alone(node: Node) -> Node:
    """A node that is there whatever HTAS does: nobody's."""
    labels = {key: value for key, value in node.labels.items() if key not in OWN_LABELS}
    return msgspec.structs.replace(node, labels=labels)


def pod_in_charge(pod: Pod, policy: Policy, charge: Charge) -> Pod:
    """A pod that HTAS would place; one that it would not be in charge of takes its room and is never moved."""
    if not pod.is_work:
        return pod
    if charge.has_pod(pod, policy.scheduler_name):
        return msgspec.structs.replace(pod, scheduler=policy.scheduler_name)
    held = {**pod.disruption, DO_NOT_DISRUPT: "true"}
    return msgspec.structs.replace(pod, scheduler=policy.scheduler_name, disruption=held)


def snapshot_in_charge(
    view: ClusterView, policy: Policy, charge: Charge, now: float, memory: Memory
) -> tuple[ClusterSnapshot, Policy]:
    """A cluster as it is, were HTAS in charge of it from this moment on, and the policy to plan it by."""
    view = capped_view(view, (), policy.catalogue)
    ours = [node for node in view.nodes if is_in_charge_of(node, policy, charge)]
    names = {node.name for node in ours}
    policy = policy_in_charge(policy, ours)
    nodes = tuple(taken_over(n, policy) if n.name in names else left_alone(n) for n in view.nodes)
    pods = tuple(pod_in_charge(pod, policy, charge) for pod in view.pods)
    snapshot = ClusterSnapshot(
        now,
        msgspec.structs.replace(view, nodes=nodes, pods=pods),
        claims=claims_of(nodes, policy),
        learned=offered_by(ours, policy.catalogue),
        memory=memory,
    )
    return snapshot, policy


def claims_of(nodes: Sequence[Node], policy: Policy) -> tuple[NodeClaim, ...]:
    """The claims that nodes taken over would have."""
    return tuple(
        NodeClaim(
            id=node.claim,
            group=node.group or "",
            flavour=node.flavour or "",
            state=ClaimState.READY if node.is_ready else ClaimState.REGISTERED,
            created_at=node.created_at,
            since=node.created_at,
            zone=node.zone,
            instance=node.machine or node.name,
            node=node.name,
            nanos_per_hour=policy.price_of(node) or 0,
            cap=(policy.whole_price_of(node) or Price(0)).cap,
        )
        for node in nodes
        if node.claim is not None
    )
