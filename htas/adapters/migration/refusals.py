"""What cannot be moved, or would lose something without a word: seen on the documents, before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from htas.adapters.migration.documents import Json, is_ready, owner_kind, statuses
from htas.model.migrations import MigrationSettings, Refusal, can_checkpoint, can_restore
from htas.model.moves import MigrationMethod
from htas.model.pods import SAFE_LOCAL_VOLUMES
from htas.ports import MoveRefusedError

KNOWN_OWNERS = frozenset({"", "Job", "ReplicaSet", "ReplicationController"})
"""Controllers that were seen to take a twin for their own; empty: a pod that nobody owns."""
PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-")
MOVABLE_VOLUMES = frozenset({"configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim"})
"""Their files are the same on every node; a claim's access modes are judged before a move is begun."""

STARTED_ANEW = frozenset({Refusal.EMPTY_DIR, Refusal.HOST_PATH})
"""What a fresh copy has a new one of, as any new pod has. Whether it may be lost is the cleaner's to judge, as of an
eviction."""


def check_pod(pod: Json, settings: MigrationSettings, method: MigrationMethod) -> None:
    """Raises MoveRefusedError for a pod that is not moved as it is."""
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for reason, what in _objections(pod, settings, method):
        raise MoveRefusedError(reason, f"pod {key} {what}")


def check_nodes(source: Json, target: Json, method: MigrationMethod) -> None:
    """Raises MoveRefusedError where the runtimes of two nodes, or the target's state, do not allow a move."""
    if method is MigrationMethod.KUBELET_CHECKPOINT:
        runtimes = [node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in (source, target)]
        if not can_checkpoint(runtimes[0]):
            what = f"{source['metadata']['name']} runs {runtimes[0]}"
            raise MoveRefusedError(Refusal.SOURCE_CANNOT_CHECKPOINT, what)
        if not can_restore(runtimes[1]):
            what = f"{target['metadata']['name']} runs {runtimes[1]}"
            raise MoveRefusedError(Refusal.TARGET_CANNOT_RESTORE, what)
    if why := unready(target):
        raise MoveRefusedError(Refusal.TARGET_NOT_READY, why)


def unready(node: Json) -> str:
    """Why a node takes no pods now; empty: it does."""
    name = node["metadata"]["name"]
    if not is_ready(node):
        return f"node {name} is not Ready"
    return f"node {name} is cordoned" if node["spec"].get("unschedulable") else ""


def _objections(pod: Json, settings: MigrationSettings, method: MigrationMethod) -> Iterator[tuple[Refusal, str]]:
    yield from _to_any_move(pod)
    if method is MigrationMethod.CHECKPOINT:  # a simulated pod has nothing to lose but its name
        return
    yield from _to_a_twin(pod)
    if method is MigrationMethod.REPLACE:
        yield from _to_a_fresh_copy(pod)
    else:
        yield from _to_a_checkpoint(pod, settings)


def _to_any_move(pod: Json) -> Iterator[tuple[Refusal, str]]:
    if pod["metadata"].get("deletionTimestamp") or not all("running" in (s.get("state") or {}) for s in statuses(pod)):
        yield Refusal.NOT_RUNNING, "does not run, or not for long"
    if owner_kind(pod) == "StatefulSet":
        yield Refusal.KEEPS_ITS_NAME, "must keep its name, which a twin cannot have"


def _to_a_twin(pod: Json) -> Iterator[tuple[Refusal, str]]:
    if (kind := owner_kind(pod)) not in KNOWN_OWNERS:
        yield Refusal.OWNER_UNKNOWN, f"belongs to a {kind}"
    if pod["spec"].get("readinessGates"):
        yield Refusal.READINESS_GATE, "has a readiness gate, which whoever sets it does not set on a twin"
    if pod["spec"].get("resourceClaims"):
        yield Refusal.RESOURCE_CLAIM, "claims a device, which the scheduler would allocate"


def _to_a_fresh_copy(pod: Json) -> Iterator[tuple[Refusal, str]]:
    """Claims' access modes are judged before a move is begun; the scheduler, which a twin does not meet, would do the
    rest for a new pod's volumes and devices.
    """
    spec = pod["spec"]
    if owner_kind(pod) == "Job" or spec.get("restartPolicy", "Always") != "Always":
        yield Refusal.BEGINS_AGAIN, "runs to an end, and a fresh copy would begin its work again"
    for reason, what in _lost_with_its_node(pod):
        if reason not in STARTED_ANEW:
            yield reason, what


def _to_a_checkpoint(pod: Json, settings: MigrationSettings) -> Iterator[tuple[Refusal, str]]:
    spec = pod["spec"]
    if len(spec["containers"]) > 1 and not settings.several_containers:
        yield Refusal.SEVERAL_CONTAINERS, "has several containers, which are not checkpointed at one instant"
    if any(each.get("restartPolicy") == "Always" for each in spec.get("initContainers") or ()):
        yield Refusal.SIDECAR, "has an init container that runs on"
    if any(spec.get(each) for each in ("hostNetwork", "hostPID", "hostIPC")):
        yield Refusal.HOST_NAMESPACE, "shares a namespace with its node"
    for container in spec["containers"]:
        if container.get("volumeDevices") or any(
            map(_is_device, (container.get("resources") or {}).get("limits") or {})
        ):
            yield Refusal.DEVICE, f"has a device (container {container['name']})"
    yield from _lost_with_its_node(pod)


def _lost_with_its_node(pod: Json) -> Iterator[tuple[Refusal, str]]:
    annotations = pod["metadata"].get("annotations") or {}
    exempt = {name.strip() for name in annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] not in exempt:
            yield from _lost_with(volume)


def _is_device(resource: str) -> bool:
    return not resource.startswith(PLAIN_RESOURCES)


def _lost_with(volume: dict[str, Any]) -> Iterator[tuple[Refusal, str]]:
    for form in volume:
        if form == "name" or form in MOVABLE_VOLUMES:
            continue
        match form:
            case "emptyDir":
                yield Refusal.EMPTY_DIR, f"would lose what is in its emptyDir {volume['name']}"
            case "hostPath":
                yield Refusal.HOST_PATH, f"uses a directory of its node (volume {volume['name']})"
            case "ephemeral":
                yield Refusal.READ_WRITE_ONCE, f"has volume {volume['name']}, which is bound to its name"
            case _:
                yield Refusal.LOCAL_VOLUME, f"has a volume of the kind {form} ({volume['name']})"
