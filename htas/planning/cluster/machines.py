"""Machines as the nodes they register as: labels, taints, and what a node of a flavour really offers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from htas.model.billing import Price
from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import (
    CLAIM_LABEL,
    CLUSTER_LABEL,
    GROUP_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    Node,
)
from htas.model.policy import NodeGroup, Policy
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.attaching import AttachLimits
from htas.planning.cluster.offered import capped, is_as_good_as_none


def machine_node(
    policy: Policy,
    group: NodeGroup,
    flavour: Flavour,
    zone: str | None,
    claim: str,
    allocatable: Resources | None = None,
    attach_limits: AttachLimits = (),
    topology: Mapping[str, str] = {},
) -> Node:
    """The node a claim's machine registers as. It bears the claim's id as its name.

    `topology` are labels that it will get from CSI drivers, which nobody else may give it.
    """
    labels = {
        **topology,
        **flavour.labels,
        **group.labels,
        CLUSTER_LABEL: policy.cluster,
        CLAIM_LABEL: claim,
        GROUP_LABEL: group.name,
        INSTANCE_TYPE_LABEL: flavour.name,
        HOSTNAME_LABEL: claim,
    }
    if zone is not None:
        labels[ZONE_LABEL] = zone
    return Node(
        name=claim,
        allocatable=allocatable if allocatable is not None else flavour.allocatable,
        labels=labels,
        taints=flavour.taints + group.taints,
        attach_limits=attach_limits,
        is_of_any_zone=zone is None,
    )


LEAST_QUARTERS, MOST_QUARTERS = 1, 5
"""Fourths of its flavour's size between which a node is believed for all that will be bought. A kubelet reserves some
40 % of a GiB at most; a node that said it had 1,000 cores had 40 pods wait for one machine of four."""


def offers_what_it_promised(allocatable: Resources, flavour: Flavour) -> bool:
    """Whether what a node offers may be taken for what all of its flavour do.

    It shows every extended resource: device plugins register after the node is Ready. Its cores and memory are those of
    a machine of that size: what a node says of itself is no word on others.
    """
    shown = {name for name, _ in allocatable.extended}
    size = flavour.capacity
    return all(name in shown for name, _ in flavour.allocatable.extended) and all(
        LEAST_QUARTERS * whole <= 4 * offered <= MOST_QUARTERS * whole
        for offered, whole in (
            (allocatable.cpu_m, size.cpu_m),
            (allocatable.memory_bytes, size.memory_bytes),
        )
    )


def learned_allocatable(snapshot: ClusterSnapshot, catalogue: Catalogue) -> Mapping[str, Resources]:
    """What each flavour really offers: learned, or what its typical initialized node shows.

    Machines of ours come first. Where there is none and the price file reserves nothing, somebody else's node of the
    flavour tells more than the file: four cores and 16 GiB of a list are 3.92 and 14.9 on each node of a kubeadm dump.
    It tells what is less, and nothing more: see `_at_most_promised`.
    """
    flavours = {flavour.name: flavour for flavour in catalogue.flavours}
    learned = {name: each for name, each in snapshot.learned.items() if name in flavours}
    coming = {claim.id for claim in snapshot.claims if claim.is_coming}
    unknown = flavours.keys() - learned.keys()  # none, once each flavour has had a node
    showing: dict[str, list[Node]] = defaultdict(list)
    for node in snapshot.cluster.nodes if unknown else ():
        name = node.flavour or ""
        is_initialized = node.is_ready and node.claim not in coming and not node.is_control_plane
        if name in unknown and is_initialized and offers_what_it_promised(node.allocatable, flavours[name]):
            showing[name].append(node)
    for name, nodes in showing.items():
        node = typical([node for node in nodes if node.claim is not None] or nodes)
        if node.claim is not None:
            learned[name] = node.allocatable
        elif flavours[name].reserved == NOTHING:
            learned[name] = _at_most_promised(node.allocatable, flavours[name])
        elif not flavours[name].capacity.ephemeral_bytes and node.allocatable.ephemeral_bytes:
            disk = node.allocatable.ephemeral_bytes  # all that the file leaves open
            learned[name] = msgspec.structs.replace(flavours[name].allocatable, ephemeral_bytes=disk)
    return {
        name: capped(allocatable, flavours[name], catalogue)
        for name, allocatable in learned.items()
        if not is_as_good_as_none(allocatable, flavours[name])
    }


def typical(nodes: Sequence[Node]) -> Node:
    """The node in the middle by cores and memory, of two the larger: one odd node is no word on its flavour."""
    ranked = sorted(nodes, key=lambda node: (node.allocatable.cpu_m, node.allocatable.memory_bytes, node.name))
    return ranked[len(ranked) // 2]


def _at_most_promised(allocatable: Resources, flavour: Flavour) -> Resources:
    """Of what somebody else's node offers what a machine bought of its flavour will offer, too.

    What its owner has set up is no word on ours: 250 pods for the kubelet's 110, a GPU sliced in four, a device of a
    plugin of theirs had a machine bought that did not take the pods it was bought for.
    """
    promised, shown = flavour.allocatable, dict(allocatable.extended)
    return Resources(
        min(allocatable.cpu_m, promised.cpu_m),
        min(allocatable.memory_bytes, promised.memory_bytes),
        allocatable.ephemeral_bytes,
        min(allocatable.pods, promised.pods),
        tuple((name, min(amount, shown[name])) for name, amount in promised.extended),
    )


def owned_machines(policy: Policy, snapshot: ClusterSnapshot) -> list[tuple[str, str, str | None]]:
    """(group, flavour, zone) of every machine of ours that is there, on its way or may still be billed, each once.

    A claim that failed, and one whose node is gone, count until the cloud no longer has their machine: where deletes
    were refused, 18 machines were once billed under `maxNodes: 15`.
    """
    claims = [claim for claim in snapshot.claims if _may_have_a_machine(claim)]
    ids = {claim.id for claim in claims}
    nodes = [node for node in snapshot.cluster.nodes if node.cluster == policy.cluster and node.claim not in ids]
    return [(claim.group, claim.flavour, claim.zone) for claim in claims] + [
        (node.group or "", node.flavour or "", node.labels.get(ZONE_LABEL)) for node in nodes
    ]


def _may_have_a_machine(claim: NodeClaim) -> bool:
    """A claim that the cloud refused has none, and had none."""
    if claim.state is ClaimState.RELEASED:
        return False
    return claim.state is not ClaimState.FAILED or claim.instance is not None


def nanos_paid(node: Node, claim: NodeClaim | None, policy: Policy) -> int:
    """An hour's price of a node: the catalogue's, or for a flavour that has left it the one it was bought at."""
    return price_paid(node, claim, policy).nanos_per_hour


def price_paid(node: Node, claim: NodeClaim | None, policy: Policy) -> Price:
    """The same with its monthly cap."""
    price = policy.whole_price_of(node)
    if price is not None and (price.nanos_per_hour or claim is None):
        return price
    return claim.price if claim is not None else Price(0)
