"""The ReplicaSet, or ReplicationController, of a pod that is moved: what it wants, and how its other pods are doing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from htas.adapters.checkpoint.documents import Json, is_ready
from htas.adapters.checkpoint.objects import Objects
from htas.adapters.controllers import kind_and_group
from htas.adapters.twins import is_ending

COUNTED = ("ReplicaSet", "ReplicationController")
HASH = "pod-template-hash"
"""The label by which a Deployment tells its ReplicaSets' pods apart: it is in each one's selector."""


class Owner(msgspec.Struct, frozen=True):
    """What counts of it here. `selector` is empty where it has expressions alone."""

    uid: str
    namespace: str
    replicas: int
    min_ready_s: float
    selector: dict[str, str]


class Owners:
    """Looks anew each time it is asked; raises what the API server answers."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def of(self, namespace: str, owners: Sequence[Json]) -> Owner | None:
        """The controller among `owners`; None: it is of another kind, or gone, or going."""
        for each in owners:
            if not each.get("controller") or kind_and_group(each["kind"], each.get("apiVersion", "")) not in COUNTED:
                continue
            found = self._objects.controller(namespace, each["kind"], each["name"])
            if found is not None and found["metadata"]["uid"] == each["uid"]:
                return None if found["metadata"].get("deletionTimestamp") else _owner(namespace, each["kind"], found)
        return None

    def pods(self, owner: Owner, but: Sequence[str]) -> list[Json]:
        """Those it counts, but for some names: not those that ended, or are about to."""
        found = self._objects.selected(owner.namespace, owner.selector)
        return [
            pod
            for pod in found
            if pod["metadata"]["name"] not in but
            and any(each["uid"] == owner.uid for each in pod["metadata"].get("ownerReferences") or ())
            and not is_ending(pod)
        ]

    def wants_another(self, owner: Owner, but: Sequence[str]) -> bool:
        """Whether fewer of its pods are Ready than it is to have, but for some names."""
        return sum(map(is_ready, self.pods(owner, but))) < owner.replicas

    def unready(self, owner: Owner, but: Sequence[str]) -> str:
        """The name of a pod of it that is not Ready, which it would delete before any that is; empty: all are."""
        return next((str(pod["metadata"]["name"]) for pod in self.pods(owner, but) if not is_ready(pod)), "")


def is_available(pod: Json, min_ready_s: float, now: float) -> bool:
    """Whether a pod has been Ready without a break for as long as its owner says, as a ReplicaSet reckons it."""
    return min_ready_s <= 0 or _ready_for_s(pod, now) >= min_ready_s


def _ready_for_s(pod: Json, now: float) -> float:
    for each in pod.get("status", {}).get("conditions") or ():
        if each["type"] == "Ready" and each["status"] == "True" and each.get("lastTransitionTime"):
            return max(0.0, now - datetime.fromisoformat(each["lastTransitionTime"]).timestamp())
    return 0.0


def _owner(namespace: str, kind: str, found: Json) -> Owner:
    spec = found["spec"]
    selector = spec.get("selector") or {}
    labels = selector.get("matchLabels") or {} if kind == "ReplicaSet" else selector
    min_ready_s = float(spec.get("minReadySeconds") or 0)
    return Owner(found["metadata"]["uid"], namespace, spec.get("replicas", 1), min_ready_s, labels)
