"""Volumes: where they can be reached (VolumeBinding, VolumeZone), shared (VolumeRestrictions) and attached (limits).

Sources: kube-scheduler v1.36, plugins/volumebinding, volumezone, volumerestrictions and nodevolumelimits. What is
wrong with the claims themselves is found first (PreFilter) and said of the pod, not of nodes. Not judged, for want of
the objects in the snapshot: storage capacity (CSIStorageCapacity) and inline volumes of single clouds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from htas.model.constraints import NodeSelectorTerm
from htas.model.nodes import ZONE_LABEL
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, VolumeClaim
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility import node_affinity
from htas.planning.cluster.feasibility.world import Refusal, VolumeIndex, World
from htas.planning.cluster.table import NO_VALUE

AFFINITY_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
"""So since v1.33 (kubernetes pull 129887); before: "node(s) had volume node affinity conflict"."""
NO_VOLUME_ZONE = "node(s) had no available volume zone"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
READ_WRITE_ONCE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
MAX_VOLUMES = "node(s) exceed max volume count"

_REGION_LABEL = "topology.kubernetes.io/region"
_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": _REGION_LABEL,
    ZONE_LABEL: ZONE_LABEL,
    _REGION_LABEL: _REGION_LABEL,
}
"""Labels of volumes that name zones or regions, and the label of nodes that answers where the same one is missing."""
_STATIC = "kubernetes.io/no-provisioner"
_MIGRATED = {"kubernetes.io/cinder": "cinder.csi.openstack.org"}
"""In-tree provisioners whose volumes a CSI driver attaches."""
_NO_LIMIT = np.iinfo(np.int64).max


def refuse_claims(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Every node, where a claim is not there, must be bound before it is used, or cannot be judged."""
    trouble = _trouble(world, cls)
    if trouble is not None:
        yield Refusal(trouble, np.ones(rows.stop - rows.start, dtype=np.bool_))


def _trouble(world: World, cls: PodClass) -> str | None:
    """The first thing wrong with a class's claims: missing ones before unbound ones, as the plugins are ordered."""
    claims = []
    for name in cls.constraints.claims:
        claim = world.volumes.claims.get(f"{cls.namespace}/{name}")
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        claims.append(claim)
    unbound = [claim for claim in claims if claim.volume is None]
    classes = [world.volumes.classes.get(claim.storage_class or "") for claim in unbound]
    if any(storage is None or not storage.waits_for_first_consumer for storage in classes):
        return UNBOUND_IMMEDIATE
    for storage in classes:
        if storage is not None and storage.provisioner in ("", _STATIC):
            return f'storageclass "{storage.name}" has no provisioner: choosing static volumes is not supported by htas'
    missing = [c.volume for c in claims if c.volume is not None and c.volume not in world.volumes.persistent]
    return f'persistentvolume "{missing[0]}" not found' if missing else None


@dataclass(frozen=True, slots=True)
class Reach:
    """From where a volume can be used: some term must hold. `what` names it for people."""

    what: str
    terms: tuple[NodeSelectorTerm, ...]


def reaches(volumes: VolumeIndex, namespace: str, claims: Iterable[str]) -> Iterator[Reach]:
    """What bound volumes, and the classes of those still to be made, ask of a node."""
    for name in claims:
        claim = volumes.claims.get(f"{namespace}/{name}")
        if claim is None:
            continue
        volume = volumes.persistent.get(claim.volume or "")
        storage = volumes.classes.get(claim.storage_class or "")
        if volume is not None and volume.node_affinity is not None:
            yield Reach(f"volume {volume.name} of claim {name}", volume.node_affinity)
        elif claim.volume is None and claim.selected_node is not None:
            there = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, (claim.selected_node,)),))
            yield Reach(f"the volume that is being made for claim {name} on node {claim.selected_node}", (there,))
        elif claim.volume is None and storage is not None and storage.allowed_topologies:
            yield Reach(f"storage class {storage.name} of claim {name}", storage.allowed_topologies)


def refuse_binding(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes from which bound volumes cannot be reached, or where unbound ones would not be made."""
    far = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    outside = np.zeros_like(far)
    for claim in _known_claims(world, cls):
        volume = world.volumes.persistent.get(claim.volume or "")
        storage = world.volumes.classes.get(claim.storage_class or "")
        if volume is not None and volume.node_affinity is not None:
            far |= ~node_affinity.any_term(world.table, volume.node_affinity, rows)
        elif claim.volume is None and claim.selected_node is not None:
            outside |= _all_but(world, claim.selected_node, rows)
        elif claim.volume is None and storage is not None and storage.allowed_topologies:
            outside |= ~node_affinity.any_term(world.table, storage.allowed_topologies, rows)
    if far.any():
        yield Refusal(AFFINITY_CONFLICT, far)
    if outside.any():
        yield Refusal(BIND_CONFLICT, outside)


def _all_but(world: World, node: str, rows: slice) -> Bools:
    """A volume that is being made for one node can be used from no other (kube-scheduler, checkVolumeProvisions)."""
    others = np.ones(rows.stop - rows.start, dtype=np.bool_)
    row = world.table.row_of.get(node, -1)
    if rows.start <= row < rows.stop:
        others[row - rows.start] = False
    return others


def refuse_zone(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes in other zones or regions than the labels of bound volumes name; nodes that name none take any."""
    elsewhere = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for claim in _known_claims(world, cls):
        volume = world.volumes.persistent.get(claim.volume or "")
        if volume is not None:
            elsewhere |= _other_zone(world, volume, rows)
    if elsewhere.any():
        elsewhere &= _names_zone(world, rows)
        yield Refusal(NO_VOLUME_ZONE, elsewhere)


def _known_claims(world: World, cls: PodClass) -> Iterator[VolumeClaim]:
    for name in cls.constraints.claims:
        claim = world.volumes.claims.get(f"{cls.namespace}/{name}")
        if claim is not None:
            yield claim


def _other_zone(world: World, volume: PersistentVolume, rows: slice) -> Bools:
    """Nodes without one of a volume's zones; a label may join several with `__` (and with an empty part says none)."""
    other = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for key, stable_key in _ZONES.items():
        zones = tuple(volume.labels.get(key, "").split("__"))
        if "" in zones:
            continue
        same = node_affinity.label_meets(world.table, Requirement(key, Operator.IN, zones), rows)
        if key != stable_key:
            lacks = world.table.label(key).codes[rows] == NO_VALUE
            same |= lacks & node_affinity.label_meets(world.table, Requirement(stable_key, Operator.IN, zones), rows)
        other |= ~same
    return other


def _names_zone(world: World, rows: slice) -> Bools:
    return np.asarray(np.any([world.table.label(key).codes[rows] != NO_VALUE for key in _ZONES], axis=0))


def refuse_restrictions(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """A ReadWriteOncePod claim that a pod uses is closed to all others, wherever that pod runs."""
    for claim in _known_claims(world, cls):
        if "ReadWriteOncePod" in claim.access_modes and world.tallies.claim_users[claim.key] > 0:
            yield Refusal(READ_WRITE_ONCE_POD, np.ones(rows.stop - rows.start, dtype=np.bool_))
            return


def refuse_limits(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes whose CSI driver could not attach the pod's volumes beside those attached; shared ones count once."""
    if not cls.constraints.claims:
        return
    wanted = [f"{cls.namespace}/{name}" for name in cls.constraints.claims]
    by_driver = Counter(driver for driver in (_driver(world, key) for key in wanted) if driver is not None)
    full = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for driver, count in by_driver.items():
        limits = _limits(world, driver)[rows]
        # All claims of a row, whatever their driver, are at least those of this one: few rows need a closer look.
        for i in np.flatnonzero(world.tallies.claims_per_row[rows] + count > limits).tolist():
            full[i] |= _attached_after(world, rows.start + i, driver, wanted) > limits[i]
    if full.any():
        yield Refusal(MAX_VOLUMES, full)


def _limits(world: World, driver: str) -> Ints:
    """By row, how many volumes a driver can attach (the greatest integer: no limit)."""

    def compute(rows: slice) -> Ints:
        nodes = world.table.nodes[rows]
        return np.array([dict(node.attach_limits).get(driver, _NO_LIMIT) for node in nodes], dtype=np.int64)

    return world.amounts(("attach limit", driver), compute)


def _attached_after(world: World, row: int, driver: str, wanted: Iterable[str]) -> int:
    """Volumes of a driver on a row once the wanted ones are there; 0 if that adds none, since then nothing changes."""
    attached = world.tallies.claims_on.get(row, Counter())
    new = [key for key in wanted if key not in attached and _driver(world, key) == driver]
    return len(new) + sum(_driver(world, key) == driver for key in attached) if new else 0


def _driver(world: World, key: str) -> str | None:
    """The CSI driver that attaches a claim's volume: the volume's, or the one that will provision it."""
    claim = world.volumes.claims.get(key)
    if claim is None:
        return None
    volume = world.volumes.persistent.get(claim.volume or "")
    if volume is not None:
        return volume.driver
    storage = world.volumes.classes.get(claim.storage_class or "")
    return _MIGRATED.get(storage.provisioner, storage.provisioner) if storage is not None else None
