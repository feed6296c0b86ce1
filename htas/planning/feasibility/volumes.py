"""Volumes: where they can be reached (VolumeBinding, VolumeZone), shared (VolumeRestrictions) and attached (limits).

Sources: kube-scheduler, plugins/volumebinding, volumezone, volumerestrictions and nodevolumelimits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from htas.model.nodes import ZONE_LABEL
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, VolumeClaim
from htas.planning.classes import Bools, PodClass
from htas.planning.feasibility import node_affinity
from htas.planning.feasibility.world import Refusal, World

AFFINITY_CONFLICT = "node(s) had volume node affinity conflict"
NO_VOLUME_ZONE = "node(s) had no available volume zone"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
READ_WRITE_ONCE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
MAX_VOLUMES = "node(s) exceed max volume count"
_ZONES = (
    ZONE_LABEL,
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def refuse_binding(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes from which the pod's volumes cannot be reached. Reads nodes and volume objects only."""
    everywhere = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for name in cls.constraints.claims:
        claim = world.volumes.claims.get(f"{cls.namespace}/{name}")
        if claim is None:
            yield Refusal(f'persistentvolumeclaim "{name}" not found', everywhere)
        elif claim.volume is None:
            yield from _unbound(world, claim, rows)
        else:
            yield from _bound(world, claim, rows)


def _unbound(world: World, claim: VolumeClaim, rows: slice) -> Iterator[Refusal]:
    storage = world.volumes.classes.get(claim.storage_class or "")
    if storage is None or not storage.waits_for_first_consumer:
        yield Refusal(UNBOUND_IMMEDIATE, np.ones(rows.stop - rows.start, dtype=np.bool_))
    elif storage.allowed_topologies:
        outside = ~node_affinity.any_term(world.table, storage.allowed_topologies, rows)
        if outside.any():
            yield Refusal(BIND_CONFLICT, outside)


def _bound(world: World, claim: VolumeClaim, rows: slice) -> Iterator[Refusal]:
    volume = world.volumes.persistent.get(claim.volume or "")
    if volume is None:
        name = claim.volume
        yield Refusal(f'persistentvolume "{name}" not found', np.ones(rows.stop - rows.start, dtype=np.bool_))
        return
    if volume.node_affinity is not None:
        far = ~node_affinity.any_term(world.table, volume.node_affinity, rows)
        if far.any():
            yield Refusal(AFFINITY_CONFLICT, far)
    elsewhere = _other_zone(world, volume, rows)
    if elsewhere.any():
        yield Refusal(NO_VOLUME_ZONE, elsewhere)


def _other_zone(world: World, volume: PersistentVolume, rows: slice) -> Bools:
    """Nodes with zone or region labels unlike the volume's; a volume may name several zones, joined by `__`."""
    other = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for key in _ZONES:
        zones = volume.labels.get(key)
        if zones is not None:
            other |= ~node_affinity.label_meets(
                world.table, Requirement(key, Operator.IN, tuple(zones.split("__"))), rows
            )
    return other


def refuse_restrictions(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """A ReadWriteOncePod claim that a pod uses is closed to all others, wherever that pod runs."""
    for name in cls.constraints.claims:
        key = f"{cls.namespace}/{name}"
        claim = world.volumes.claims.get(key)
        if claim is not None and "ReadWriteOncePod" in claim.access_modes and world.tallies.claim_users[key] > 0:
            yield Refusal(READ_WRITE_ONCE_POD, np.ones(rows.stop - rows.start, dtype=np.bool_))


def refuse_limits(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes whose CSI driver could not attach the pod's volumes beside those attached; shared ones count once."""
    wanted = {f"{cls.namespace}/{name}" for name in cls.constraints.claims}
    if not wanted:
        return
    full = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for i, node in enumerate(world.table.nodes[rows]):
        if node.attach_limits:
            on_row = world.tallies.claims_on.get(rows.start + i, Counter())
            attached = {key for key, count in on_row.items() if count > 0}
            full[i] = _exceeds(world, dict(node.attach_limits), attached, wanted)
    if full.any():
        yield Refusal(MAX_VOLUMES, full)


def _exceeds(world: World, limits: dict[str, int], attached: set[str], wanted: set[str]) -> bool:
    after: Counter[str] = Counter()
    adds: set[str] = set()
    for key in attached | wanted:
        driver = _driver(world, key)
        if driver is not None:
            after[driver] += 1
            if key in wanted - attached:
                adds.add(driver)
    return any(after[driver] > limits[driver] for driver in adds if driver in limits)


def _driver(world: World, key: str) -> str | None:
    """The CSI driver that attaches a claim's volume: the volume's, or the one that will provision it."""
    claim = world.volumes.claims.get(key)
    if claim is None:
        return None
    volume = world.volumes.persistent.get(claim.volume or "")
    if volume is not None:
        return volume.driver
    storage = world.volumes.classes.get(claim.storage_class or "")
    return storage.provisioner if storage is not None else None
