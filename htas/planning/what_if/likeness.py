"""Flavours as a cluster shows them: a machine bought anew would look like those of its kind that are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from htas.model.constraints import Taint
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
from htas.model.policy import NodeGroup
from htas.model.resources import Resources
from htas.model.volumes import Volumes
from htas.planning.cluster.machines import offers_what_it_promised, typical
from htas.planning.cluster.zones import zones_of

GIVEN_TO_ALL = ("kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/region")
"""Labels that every node gets from its kubelet and its cloud, and that are the same on all of a kind."""
ITS_OWN = frozenset(
    {
        CLAIM_LABEL,
        CLUSTER_LABEL,
        GROUP_LABEL,
        HOSTNAME_LABEL,
        INSTANCE_TYPE_LABEL,
        ZONE_LABEL,
        "beta.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/zone",
    }
)
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "htas.io/",
    "ToBeDeletedBy",
    "DeletionCandidate",
)
"""Taints that tell of a node's state, not of its kind."""


def as_seen(catalogue: Catalogue, workers: Sequence[Node], *, is_of_flavours: bool = True) -> Catalogue:
    """The catalogue with what the price file leaves open filled in from the nodes that are there.

    Zones: where no zone is stated, those of the cluster. Labels: what two or more nodes of a flavour (or of the whole
    cluster) all share, such as a pool's name or the GPU's model. Taints: those that every node of the flavour bears; of
    a flavour that no node shows, those that every node with one of its devices bears.

    Unless labels and taints are `is_of_flavours`, only labels that all workers share count, and taints that are named
    as a device of the flavour: the rest may be a pool's.
    """
    zones = zones_of(workers)
    everywhere = shared_labels(workers)
    flavours = tuple(
        _as_seen(flavour, zones, everywhere, [node for node in workers if node.flavour == flavour.name], workers)
        if is_of_flavours
        else _as_device(flavour, zones, everywhere, workers)
        for flavour in catalogue.flavours
    )
    return msgspec.structs.replace(catalogue, flavours=flavours)


def _as_device(
    flavour: Flavour, zones: tuple[str, ...], everywhere: Mapping[str, str], workers: Sequence[Node]
) -> Flavour:
    named = {taint.key for taint in flavour.taints}
    devices = {name for name, amount in flavour.capacity.extended if amount} - named
    taints = tuple(taint for taint in taints_of_devices(flavour, workers) if taint.key in devices)
    labels = {**everywhere, **flavour.labels}
    return msgspec.structs.replace(flavour, zones=flavour.zones or zones, labels=labels, taints=flavour.taints + taints)


def _as_seen(
    flavour: Flavour,
    zones: tuple[str, ...],
    everywhere: Mapping[str, str],
    nodes: list[Node],
    workers: Sequence[Node],
) -> Flavour:
    known = {taint.key for taint in flavour.taints}
    taints = _shared_taints(nodes) if nodes else taints_of_devices(flavour, workers)
    return msgspec.structs.replace(
        flavour,
        zones=flavour.zones or zones,
        labels={**everywhere, **shared_labels(nodes), **flavour.labels},
        taints=flavour.taints + tuple(taint for taint in taints if taint.key not in known),
    )


def shared_labels(nodes: Sequence[Node]) -> dict[str, str]:
    """Labels that all nodes share; of a single node only those that are never its own."""
    if not nodes:
        return {}
    shared = set(nodes[0].labels.items())
    for node in nodes[1:]:
        shared &= node.labels.items()
    told = sorted((key, value) for key, value in shared if key not in ITS_OWN)
    return {key: value for key, value in told if len(nodes) > 1 or key in GIVEN_TO_ALL}


def lent_labels(flavour: Flavour, workers: Sequence[Node], groups: Iterable[NodeGroup]) -> dict[str, str]:
    """Labels that a flavour which no node shows has from all nodes alone: the price file and the groups do not say so.

    Without those that a kubelet and a cloud give to every node.
    """
    given = {item for group in groups for item in group.labels.items()}
    return {
        key: value
        for key, value in shared_labels(workers).items()
        if key not in GIVEN_TO_ALL and key not in flavour.labels and (key, value) not in given
    }


def taints_of_devices(flavour: Flavour, workers: Iterable[Node]) -> list[Taint]:
    """The taints that every node bears which has some device that the flavour has, such as a GPU."""
    devices = {name for name, amount in flavour.capacity.extended if amount}
    having = [node for node in workers if any(name in devices and n for name, n in node.allocatable.extended)]
    return _shared_taints(having)


def _shared_taints(nodes: Sequence[Node]) -> list[Taint]:
    if not nodes:
        return []
    everywhere = set(nodes[0].taints).intersection(*(node.taints for node in nodes[1:]))
    return sorted(filter(is_lasting, everywhere), key=lambda taint: (taint.key, taint.effect, taint.value))


def is_lasting(taint: Taint) -> bool:
    """Whether a taint says of which kind a node is, and not what state it is in."""
    return not taint.key.startswith(_PASSING)


def offered_by(workers: Iterable[Node], catalogue: Catalogue) -> dict[str, Resources]:
    """What the typical Ready node of each flavour offers to pods, of those that offer about what was promised."""
    showing: dict[str, list[Node]] = defaultdict(list)
    flavours = {flavour.name: flavour for flavour in catalogue.flavours}
    for node in workers:
        flavour = flavours.get(node.flavour or "")
        if flavour is not None and node.is_ready and offers_what_it_promised(node.allocatable, flavour):
            showing[flavour.name].append(node)
    return {name: typical(nodes).allocatable for name, nodes in showing.items()}


def with_driver_labels(nodes: Sequence[Node], volumes: Volumes) -> tuple[Node, ...]:
    """The nodes with the topology labels that CSI drivers gave them.

    CSINodes tell which labels these are. Where none does, since a dump lacks them, they are those by which CSI volumes
    ask for their nodes.
    """
    if any(node.topology_keys for node in nodes):
        return tuple(nodes)
    asked = {
        expression.key
        for volume in volumes.persistent
        if volume.driver is not None
        for term in volume.node_affinity or ()
        for expression in term.expressions
    }
    keys = tuple(sorted(asked))
    return tuple(msgspec.structs.replace(node, topology_keys=keys) for node in nodes)
