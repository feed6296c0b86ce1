"""A twin takes its source's place with the controller. In which order, is the controller's matter.

A Job that sees two active pods deletes the one that has been ready for less time: the twin. So the source is taken
from it first, and the twin given to it within the second for which the Job controller gathers changes before it looks.
A ReplicaSet looks at once and would make a replacement. So it is given the twin first, and of two pods it deletes the
one of the lower deletion cost: the source. Where a Deployment's hash is in its selector, the twin is given all other
labels a while before, so that Services send to it when the source ends.

What comes before a ReplicaSet's pod gives its place away, and who takes the place of one that ends by itself, is told
by `Handover`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Event

import msgspec

from htas.adapters.controllers import kind_and_group
from htas.adapters.kubernetes.api import retry_on_conflict
from htas.adapters.migration.documents import (
    COST_BEFORE,
    COUNTED,
    FIRST_TO_GO,
    HASH,
    MOVE,
    MOVED,
    Json,
    Origin,
    adoption,
    is_ending,
    is_ready,
    is_switched,
    is_twin_of,
    journalled,
    origin,
    origin_of,
    orphaning,
    owner_kind,
    stands_for,
    starts_afresh,
    twin_name_of,
)
from htas.adapters.migration.method import StepFailedError
from htas.adapters.migration.objects import CONFLICTS, Objects, TakenOverError, poll_s
from htas.adapters.migration.present import PresentObjects, check_target, has_come_up, source_of
from htas.model.deletion_costs import DELETION_COST
from htas.model.migrations import MIGRATION, Failure, MigrationRecord, MigrationState
from htas.ports import ConflictError


class Switching:
    """Carries the switch out; each step may be repeated."""

    def __init__(self, objects: Objects, reached: Callable[[str], None]) -> None:
        self._objects = objects
        self._reached = reached

    @retry_on_conflict(CONFLICTS)
    def switch(self, record: MigrationRecord, switched: MigrationRecord) -> None:
        """Give the twin its source's place, and write `switched` on it.

        Raises StepFailedError where it cannot be, and TakenOverError where another daemon has finished the move. Where
        somebody else changed one of the two, both are looked at anew: it may have ended.
        """
        self._carry_out(self._twin(record), source_of(self._objects, record), record, switched)

    @retry_on_conflict(CONFLICTS)
    def introduce(self, record: MigrationRecord) -> bool:
        """Give a twin its source's labels, but for the one without which no ReplicaSet counts it: it serves beside it.

        True also where it had them: nobody knows since when. False: there is no source, or the twin has its place.
        Raises what `switch` raises.
        """
        twin, source = self._twin(record), source_of(self._objects, record)
        if source is None or is_switched(twin):
            return False
        if not stands_for(twin, record):
            raise TakenOverError(f"pod {record.twin} is no twin any more")
        self.check_twin(twin, source, record)
        given = origin(source)
        labels = {key: text for key, text in given.labels.items() if key != HASH}
        if not labels.items() <= twin["metadata"]["labels"].items():
            annotation = {MOVE: msgspec.json.encode(given).decode()}  # what is taken from it again, if need be
            self._objects.patch(twin, {"metadata": {"labels": labels, "annotations": annotation}})
        return True

    @retry_on_conflict(CONFLICTS)
    def take_from(self, record: MigrationRecord) -> None:
        """Take a twin from its controller again. The source's journal is what counts from then on."""
        twin = self._objects.pod(record.pod.partition("/")[0], record.twin)
        given = origin_of(twin) if twin is not None and is_twin_of(twin, record) else None
        if twin is None or given is None or not is_switched(twin):
            return
        patch = orphaning(given)
        patch["metadata"]["annotations"] = {MOVED: None, MIGRATION: None}
        self._objects.patch(twin, patch)

    @retry_on_conflict(CONFLICTS)
    def undo(self, record: MigrationRecord) -> None:
        """Give a source back to its controller, if it was taken from it."""
        source = source_of(self._objects, record)
        if source is None:
            return
        annotations = source["metadata"].get("annotations") or {}
        given = origin_of(source) if is_switched(source) else None
        patch = adoption(given) if given is not None else {"metadata": {}}
        patch["metadata"]["annotations"] = dict.fromkeys(key for key in (MOVE, MOVED) if key in annotations)
        if annotations.get(DELETION_COST) == FIRST_TO_GO:
            own = annotations.get(COST_BEFORE)
            patch["metadata"]["annotations"] |= {DELETION_COST: own, COST_BEFORE: None}
        if given is not None or patch["metadata"]["annotations"]:
            self._objects.patch(source, patch)

    def _carry_out(self, twin: Json, source: Json | None, record: MigrationRecord, switched: MigrationRecord) -> None:
        if not stands_for(twin, record):
            raise TakenOverError(f"pod {record.twin} is no twin any more")
        if is_switched(twin):
            return
        if source is not None and is_switched(source):
            self.check_twin(twin, source, record)
            kept = origin_of(twin)
            if kept is None:  # it was written before the source was touched
                what = f"another party removed the annotation {MOVE} of pod {record.twin}"
                raise StepFailedError(Failure.SWITCH_FAILED, what)
            self.adopt(twin, kept, switched)
            return
        if source is None or is_ending(source):
            raise _ended(record)
        self.check_twin(twin, source, record)
        given = origin(source)
        if origin_of(twin) != given:  # it was labelled or annotated since
            annotation = {MOVE: msgspec.json.encode(given).decode()}
            twin = self._objects.patch(twin, {"metadata": {"annotations": annotation}})
        kind = owner_kind(source)
        if kind and kind not in COUNTED:
            patch = orphaning(given)
            patch["metadata"]["annotations"][MOVE] = msgspec.json.encode(given).decode()
            self._objects.patch(source, patch)
            self._reached("move.orphaned")
        elif kind:
            own = (source["metadata"].get("annotations") or {}).get(DELETION_COST)
            costs = {DELETION_COST: FIRST_TO_GO} | ({} if own in (None, FIRST_TO_GO) else {COST_BEFORE: own})
            self._objects.patch(source, {"metadata": {"annotations": costs}})
            self._reached("move.source-first-to-go")
        self.adopt(twin, given, switched)

    def adopt(self, twin: Json, given: Origin, switched: MigrationRecord) -> None:
        """Between a Job's two patches nothing else may come, so a conflict is met by the same patch anew."""
        patch = adoption(given)
        for part, values in journalled(switched)["metadata"].items():
            patch["metadata"][part] = {**patch["metadata"][part], **values}
        patch["metadata"]["annotations"][MOVED] = "true"
        for attempt in range(CONFLICTS):
            try:
                self._objects.patch(twin, patch)
                break
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise
                twin = self._found(twin)
        self._reached("move.adopted")

    def check_twin(self, twin: Json, source: Json, record: MigrationRecord) -> None:
        """Raises StepFailedError unless a twin runs, as ready as its source, on a node that answers.

        What was seen running a while ago may have died since, and the source is all there is then.
        """
        check_target(self._objects, record)
        if not has_come_up(record, twin, source):
            what = f"the new pod {twin['metadata']['name']} runs no more, or is not ready"
            raise StepFailedError(Failure.RESTORE_FAILED, what)

    def _found(self, twin: Json) -> Json:
        found = self._objects.pod(twin["metadata"]["namespace"], twin["metadata"]["name"])
        if found is None or found["metadata"]["uid"] != twin["metadata"]["uid"]:
            raise StepFailedError(Failure.SWITCH_FAILED, f"the new pod {twin['metadata']['name']} is gone")
        return found

    def _twin(self, record: MigrationRecord) -> Json:
        found = self._objects.pod(record.pod.partition("/")[0], record.twin)
        if found is not None and is_twin_of(found, record):
            return found
        if source_of(self._objects, record) is None:  # nothing is left to be moved, nor to be given back
            raise _ended(record)
        raise StepFailedError(Failure.SWITCH_FAILED, f"the new pod {record.twin} is gone")


def _ended(record: MigrationRecord) -> StepFailedError:
    return StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)


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
