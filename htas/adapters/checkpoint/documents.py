"""The documents of a move: the twin that is restored from a checkpoint, and the patches that journal and switch.

A pod that is being moved, and its twin, bear the label MOVING with the move's id: by it any later process finds both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from htas.adapters.kwok.twins import MOVE, MOVED, Origin, twin_name
from htas.model.migrations import MIGRATION, MigrationRecord, MigrationState
from htas.model.pods import MOVING, TWIN_OF

RESTORED = "htas.io/restored"
"""The label of a pod that was restored, with the move's id: its image is kept on the node as long as it lives."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
FIRST_TO_GO = "-2147483647"
"""The lowest cost there is: a ReplicaSet with a pod too many deletes this one."""

Json = dict[str, Any]
_SPOILED = (KeyError, TypeError, msgspec.DecodeError, msgspec.ValidationError)


def record_in(pod: Json) -> MigrationRecord | None:
    """The journal of a pod's move; None: it has none, or it was spoiled."""
    try:
        return msgspec.json.decode(pod["metadata"]["annotations"][MIGRATION], type=MigrationRecord)
    except _SPOILED:
        return None


def found_in(pods: Sequence[Json]) -> list[MigrationRecord]:
    """The moves that sources and twins tell of. From Switched on the twin's word counts, before that the source's."""
    found: dict[str, tuple[bool, bool, MigrationRecord]] = {}
    for pod in pods:
        record = record_in(pod)
        if record is None or record.is_over:
            continue
        told = record.state is MigrationState.SWITCHED, pod["metadata"]["uid"] == record.uid, record
        if record.id not in found or told[:2] > found[record.id][:2]:
            found[record.id] = told
    return [record for _, _, record in found.values()]


def journalled(record: MigrationRecord) -> Json:
    """The patch that writes a move's state on a pod. Over, it stays to be read, and is not looked for any more."""
    return {
        "metadata": {
            "annotations": {MIGRATION: msgspec.json.encode(record).decode()},
            "labels": {MOVING: None if record.is_over else record.id},
        }
    }


def origin(source: Json, record: MigrationRecord) -> Origin:
    """What of a source its twin gets when it takes over."""
    meta = source["metadata"]
    labels = {key: text for key, text in (meta.get("labels") or {}).items() if key not in (MOVING, RESTORED)}
    owners, finalizers = meta.get("ownerReferences") or [], meta.get("finalizers") or []
    return Origin(meta["name"], meta["uid"], record.source, record.started_at, labels, owners, finalizers)


def twin_of(source: Json, record: MigrationRecord, images: Sequence[str], pull_policy: str, secret: str = "") -> Json:
    """The pod that is restored: the source's spec on the target, each container from its checkpoint.

    Init containers have done their work already. It has no owner and none of the source's labels before it takes over,
    so no controller counts it and no Service sends to it.
    """
    meta, spec = source["metadata"], source["spec"]
    given = {MOVE: msgspec.json.encode(origin(source, record)).decode()}
    dropped = ("ephemeralContainers", "initContainers", "schedulingGates")
    kept = {key: value for key, value in spec.items() if key not in dropped}
    containers = [
        {**container, "image": image, "imagePullPolicy": pull_policy}
        for container, image in zip(spec["containers"], images, strict=True)
    ]
    if secret:
        kept["imagePullSecrets"] = [*(spec.get("imagePullSecrets") or []), {"name": secret}]
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key != MIGRATION}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": twin_name(meta["name"], f"{meta['uid']}/{record.id}/{record.attempt}"),
            "namespace": meta["namespace"],
            "labels": {TWIN_OF: meta["uid"], MOVING: record.id, RESTORED: record.id},
            "annotations": {**annotations, **given, **journalled(record)["metadata"]["annotations"]},
        },
        "spec": {**kept, "containers": containers, "nodeName": record.target},
    }


def settled(record: MigrationRecord) -> Json:
    """The patch that makes a twin a pod like any other; how it came is still to be read on it."""
    patch = journalled(record)
    patch["metadata"]["labels"] |= {TWIN_OF: None}
    patch["metadata"]["annotations"] |= {MOVE: None, MOVED: None}
    return patch


def restored_image_labels(pod: Json) -> str | None:
    """The id of the move that a pod was restored by."""
    return (pod["metadata"].get("labels") or {}).get(RESTORED)


def owner_kind(pod: Json) -> str:
    """Of the controller; empty: none has it."""
    owners = [owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return str(owners[0]["kind"]) if owners else ""


def containers_of(pod: Json) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def statuses(pod: Json) -> list[Mapping[str, Any]]:
    """What the kubelet says of each container, in the order of the spec; empty where it has said nothing yet."""
    said = {status["name"]: status for status in pod.get("status", {}).get("containerStatuses") or ()}
    return [said.get(name, {}) for name in containers_of(pod)]


def is_ready(of: Json) -> bool:
    """Whether a pod or a node says so of itself. A node may be cordoned all the same."""
    conditions = of.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
