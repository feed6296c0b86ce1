"""The documents of a move: the twin, restored from a checkpoint or started afresh, and the patches that journal and
switch.

A pod that is being moved, and its twin, bear the label MOVING with the move's id: by it any later process finds both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from htas.adapters.controllers import kind_and_group
from htas.model.deletion_costs import DELETION_COST, is_ours, stated_cost
from htas.model.migrations import MIGRATION, MigrationRecord, MigrationState, is_checkpoint
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING, TWIN_OF

RESTORED = "htas.io/restored"
"""The label of a pod that was restored, with the move's id: its image is kept on the node as long as it lives."""
FRESH = "htas.io/replacement"
"""The label of a twin for which its node keeps nothing, with the move's id: a fresh copy, or a simulated pod."""
COST_BEFORE = "htas.io/pod-deletion-cost"
"""The annotation with the deletion cost that a source had of its own."""
LEFT_BEHIND = "htas.io/left-behind"
"""The label of a pod whose archives could not be removed yet: the id of its move."""
FIRST_TO_GO = "-2147483647"
"""The lowest cost there is: a ReplicaSet with a pod too many deletes this one."""

MOVE = "htas.io/move"
"""The annotation with what is given back to the twin when it takes over."""
MOVED = "htas.io/moved"
"""The annotation of a source that was taken from its controller, and of a twin that was given to it."""
COUNTED = ("ReplicaSet", "ReplicationController")
"""Owners that look at once, and delete of two pods the one of the lower deletion cost."""
HASH = "pod-template-hash"
"""The label by which a Deployment tells its ReplicaSets' pods apart: it is in each one's selector."""

Json = dict[str, Any]
LONGEST_NAME = 253
_SUFFIX = re.compile(r"-m[0-9a-f]{8}$")
IDS = re.compile(r"[0-9a-f]{12}")
"""Ids of moves: they are part of commands that nodes run, and of patterns."""
KEYS = re.compile(r"[0-9a-f]{32}")
"""What is random of the names of images: 128 bits."""
_SPOILED = (KeyError, TypeError, msgspec.DecodeError, msgspec.ValidationError)


class Origin(msgspec.Struct, frozen=True):
    """Of the pod that is moved: what its twin gets when it takes over."""

    uid: str
    labels: dict[str, str]
    owners: list[Json]
    finalizers: list[str]


def record_in(pod: Json) -> MigrationRecord | None:
    """The journal of a pod's move; None: it has none, or it was spoiled."""
    try:
        return msgspec.json.decode(pod["metadata"]["annotations"][MIGRATION], type=MigrationRecord)
    except _SPOILED:
        return None


def found_in(pods: Sequence[Json]) -> list[MigrationRecord]:
    """The moves that sources and twins tell of. From Switched on the twin's word counts, before that the source's.

    Whoever may create pods can write an annotation. So a pod is believed about itself alone, and a twin about a pod
    of its own namespace.
    """
    found: dict[str, tuple[bool, bool, MigrationRecord]] = {}
    for pod in pods:
        record = record_in(pod)
        if record is None or record.is_over or not _may_tell(pod, record):
            continue
        told = record.state is MigrationState.SWITCHED, pod["metadata"]["uid"] == record.uid, record
        if record.id not in found or told[:2] > found[record.id][:2]:
            found[record.id] = told
    return [record for _, _, record in found.values()]


def _may_tell(pod: Json, record: MigrationRecord) -> bool:
    labels = pod["metadata"].get("labels") or {}
    if labels.get(MOVING) != record.id or not is_its_own(pod, record):
        return False
    return pod["metadata"]["uid"] == record.uid or stands_for(pod, record)


def is_its_own(pod: Json, record: MigrationRecord) -> bool:
    """Whether a record that was read on a pod is of a move of that pod, or of the move that it came by."""
    if not IDS.fullmatch(record.id) or record.twin not in ("", twin_name_of(record)):
        return False
    if record.containers not in ((), tuple(containers_of(pod))):
        return False
    if record.image_key and not KEYS.fullmatch(record.image_key):
        return False
    meta, node = pod["metadata"], pod["spec"].get("nodeName")
    if meta["uid"] == record.uid:
        return f"{meta['namespace']}/{meta['name']}" == record.pod and node == record.source
    return is_twin_of(pod, record) and node == record.target


def twin_name(name: str, seed: str) -> str:
    """The same for the same seed: a pod's uid, with or without move and attempt. Moved again, it is no longer."""
    digest = hashlib.sha256(seed.encode()).hexdigest()[:8]
    return f"{_SUFFIX.sub('', name)[: LONGEST_NAME - 10]}-m{digest}"


def twin_name_of(record: MigrationRecord) -> str:
    """Each attempt's twin has a name of its own."""
    return twin_name(record.pod.partition("/")[2], f"{record.uid}/{record.id}/{record.attempt}")


def base_images_of(pod: Json) -> tuple[str, ...]:
    """What a pod's containers start from: of one that was restored, what was journalled, since that checkpoint is gone.

    Where that is not known, the checkpoint's own name stays.
    """
    images = tuple(container.get("image", "") for container in pod["spec"]["containers"])
    record = record_in(pod)
    if record is None or len(record.base_images) != len(images) or not is_its_own(pod, record):
        return images
    return tuple(
        base if is_checkpoint(image) else image for image, base in zip(images, record.base_images, strict=True)
    )


def starts_afresh(record: MigrationRecord) -> bool:
    """Whether a move's twin begins anew, instead of going on from a checkpoint."""
    return record.method is MigrationMethod.REPLACE


def _mark_of(record: MigrationRecord) -> str:
    return FRESH if record.method in (MigrationMethod.REPLACE, MigrationMethod.CHECKPOINT) else RESTORED


def is_twin_of(pod: Json, record: MigrationRecord) -> bool:
    """Whether a pod was made by the present attempt of a move; another that bears its name is let alone."""
    meta = pod["metadata"]
    is_named = (meta["namespace"], meta["name"]) == (record.pod.partition("/")[0], twin_name_of(record))
    return is_named and (meta.get("labels") or {}).get(_mark_of(record)) == record.id


def stands_for(twin: Json, record: MigrationRecord) -> bool:
    """Whether a twin is its move's still: settled, it is a pod like any other, and may be on a move of its own."""
    return (twin["metadata"].get("labels") or {}).get(TWIN_OF) == record.uid


def is_introduced(twin: Json) -> bool:
    """Whether a twin bears labels by which Services send to it, its place with the controller or not."""
    return bool(set(twin["metadata"].get("labels") or ()) - {TWIN_OF, *MARKS, *OF_THE_NODE})


def journalled(record: MigrationRecord) -> Json:
    """The patch that writes a move's state on a pod. Over, it stays to be read, and is not looked for any more."""
    return {
        "metadata": {
            "annotations": {MIGRATION: msgspec.json.encode(record).decode()},
            "labels": {
                MOVING: None if record.is_over else record.id,
                LEFT_BEHIND: record.id if record.is_over and record.left_behind else None,
            },
        }
    }


MARKS = (MOVING, RESTORED, FRESH, LEFT_BEHIND)
"""Labels that tell of one pod's move, and are not handed on."""
OF_THE_NODE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
"""Labels that the API server copies from a pod's node: a twin in another zone has its own."""
BY_ADMISSION = ("priority", "preemptionPolicy", "overhead")
"""What admission writes from the classes that a pod names. A class may say something else since, and the API server
refuses (403) a pod that gives a number of its own; left out, it is filled in."""
NO_TWINS = ("ephemeralContainers", "schedulingGates", *BY_ADMISSION)
"""Of a source's spec."""
_OF_A_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")


def origin(source: Json) -> Origin:
    """What of a source its twin gets when it takes over."""
    meta = source["metadata"]
    labels = {key: text for key, text in (meta.get("labels") or {}).items() if key not in MARKS + OF_THE_NODE}
    return Origin(meta["uid"], labels, meta.get("ownerReferences") or [], meta.get("finalizers") or [])


def origin_of(twin: Json) -> Origin | None:
    """What a twin is the twin of; None: its annotation was lost or spoiled."""
    try:
        return msgspec.json.decode(twin["metadata"]["annotations"][MOVE], type=Origin)
    except (KeyError, TypeError, msgspec.DecodeError):
        return None


def orphaning(origin: Origin) -> Json:
    """The patch that takes a source from its controller; refused where another pod bears its name by now."""
    return {
        "metadata": {
            "uid": origin.uid,
            "labels": dict.fromkeys(origin.labels),
            "annotations": {MOVED: "true"},
            "ownerReferences": None,
            "finalizers": None,
        }
    }


def adoption(origin: Origin) -> Json:
    """The patch that gives a twin to the source's controller. It stays marked until the source is gone."""
    return {
        "metadata": {
            "labels": origin.labels,
            "annotations": {MOVED: "true"},
            "ownerReferences": origin.owners or None,
            "finalizers": origin.finalizers or None,
        }
    }


def twin_of(source: Json, record: MigrationRecord, images: Sequence[str], pull_policy: str) -> Json:
    """The pod that is restored: the source's spec on the target, each container from its checkpoint.

    Init containers have done their work already. Its pull secrets are the source's own: kubelets alone know what a
    checkpoint's image is pulled with.
    """
    spec = source["spec"]
    kept = {key: value for key, value in spec.items() if key != "initContainers"}
    containers = [
        {**container, "image": image, "imagePullPolicy": pull_policy}
        for container, image in zip(spec["containers"], images, strict=True)
    ]
    return _twin(source, record, {**kept, "containers": containers})


def copy_of(source: Json, record: MigrationRecord) -> Json:
    """The pod that is started afresh: the source's spec on the target, init containers and all."""
    labels = source["metadata"].get("labels") or {}
    spec = dict(source["spec"])
    for part in ("containers", "initContainers"):
        if part in spec:
            spec[part] = [_with_literal_labels(each, labels) for each in spec[part]]
    return _twin(source, record, spec)


def _with_literal_labels(container: Json, labels: Mapping[str, str]) -> Json:
    """A container whose variables do not ask for labels of its pod: DD_SERVICE would be empty for the copy's life.

    The kubelet resolves them when the container starts, and the twin has no labels then. Annotations it has, and the
    labels of its node, which are not the source's. A label that is missing is an empty string, as to the kubelet.
    """
    if not container.get("env"):
        return container
    return {**container, "env": [_literal(each, labels) for each in container["env"]]}


def _literal(variable: Json, labels: Mapping[str, str]) -> Json:
    path = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
    asked = _OF_A_LABEL.fullmatch(path)
    if asked is None or asked[1] in OF_THE_NODE:
        return variable
    return {"name": variable["name"], "value": labels.get(asked[1], "")}


def _twin(source: Json, record: MigrationRecord, spec: Json) -> Json:
    """It has no owner and none of the source's labels before it takes over, so no controller counts it and no Service
    sends to it.
    """
    meta = source["metadata"]
    given = {MOVE: msgspec.json.encode(origin(source)).decode()}
    kept = {key: value for key, value in spec.items() if key not in NO_TWINS}
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key != MIGRATION}
    if is_ours(stated_cost(annotations)):  # it tells of the machine that the twin is not on
        del annotations[DELETION_COST]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": twin_name_of(record),
            "namespace": meta["namespace"],
            "labels": {TWIN_OF: meta["uid"], MOVING: record.id, _mark_of(record): record.id},
            "annotations": {**annotations, **given, **journalled(record)["metadata"]["annotations"]},
        },
        "spec": {**kept, "nodeName": record.target},
    }


def settled(record: MigrationRecord) -> Json:
    """The patch that makes a twin a pod like any other; how it came is still to be read on it."""
    patch = journalled(record)
    patch["metadata"]["labels"] |= {TWIN_OF: None}
    patch["metadata"]["annotations"] |= {MOVE: None, MOVED: None}
    return patch


def restored_image_labels(pod: Json) -> str | None:
    """The id of the move that a pod was restored by; None: of none, or it is no id."""
    found = (pod["metadata"].get("labels") or {}).get(RESTORED, "")
    return found if IDS.fullmatch(found) else None


def owner_kind(pod: Json) -> str:
    """Of the controller, with its group where that is not the built-in one's; empty: none has it."""
    owners = [owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return kind_and_group(str(owners[0]["kind"]), str(owners[0].get("apiVersion", ""))) if owners else ""


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


def is_switched(pod: Json) -> bool:
    """Whether a source has been taken from its controller, or a twin been given to it."""
    return MOVED in (pod["metadata"].get("annotations") or ())


def has_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_ending(pod: Json) -> bool:
    """Whether a pod has ended, or was told to."""
    return has_ended(pod) or bool(pod["metadata"].get("deletionTimestamp"))
