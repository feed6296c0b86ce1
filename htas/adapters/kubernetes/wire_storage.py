"""Volumes, their claims and classes, and what a node attaches, as the API server sends them."""

from __future__ import annotations

from htas.adapters.kubernetes.wire import Metadata, NodeSelector, Wire


class CsiSource(Wire, frozen=True):
    driver: str


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True):
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: dict[str, object] | None = None
    azure_disk: dict[str, object] | None = None
    azure_file: dict[str, object] | None = None
    cinder: dict[str, object] | None = None
    gce_persistent_disk: dict[str, object] | None = None
    portworx_volume: dict[str, object] | None = None
    vsphere_volume: dict[str, object] | None = None


class PersistentVolume(Wire, frozen=True):
    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class ClaimSpec(Wire, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class PersistentVolumeClaim(Wire, frozen=True):
    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()


class TopologyRequirement(Wire, frozen=True):
    """One of the values must be the label's: it knows no operators (storage/v1 TopologySelectorLabelRequirement)."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Wire, frozen=True):
    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(Wire, frozen=True):
    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] | None = None


class Allocatable(Wire, frozen=True):
    count: int | None = None


class CsiDriver(Wire, frozen=True):
    name: str
    topology_keys: list[str] | None = None
    allocatable: Allocatable | None = None


class CsiNodeSpec(Wire, frozen=True):
    drivers: list[CsiDriver] | None = None


class CsiNode(Wire, frozen=True):
    metadata: Metadata
    spec: CsiNodeSpec = CsiNodeSpec()
