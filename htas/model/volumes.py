"""Volumes, as far as they decide where a pod may run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.constraints import NodeSelectorTerm


class PersistentVolume(msgspec.Struct, frozen=True, omit_defaults=True):
    """`node_affinity` None: reachable from every node. `driver` is the CSI driver, for attach limits."""

    name: str
    labels: Mapping[str, str] = {}
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    driver: str | None = None


class VolumeClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A PersistentVolumeClaim; `volume` None: not bound yet.

    `selected_node`: a scheduler has chosen that node, and the volume is being made for it.
    """

    namespace: str
    name: str
    volume: str | None = None
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()
    selected_node: str | None = None
    owner: str = ""
    """The uid of the pod that it was made for, as of a generic ephemeral volume; "": of none."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class StorageClass(msgspec.Struct, frozen=True, omit_defaults=True):
    """`allowed_topologies` are terms one of which a node must match; empty: every node."""

    name: str
    provisioner: str = ""
    waits_for_first_consumer: bool = False
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()


CINDER_ZONE_LABEL = "topology.cinder.csi.openstack.org/zone"
"""What cinder-csi-plugin labels a node with: its server's availability zone, as Nova's metadata service tells it."""


class TopologyLabel(msgspec.Struct, frozen=True):
    """A label by which a CSI driver names a machine's zone. `zones` maps zones to values; others name themselves.

    `otherwise` is the value on machines for which no zone is asked for; None: nobody knows beforehand.
    """

    key: str
    zones: Mapping[str, str] = {}
    otherwise: str | None = None

    def value(self, zone: str | None) -> str | None:
        return self.otherwise if zone is None else self.zones.get(zone, zone)


class VolumeRules(msgspec.Struct, frozen=True):
    """What is taken for granted of machines that no node like them has shown yet."""

    topology: tuple[TopologyLabel, ...] = (TopologyLabel(CINDER_ZONE_LABEL),)
    attach_limits: tuple[tuple[str, int], ...] = ()
    """Volumes each CSI driver can attach."""


class Volumes(msgspec.Struct, frozen=True):
    """All volume objects of a snapshot."""

    persistent: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
