"""What comes before a ReplicaSet's pod gives its place away, and who takes the place of one that ends by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Event

import msgspec

from htas.adapters.controllers import kind_and_group
from htas.adapters.migration.documents import (
    COUNTED,
    HASH,
    Json,
    is_ending,
    is_ready,
    is_switched,
    origin_of,
    stands_for,
    starts_afresh,
    twin_name_of,
)
from htas.adapters.migration.failures import StepFailedError
from htas.adapters.migration.objects import Objects, poll_s
from htas.adapters.migration.present import PresentObjects
from htas.adapters.migration.switching import Switching
from htas.model.migrations import Failure, MigrationRecord, MigrationState

SEEN_S = 3.0
"""For requests to find their way to a twin that has its labels: the EndpointSlice controller writes within a fraction
of a second, kube-proxy looks once a second (minSyncPeriod), and an ingress reloads after about another."""


class Handover:
    """Each part may be repeated: what was done already is found on the twin."""

    def __init__(
        self,
        objects: Objects,
        present: PresentObjects,
        switching: Switching,
        closing: Event,
        reached: Callable[[str], None],
    ) -> None:
        self._objects = objects
        self._owners = Owners(objects)
        self._present = present
        self._switching = switching
        self._closing = closing
        self._reached = reached

    def min_ready_s(self, record: MigrationRecord, source: Json) -> float:
        """How long a fresh copy has to be Ready before its owner takes it for available."""
        owner = self._owner_of(source) if starts_afresh(record) else None
        return owner.min_ready_s if owner is not None else 0.0

    def prepare(self, record: MigrationRecord, within_s: float) -> bool:
        """Wait until the source is the one that its ReplicaSet will delete, and until Services send to the twin.

        False: this daemon ends meanwhile. Raises StepFailedError where another of its pods does not become Ready.
        """
        source, twin = self._present.source_or_none(record), self._present.twin(record)
        if source is None or is_ending(source) or twin is None or is_switched(twin):
            return True
        owner = self._owner_of(source)
        if owner is None:
            return True
        until = time.monotonic() + within_s
        if not self._all_are_ready(record, owner, until):
            return False
        if HASH not in owner.selector or not self._switching.introduce(record):
            return True
        self._reached("move.introduced")
        return not self._closing.wait(SEEN_S) and self._all_are_ready(record, owner, until)

    def inherited(self, record: MigrationRecord, at: float) -> MigrationRecord | None:
        """The move as switched, where its source ends by itself and a fresh copy that is Ready has taken its place.

        None: the source goes on, there is no such copy, or its owner has as many Ready pods as it wants.
        """
        twin = self._heir(record) if starts_afresh(record) else None
        given = origin_of(twin) if twin is not None else None
        if twin is None or given is None:
            return None
        namespace, _, name = record.pod.partition("/")
        owner = self._owners.of(namespace, given.owners)
        if owner is None or not self._owners.wants_another(owner, (name, twin_name_of(record))):
            return None
        facts = {"twin": twin_name_of(record), "reason": "", "detail": ""}
        if record.state is MigrationState.PREPARED:
            record = record.advanced(MigrationState.RESTORED, at)
        switched = record.advanced(MigrationState.SWITCHED, at, **facts)
        try:
            self._switching.adopt(twin, given, switched)
        except StepFailedError:  # it has gone just now
            return None
        return switched

    def _heir(self, record: MigrationRecord) -> Json | None:
        source = self._present.source_or_none(record)
        is_lost = self._objects.node(record.source) is None
        if source is not None and not is_ending(source) and not is_lost:
            return None
        twin, node = self._present.twin(record), self._objects.node(record.target)
        if twin is None or is_ending(twin) or not is_ready(twin) or not stands_for(twin, record):
            return None
        return twin if node is not None and is_ready(node) else None

    def _owner_of(self, source: Json) -> Owner | None:
        meta = source["metadata"]
        return self._owners.of(meta["namespace"], meta.get("ownerReferences") or ())

    def _all_are_ready(self, record: MigrationRecord, owner: Owner, until: float) -> bool:
        """A ReplicaSet deletes a pod that is not Ready before one of the lowest cost, and the source would stay."""
        began = time.monotonic()
        while name := self._owners.unready(owner, (record.pod.partition("/")[2], twin_name_of(record))):
            if time.monotonic() > until:
                what = f"pod {name} of the same ReplicaSet is not Ready, and would be deleted instead of {record.pod}"
                raise StepFailedError(Failure.DEADLINE, what, is_final=True)
            if self._closing.wait(poll_s(began)):
                return False
        return True


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
