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
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal, VolumeIndex
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


def refuse_claims(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Every node, where a claim is not there, must be bound before it is used, or cannot be judged."""
    trouble = _trouble(context, cls)
    if trouble is not None:
        yield FilterRefusal(trouble, np.ones(rows.stop - rows.start, dtype=np.bool_))


def _trouble(context: FilterContext, cls: PodClass) -> str | None:
    """The first thing wrong with a class's claims: missing ones before unbound ones, as the plugins are ordered."""
    claims = []
    for name in cls.constraints.claims:
        claim = context.volumes.claims.get(f"{cls.namespace}/{name}")
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        claims.append(claim)
    for name, pod in cls.constraints.own_claims:
        if context.volumes.claims[f"{cls.namespace}/{name}"].owner != pod:
            what = f"PVC {cls.namespace}/{name} was not created for pod {cls.example.key}"
            return f"{what} (pod is not owner)"
    unbound = [claim for claim in claims if claim.volume is None]
    classes = [context.volumes.classes.get(claim.storage_class or "") for claim in unbound]
    if any(storage is None or not storage.waits_for_first_consumer for storage in classes):
        return UNBOUND_IMMEDIATE
    for storage in classes:
        if storage is not None and storage.provisioner in ("", _STATIC):
            return f'storageclass "{storage.name}" has no provisioner: choosing static volumes is not supported by htas'
    missing = [c.volume for c in claims if c.volume is not None and c.volume not in context.volumes.persistent]
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


def asked_of_nodes(context: FilterContext, cls: PodClass) -> Iterator[str]:
    """What each of a class's volumes asks of a node, in words: `volume pv-0 of claim v0: zone In (az-1)`."""
    for reach in reaches(context.volumes, cls.namespace, cls.constraints.claims):
        terms = [" and ".join(map(_asked, (*term.expressions, *term.fields))) for term in reach.terms]
        yield f"{reach.what}: {' or '.join(terms)}"
    for claim in _known_claims(context, cls):
        volume = context.volumes.persistent.get(claim.volume or "")
        if volume is not None and volume.node_affinity is None:
            zones = sorted(volume.labels[key] for key in _ZONES if volume.labels.get(key))
            if zones:
                yield f"volume {volume.name} of claim {claim.name}: zone {', '.join(zones)} by its labels"


def _asked(part: Requirement) -> str:
    return f"{part.key} {part.operator.value} ({', '.join(part.values)})" if part.values else part.key


def refuse_binding(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Nodes from which bound volumes cannot be reached, or where unbound ones would not be made."""
    far = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    outside = np.zeros_like(far)
    for claim in _known_claims(context, cls):
        volume = context.volumes.persistent.get(claim.volume or "")
        storage = context.volumes.classes.get(claim.storage_class or "")
        if volume is not None and volume.node_affinity is not None:
            far |= ~node_affinity.any_term(context.table, volume.node_affinity, rows)
        elif claim.volume is None and claim.selected_node is not None:
            outside |= _all_but(context, claim.selected_node, rows)
        elif claim.volume is None and storage is not None and storage.allowed_topologies:
            outside |= ~node_affinity.any_term(context.table, storage.allowed_topologies, rows)
    if far.any():
        yield FilterRefusal(AFFINITY_CONFLICT, far)
    if outside.any():
        yield FilterRefusal(BIND_CONFLICT, outside)


def _all_but(context: FilterContext, node: str, rows: slice) -> Bools:
    """A volume that is being made for one node can be used from no other (kube-scheduler, checkVolumeProvisions)."""
    others = np.ones(rows.stop - rows.start, dtype=np.bool_)
    row = context.table.row_of.get(node, -1)
    if rows.start <= row < rows.stop:
        others[row - rows.start] = False
    return others


def refuse_zone(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Nodes in other zones or regions than the labels of bound volumes name; nodes that name none take any."""
    elsewhere = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for claim in _known_claims(context, cls):
        volume = context.volumes.persistent.get(claim.volume or "")
        if volume is not None:
            elsewhere |= _other_zone(context, volume, rows)
    if elsewhere.any():
        elsewhere &= _names_zone(context, rows)
        yield FilterRefusal(NO_VOLUME_ZONE, elsewhere)


def _known_claims(context: FilterContext, cls: PodClass) -> Iterator[VolumeClaim]:
    for name in cls.constraints.claims:
        claim = context.volumes.claims.get(f"{cls.namespace}/{name}")
        if claim is not None:
            yield claim


def _other_zone(context: FilterContext, volume: PersistentVolume, rows: slice) -> Bools:
    """Nodes without one of a volume's zones; a label may join several with `__` (and with an empty part says none)."""
    other = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for key, stable_key in _ZONES.items():
        zones = tuple(volume.labels.get(key, "").split("__"))
        if "" in zones:
            continue
        same = node_affinity.label_meets(context.table, Requirement(key, Operator.IN, zones), rows)
        if key != stable_key:
            lacks = context.table.label(key).codes[rows] == NO_VALUE
            same |= lacks & node_affinity.label_meets(context.table, Requirement(stable_key, Operator.IN, zones), rows)
        other |= ~same
    return other


def _names_zone(context: FilterContext, rows: slice) -> Bools:
    return np.asarray(np.any([context.table.label(key).codes[rows] != NO_VALUE for key in _ZONES], axis=0))


def refuse_restrictions(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """A ReadWriteOncePod claim that a pod uses is closed to all others, wherever that pod runs."""
    for claim in _known_claims(context, cls):
        if "ReadWriteOncePod" in claim.access_modes and context.counts.claim_users[claim.key] > 0:
            yield FilterRefusal(READ_WRITE_ONCE_POD, np.ones(rows.stop - rows.start, dtype=np.bool_))
            return


def refuse_limits(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Nodes whose CSI driver could not attach the pod's volumes beside those attached; shared ones count once."""
    if not cls.constraints.claims:
        return
    wanted = [f"{cls.namespace}/{name}" for name in cls.constraints.claims]
    by_driver = wanted_of_drivers(context, cls)
    full = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for driver, count in by_driver.items():
        limits = _limits(context, driver)[rows]
        # All claims of a row, whatever their driver, are at least those of this one: few rows need a closer look.
        for i in np.flatnonzero(context.counts.claims_per_row[rows] + count > limits).tolist():
            full[i] |= _attached_after(context, rows.start + i, driver, wanted) > limits[i]
    if full.any():
        yield FilterRefusal(MAX_VOLUMES, full)


def attachable(context: FilterContext, cls: PodClass, rows: slice) -> Bools:
    """Rows that could attach all of the pod's volumes if they had no other."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for driver, count in wanted_of_drivers(context, cls).items():
        ok &= _limits(context, driver)[rows] >= count
    return ok


def wanted_of_drivers(context: FilterContext, cls: PodClass) -> Counter[str]:
    """How many volumes of each driver a pod of a class wants attached."""
    wanted = (_driver(context, f"{cls.namespace}/{name}") for name in cls.constraints.claims)
    return Counter(driver for driver in wanted if driver is not None)


def _limits(context: FilterContext, driver: str) -> Ints:
    """By row, how many volumes a driver can attach (the greatest integer: no limit)."""

    def compute(rows: slice) -> Ints:
        nodes = context.table.nodes[rows]
        return np.array([dict(node.attach_limits).get(driver, _NO_LIMIT) for node in nodes], dtype=np.int64)

    return context.column(("attach limit", driver), compute)


def _attached_after(context: FilterContext, row: int, driver: str, wanted: Iterable[str]) -> int:
    """Volumes of a driver on a row once the wanted ones are there; 0 if that adds none, since then nothing changes."""
    attached = context.counts.claims_on.get(row, Counter())
    new = [key for key in wanted if key not in attached and _driver(context, key) == driver]
    return len(new) + sum(_driver(context, key) == driver for key in attached) if new else 0


def _driver(context: FilterContext, key: str) -> str | None:
    """The CSI driver that attaches a claim's volume: the volume's, or the one that will provision it."""
    claim = context.volumes.claims.get(key)
    if claim is None:
        return None
    volume = context.volumes.persistent.get(claim.volume or "")
    if volume is not None:
        return volume.driver
    storage = context.volumes.classes.get(claim.storage_class or "")
    return _MIGRATED.get(storage.provisioner, storage.provisioner) if storage is not None else None
