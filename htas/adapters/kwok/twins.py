"""The twin of a pod that a simulated node runs: for what remains of its run. Documents only, no calls."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from htas.adapters.twins import MOVE, MOVED, Json, Origin, twin_name
from htas.model.migrations import MIGRATION, MigrationRecord
from htas.model.pods import RUNTIME, TWIN_OF

DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long KWOK lets a pod run, counted from Running."""
SHORTEST_S = 0.1
"""What is left of a run that should be over."""
_DURATION = re.compile(r"(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s)?(?:([0-9.]+)ms)?")


def twin_of(source: Json, target: str, now: float, *, memory_bytes: int = 0, copy_s: float = 0.0) -> Json:
    """The twin's manifest: the source's spec on the target, to run for what remains of the source's run.

    And for `copy_s` more: what the source does while its checkpoint is copied, the twin does again.
    """
    meta, spec = source["metadata"], source["spec"]
    ran_s = max(0.0, now - _running_since(source, now))
    borne = meta.get("annotations") or {}
    left_s = {
        key: max(SHORTEST_S, whole_s - ran_s + copy_s)
        for key in (DELAY, RUNTIME)
        if (whole_s := seconds(borne.get(key, ""))) is not None
    }
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
        left_s.get(DELAY),
    )
    told = {key: f"{each_s:.1f}s" for key, each_s in left_s.items()}
    annotations = {**borne, **told, MOVE: msgspec.json.encode(origin).decode()}
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


def unmarking(record: MigrationRecord | None) -> Json:
    """The patch that makes a twin a pod like any other; how it came, if that is known, is still to be read on it."""
    told = msgspec.json.encode(record).decode() if record is not None else "{}"
    return {"metadata": {"labels": {TWIN_OF: None}, "annotations": {MOVE: None, MOVED: None, MIGRATION: told}}}


def ending_as_meant(patch: Json, twin: Json, origin: Origin, now: float) -> Json:
    """A patch to a twin that runs, with what is left of its run.

    KWOK counts its delay anew from each change of a pod. Patched 4 s after it began, and with the same delay as
    before, a twin would run for 4 s longer than it was meant to.
    """
    if origin.runs_s is None:
        return patch
    left_s = max(SHORTEST_S, origin.runs_s - max(0.0, now - _running_since(twin, now)))
    meta = patch["metadata"]
    annotations = {**(meta.get("annotations") or {}), DELAY: f"{left_s:.1f}s"}
    return {**patch, "metadata": {**meta, "annotations": annotations}}


def runs(pod: Json) -> bool:
    """Whether every container runs: a phase alone may say so too early."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return bool(statuses) and all("running" in (status.get("state") or {}) for status in statuses)


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
