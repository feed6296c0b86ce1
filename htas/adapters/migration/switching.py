"""A twin takes its source's place with the controller. In which order, is the controller's matter.

A Job that sees two active pods deletes the one that has been ready for less time: the twin. So the source is taken
from it first, and the twin given to it within the second for which the Job controller gathers changes before it looks.
A ReplicaSet looks at once and would make a replacement. So it is given the twin first, and of two pods it deletes the
one of the lower deletion cost: the source. Where a Deployment's hash is in its selector, the twin is given all other
labels a while before, so that Services send to it when the source ends.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from htas.adapters.migration.documents import (
    COST_BEFORE,
    COUNTED,
    DELETION_COST,
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
)
from htas.adapters.migration.failures import StepFailedError
from htas.adapters.migration.journal import TakenOverError
from htas.adapters.migration.objects import CONFLICTS, Objects
from htas.adapters.migration.present import has_come_up, source_of
from htas.model.migrations import MIGRATION, Failure, MigrationRecord
from htas.ports import ConflictError


class Switching:
    """Carries the switch out; each step may be repeated."""

    def __init__(self, objects: Objects, reached: Callable[[str], None]) -> None:
        self._objects = objects
        self._reached = reached

    def switch(self, record: MigrationRecord, switched: MigrationRecord) -> None:
        """Give the twin its source's place, and write `switched` on it.

        Raises StepFailedError where it cannot be, and TakenOverError where another daemon has finished the move.
        """
        for attempt in range(CONFLICTS):
            twin, source = self._twin(record), source_of(self._objects, record)
            try:
                self._carry_out(twin, source, record, switched)
                return
            except ConflictError:  # somebody else changed one of the two: it may have ended
                if attempt == CONFLICTS - 1:
                    raise

    def introduce(self, record: MigrationRecord) -> bool:
        """Give a twin its source's labels, but for the one without which no ReplicaSet counts it: it serves beside it.

        True also where it had them: nobody knows since when. False: there is no source, or the twin has its place.
        Raises what `switch` raises.
        """
        for attempt in range(CONFLICTS):
            twin, source = self._twin(record), source_of(self._objects, record)
            if source is None or is_switched(twin):
                return False
            if not stands_for(twin, record):
                raise TakenOverError(f"pod {record.twin} is no twin any more")
            self.check_twin(twin, source, record)
            given = origin(source)
            labels = {key: text for key, text in given.labels.items() if key != HASH}
            if labels.items() <= twin["metadata"]["labels"].items():
                return True
            annotation = {MOVE: msgspec.json.encode(given).decode()}  # what is taken from it again, if need be
            try:
                self._objects.patch(twin, {"metadata": {"labels": labels, "annotations": annotation}})
                return True
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise
        raise AssertionError("the last conflict is raised")

    def take_from(self, record: MigrationRecord) -> None:
        """Take a twin from its controller again. The source's journal is what counts from then on."""
        for attempt in range(CONFLICTS):
            twin = self._objects.pod(record.pod.partition("/")[0], record.twin)
            given = origin_of(twin) if twin is not None and is_twin_of(twin, record) else None
            if twin is None or given is None or not is_switched(twin):
                return
            patch = orphaning(given)
            patch["metadata"]["annotations"] = {MOVED: None, MIGRATION: None}
            try:
                self._objects.patch(twin, patch)
                return
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise

    def undo(self, record: MigrationRecord) -> None:
        """Give a source back to its controller, if it was taken from it."""
        for attempt in range(CONFLICTS):
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
            try:
                if given is not None or patch["metadata"]["annotations"]:
                    self._objects.patch(source, patch)
                return
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise

    def _carry_out(self, twin: Json, source: Json | None, record: MigrationRecord, switched: MigrationRecord) -> None:
        if not stands_for(twin, record):
            raise TakenOverError(f"pod {record.twin} is no twin any more")
        if is_switched(twin):
            return
        if source is not None and is_switched(source):
            self.check_twin(twin, source, record)
            kept = origin_of(twin)
            if kept is None:  # it was written before the source was touched
                what = f"somebody removed the annotation {MOVE} of pod {record.twin}"
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
        node = self._objects.node(record.target)
        if node is None or not is_ready(node):
            what = f"node {record.target} is {'gone' if node is None else 'not Ready'}"
            raise StepFailedError(Failure.TARGET_LOST, what)
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
