"""Everything but pods from the wire into the model: nodes, budgets, volumes, and what is known of controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from htas.adapters.kubernetes import selectors, wire, wire_storage
from htas.adapters.kubernetes.errors import LONGEST, Fault, Faults
from htas.adapters.kubernetes.pods import epoch, namespace, ready
from htas.adapters.kubernetes.requests import amounts
from htas.model.budgets import DisruptionBudget
from htas.model.constraints import NodeSelectorTerm
from htas.model.edge import TIER_LABEL, Tier
from htas.model.nodes import Node
from htas.model.resources import Resources
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node a scheduler has chosen for its pod, which tells the provisioner where to make the volume."""


class NodeStorage(NamedTuple):
    """What a CSINode says: how many volumes each driver can attach, and the labels drivers gave the node."""

    attach_limits: tuple[tuple[str, int], ...] = ()
    topology_keys: tuple[str, ...] = ()


NO_STORAGE = NodeStorage()

IN_TREE_DRIVERS = {
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "azure_disk": "disk.csi.azure.com",
    "azure_file": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "portworx_volume": "pxd.portworx.com",
    "vsphere_volume": "csi.vsphere.vmware.com",
}
"""Sources of volumes from before CSI, by the driver that attaches them now (csi-translation-lib)."""


STARTING = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)
"""Taints that Kubernetes itself takes off a node as it comes up (Cluster Autoscaler, utils/kubernetes/ready.go)."""


def node(raw: wire.Node, storage: Mapping[str, NodeStorage], faults: Faults) -> Node:
    """A node; one that states no allocatable offers its capacity, as the API server would fill it in."""
    status, name = raw.status, raw.metadata.name
    attaching = storage.get(name, NO_STORAGE)
    is_ready = _is_ready(raw)
    condition = ready(status.conditions) if is_ready else None
    offered, path = status.allocatable, "status.allocatable"
    if offered is None:
        offered, path = status.capacity, "status.capacity"
    return Node(
        name=name,
        allocatable=Resources.of(amounts(offered, path, faults)),
        uid=raw.metadata.uid,
        labels=raw.metadata.labels or {},
        annotations=raw.metadata.annotations or {},
        taints=selectors.taints(raw.spec.taints, "spec.taints", faults),
        is_unschedulable=raw.spec.unschedulable,
        is_ready=is_ready,
        provider_id=raw.spec.provider_id,
        created_at=epoch(raw.metadata.creation_timestamp) or 0.0,
        attach_limits=attaching.attach_limits,
        runtime=status.node_info.container_runtime_version[:LONGEST],
        kubelet=status.node_info.kubelet_version[:LONGEST],
        ready_since=epoch(condition.last_transition_time) if condition is not None else None,
        conditions=_conditions(status.conditions),
        topology_keys=attaching.topology_keys,
    )


def _conditions(conditions: Iterable[wire.Condition] | None) -> tuple[tuple[str, float], ...]:
    """Those that stand at True beside Ready; of one that does not say since when nobody knows for how long."""
    found = (
        (each.type[:LONGEST], each.last_transition_time.timestamp())
        for each in conditions or ()
        if each.status == "True" and each.type != "Ready" and each.last_transition_time is not None
    )
    return tuple(sorted(found))


def tier_doubts(raw: wire.Node) -> Faults:
    """A tier that there is none of: the node's group says then where it is."""
    stated = (raw.metadata.labels or {}).get(TIER_LABEL)
    if stated is None or stated in tuple(Tier):
        return []
    return [Fault(f"metadata.labels[{TIER_LABEL}]", f"{stated!r} is neither edge nor cloud; its group's tier counts")]


def _is_ready(raw: wire.Node) -> bool:
    """Whether the node says so, and what its start taints it with is gone.

    The condition turns True a moment before the taint goes: pods that fit would be refused, and another machine bought.
    """
    if any(taint.key in STARTING for taint in raw.spec.taints or ()):
        return False
    return ready(raw.status.conditions) is not None


def node_storage(raw: wire_storage.CsiNode) -> NodeStorage:
    """Limits of the drivers that state one, and the topology labels of all of them."""
    drivers = raw.spec.drivers or ()
    limits = (
        (driver.name, driver.allocatable.count)
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    )
    keys = {key for driver in drivers for key in driver.topology_keys or ()}
    return NodeStorage(tuple(sorted(limits)), tuple(sorted(keys)))


def budget(raw: wire.Budget, faults: Faults) -> DisruptionBudget:
    """A budget. One whose status is of an older generation allows nothing: the Eviction API answers 429 until the
    disruption controller has caught up (kubernetes, pkg/registry/core/pod/storage/eviction.go, checkAndDecrement).
    """
    is_current = raw.status.observed_generation >= raw.metadata.generation
    return DisruptionBudget(
        namespace(raw.metadata),
        raw.metadata.name,
        selectors.selector(raw.spec.selector, "spec.selector", faults),
        raw.status.disruptions_allowed if is_current else 0,
        raw.status.current_healthy,
        raw.status.desired_healthy,
        raw.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )


def namespace_labels(raw: wire.Namespace) -> dict[str, str]:
    """Labels of a namespace, with its own name among them as the API server puts it there."""
    return {**(raw.metadata.labels or {}), "kubernetes.io/metadata.name": raw.metadata.name}


def replicas(kind: str, raw: wire.Controller) -> int:
    """How many pods a controller wants at a time; 1 where it does not say (apps/v1, batch/v1 defaults)."""
    stated = raw.spec.parallelism if kind == "Job" else raw.spec.replicas
    return stated if stated is not None else 1


def volume(raw: wire_storage.PersistentVolume, faults: Faults) -> PersistentVolume:
    spec = raw.spec
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    in_tree = (driver for source, driver in IN_TREE_DRIVERS.items() if getattr(spec, source) is not None)
    return PersistentVolume(
        raw.metadata.name,
        raw.metadata.labels or {},
        selectors.node_terms(required, "spec.nodeAffinity.required", faults) if required is not None else None,
        spec.csi.driver if spec.csi is not None else next(in_tree, None),
    )


def claim(raw: wire_storage.PersistentVolumeClaim) -> VolumeClaim:
    return VolumeClaim(
        namespace(raw.metadata),
        raw.metadata.name,
        raw.spec.volume_name or None,
        raw.spec.storage_class_name,
        tuple(raw.spec.access_modes or ()),
        (raw.metadata.annotations or {}).get(SELECTED_NODE) or None,
        next((each.uid for each in raw.metadata.owner_references or () if each.controller and each.kind == "Pod"), ""),
    )


def storage_class(raw: wire_storage.StorageClass) -> StorageClass:
    return StorageClass(
        raw.metadata.name,
        raw.provisioner,
        raw.volume_binding_mode == "WaitForFirstConsumer",
        tuple(
            NodeSelectorTerm(
                tuple(
                    Requirement(each.key, Operator.IN, tuple(each.values))
                    for each in term.match_label_expressions or ()
                )
            )
            for term in raw.allowed_topologies or ()
        ),
    )


def opens(before: Node, now: Node) -> bool:
    """Whether a node takes more than it did."""
    return (
        (before.is_unschedulable and not now.is_unschedulable)
        or before.taints != now.taints
        or (before.allocatable != now.allocatable)
    )
