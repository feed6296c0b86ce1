"""What a pod's manifest alone tells of why a twin of it would lose something, or fail."""

from __future__ import annotations

from htas.adapters.kubernetes import wire
from htas.model.migrations import Refusal
from htas.model.pods import SAFE_LOCAL_VOLUMES
from htas.model.resources import CPU, EPHEMERAL, MEMORY

PLAIN = (CPU, MEMORY, EPHEMERAL)


def obstacles(raw: wire.Pod) -> tuple[Refusal, ...]:
    """In a fixed order, each once. Volumes that their owner called dispensable are none."""
    spec = raw.spec
    volumes = indispensable(raw)
    found = {
        Refusal.HOST_NAMESPACE: spec.host_network or spec.host_pid or spec.host_ipc,
        Refusal.SIDECAR: any(each.restart_policy == "Always" for each in spec.init_containers or ()),
        Refusal.HOST_PATH: any(volume.host_path is not None for volume in volumes),
        Refusal.EMPTY_DIR: any(volume.empty_dir is not None for volume in volumes),
        Refusal.READ_WRITE_ONCE: any(volume.ephemeral is not None for volume in volumes),
        Refusal.LOCAL_VOLUME: any(not _is_known(volume) for volume in volumes),
        Refusal.DEVICE: any(map(_uses_device, spec.containers)),
        Refusal.READINESS_GATE: bool(spec.readiness_gates),
        Refusal.RESOURCE_CLAIM: bool(spec.resource_claims),
    }
    return tuple(reason for reason, is_there in found.items() if is_there)


def indispensable(raw: wire.Pod) -> list[wire.Volume]:
    """Its volumes without those that their owner may lose, by an annotation."""
    exempt = {name.strip() for name in (raw.metadata.annotations or {}).get(SAFE_LOCAL_VOLUMES, "").split(",")}
    return [volume for volume in raw.spec.volumes or () if volume.name not in exempt]


def only_read(raw: wire.Pod) -> tuple[str, ...]:
    """Claims that no container may write to. Init containers are over when a pod is moved."""
    mounts = [mount for container in raw.spec.containers for mount in container.volume_mounts or ()]
    written = {mount.name for mount in mounts if not mount.read_only}
    found: dict[str, bool] = {}
    for volume in raw.spec.volumes or ():
        claim = volume.persistent_volume_claim
        if claim is not None:
            is_read = claim.read_only or volume.name not in written
            found[claim.claim_name] = is_read and found.get(claim.claim_name, True)
    return tuple(sorted(name for name, is_read in found.items() if is_read))


def _is_known(volume: wire.Volume) -> bool:
    """Whether it is the same on every node, or is judged by another rule; claims are judged by their access modes."""
    same = (volume.config_map, volume.secret, volume.projected, volume.downward_api)
    judged = (volume.persistent_volume_claim, volume.ephemeral, volume.empty_dir, volume.host_path)
    return any(source is not None for source in (*same, *judged))


def _uses_device(container: wire.Container) -> bool:
    """Whether it asks for an extended resource (`nvidia.com/gpu`); huge pages and volumes' shares are none."""
    needs = container.resources
    asked = {**(needs.limits or {}), **(needs.requests or {})}
    return any("/" in name for name in asked if name not in PLAIN) or bool(container.volume_devices)
