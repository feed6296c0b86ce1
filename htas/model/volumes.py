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
    """A PersistentVolumeClaim; `volume` None: not bound yet."""

    namespace: str
    name: str
    volume: str | None = None
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class StorageClass(msgspec.Struct, frozen=True, omit_defaults=True):
    """`allowed_topologies` are terms one of which a node must match; empty: every node."""

    name: str
    provisioner: str = ""
    waits_for_first_consumer: bool = False
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()


class Volumes(msgspec.Struct, frozen=True):
    """All volume objects of a snapshot."""

    persistent: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
