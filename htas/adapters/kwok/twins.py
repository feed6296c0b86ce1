"""The twin of a moved pod: the same work on another node, not yet its controller's. Documents only, no calls."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any

import msgspec

from htas.model.migrations import MIGRATION, MigrationRecord
from htas.model.pods import RUNTIME, TWIN_OF

MOVE = "htas.io/move"
"""The annotation with what is given back to the twin when it takes over."""
MOVED = "htas.io/moved"
"""The annotation of a source that was taken from its controller, and of a twin that was given to it."""
DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long KWOK lets a pod run, counted from Running."""
_SUFFIX = re.compile(r"-m[0-9a-f]{8}$")
_DURATION = re.compile(r"(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s)?(?:([0-9.]+)ms)?")
LONGEST_NAME = 253

Json = dict[str, Any]


class Origin(msgspec.Struct, frozen=True):
    """The pod that is moved, and what of it the twin gets when it takes over."""

    name: str
    uid: str
    node: str
    started_at: float
    labels: dict[str, str]
    owners: list[Json]
    finalizers: list[str]
    memory_bytes: int = 0
    """What it asked for: what a checkpoint of it would be the size of."""
    copy_s: float = 0.0
    """How long copying that takes; until then the source is not let go."""


def twin_name(name: str, uid: str) -> str:
    """The same for every attempt to move the same pod; a pod moved before does not grow longer."""
    digest = hashlib.sha256(uid.encode()).hexdigest()[:8]
    return f"{_SUFFIX.sub('', name)[: LONGEST_NAME - 10]}-m{digest}"


def twin_of(source: Json, target: str, now: float, *, memory_bytes: int = 0, copy_s: float = 0.0) -> Json:
    """The twin's manifest: the source's spec on the target, to run for what remains of the source's run.

    And for `copy_s` more: what the source does while its checkpoint is copied, the twin does again.
    """
    meta, spec = source["metadata"], source["spec"]
    origin = Origin(
        meta["name"],
        meta["uid"],
        spec["nodeName"],
        now,
        meta.get("labels") or {},
        meta.get("ownerReferences") or [],
        meta.get("finalizers") or [],
        memory_bytes,
        copy_s,
    )
    annotations = {**(meta.get("annotations") or {}), MOVE: msgspec.json.encode(origin).decode()}
    ran_s = max(0.0, now - _running_since(source, now))
    for key in (DELAY, RUNTIME):
        whole_s = seconds(annotations.get(key, ""))
        if whole_s is not None:
            annotations[key] = f"{max(0.1, whole_s - ran_s + copy_s):.1f}s"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": twin_name(meta["name"], meta["uid"]),
            "namespace": meta["namespace"],
            "labels": {TWIN_OF: meta["uid"]},
            "annotations": annotations,
        },
        "spec": {**{key: value for key, value in spec.items() if key != "ephemeralContainers"}, "nodeName": target},
    }


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


def unmarking(record: MigrationRecord | None) -> Json:
    """The patch that makes a twin a pod like any other; how it came, if that is known, is still to be read on it."""
    told = msgspec.json.encode(record).decode() if record is not None else "{}"
    return {"metadata": {"labels": {TWIN_OF: None}, "annotations": {MOVE: None, MOVED: None, MIGRATION: told}}}


def is_switched(pod: Json) -> bool:
    """Whether a source has been taken from its controller, or a twin been given to it."""
    return MOVED in (pod["metadata"].get("annotations") or ())


def runs(pod: Json) -> bool:
    """Whether every container runs: a phase alone may say so too early."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return bool(statuses) and all("running" in (status.get("state") or {}) for status in statuses)


def has_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _running_since(pod: Json, now: float) -> float:
    started = [
        datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()
        for status in pod.get("status", {}).get("containerStatuses") or ()
        if "running" in (status.get("state") or {})
    ]
    return min(started, default=now)


def seconds(text: str) -> float | None:
    """Seconds of a Go duration as KWOK reads it, such as 90s, 1h30m or 2.5s; None for anything else."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    try:
        hours, minutes, rest, millis = (float(each or 0) for each in match.groups())
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + rest + millis / 1000
