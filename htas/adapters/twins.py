"""The twin of a moved pod: the same work on another node, not yet its controller's. Documents only, no calls.

What simulated moves and real ones have in common.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

MOVE = "htas.io/move"
"""The annotation with what is given back to the twin when it takes over."""
MOVED = "htas.io/moved"
"""The annotation of a source that was taken from its controller, and of a twin that was given to it."""
_SUFFIX = re.compile(r"-m[0-9a-f]{8}$")
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
    runs_s: float | None = None
    """Of a simulated pod: how long the twin is to run in all; None: nobody ends it."""


def twin_name(name: str, seed: str) -> str:
    """The same for the same seed: a pod's uid, with or without move and attempt. Moved again, it is no longer."""
    digest = hashlib.sha256(seed.encode()).hexdigest()[:8]
    return f"{_SUFFIX.sub('', name)[: LONGEST_NAME - 10]}-m{digest}"


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


def is_switched(pod: Json) -> bool:
    """Whether a source has been taken from its controller, or a twin been given to it."""
    return MOVED in (pod["metadata"].get("annotations") or ())


def has_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_ending(pod: Json) -> bool:
    """Whether a pod has ended, or was told to."""
    return has_ended(pod) or bool(pod["metadata"].get("deletionTimestamp"))
