"""A twin takes its source's place with the controller. In which order, is the controller's matter.

A Job that sees two active pods deletes the one that has been ready for less time: the twin. So the source is taken
from it first, and the twin given to it within the second for which the Job controller gathers changes before it looks.
A ReplicaSet looks at once and would make a replacement. So it is given the twin first, and of two pods it deletes the
one of the lower deletion cost: the source.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from htas.adapters.checkpoint.documents import (
    DELETION_COST,
    FIRST_TO_GO,
    Json,
    journalled,
    origin,
    owner_kind,
)
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.objects import CONFLICTS, Objects
from htas.adapters.twins import MOVE, MOVED, Origin, adoption, has_ended, is_switched, origin_of, orphaning
from htas.model.migrations import Failure, MigrationRecord
from htas.ports import ConflictError


class Switching:
    """Carries the switch out; each step may be repeated."""

    def __init__(self, objects: Objects, reached: Callable[[str], None]) -> None:
        self._objects = objects
        self._reached = reached

    def switch(self, record: MigrationRecord, switched: MigrationRecord) -> None:
        """Give the twin its source's place, and write `switched` on it. Raises StepFailedError where it cannot be."""
        for attempt in range(CONFLICTS):
            twin, source = self._twin(record), self._source(record)
            try:
                self._carry_out(twin, source, record, switched)
                return
            except ConflictError:  # somebody else changed one of the two: it may have ended
                if attempt == CONFLICTS - 1:
                    raise

    def undo(self, record: MigrationRecord) -> None:
        """Give a source back to its controller, if it was taken from it."""
        for attempt in range(CONFLICTS):
            source = self._source(record)
            if source is None:
                return
            annotations = source["metadata"].get("annotations") or {}
            given = origin_of(source) if is_switched(source) else None
            patch = adoption(given) if given is not None else {"metadata": {}}
            patch["metadata"]["annotations"] = dict.fromkeys(key for key in (MOVE, MOVED) if key in annotations)
            if annotations.get(DELETION_COST) == FIRST_TO_GO:
                patch["metadata"]["annotations"][DELETION_COST] = None
            try:
                if given is not None or patch["metadata"]["annotations"]:
                    self._objects.patch(source, patch)
                return
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise

    def _carry_out(self, twin: Json, source: Json | None, record: MigrationRecord, switched: MigrationRecord) -> None:
        if is_switched(twin):
            return
        if source is not None and is_switched(source):
            kept = origin_of(twin)
            assert kept is not None  # it was written before the source was touched
            self._adopt(twin, kept, switched)
            return
        if source is None or has_ended(source) or source["metadata"].get("deletionTimestamp"):
            raise StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)
        given = origin(source, record)
        if origin_of(twin) != given:  # it was labelled or annotated since
            annotation = {MOVE: msgspec.json.encode(given).decode()}
            twin = self._objects.patch(twin, {"metadata": {"annotations": annotation}})
        if owner_kind(source) == "Job":
            patch = orphaning(given)
            patch["metadata"]["annotations"][MOVE] = msgspec.json.encode(given).decode()
            self._objects.patch(source, patch)
            self._reached("move.orphaned")
        elif owner_kind(source):
            self._objects.patch(source, {"metadata": {"annotations": {DELETION_COST: FIRST_TO_GO}}})
            self._reached("move.source-first-to-go")
        self._adopt(twin, given, switched)

    def _adopt(self, twin: Json, given: Origin, switched: MigrationRecord) -> None:
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

    def _found(self, twin: Json) -> Json:
        found = self._objects.pod(twin["metadata"]["namespace"], twin["metadata"]["name"])
        if found is None or found["metadata"]["uid"] != twin["metadata"]["uid"]:
            raise StepFailedError(Failure.SWITCH_FAILED, f"the restored pod {twin['metadata']['name']} is gone")
        return found

    def _twin(self, record: MigrationRecord) -> Json:
        found = self._objects.pod(record.pod.partition("/")[0], record.twin)
        if found is None:
            raise StepFailedError(Failure.SWITCH_FAILED, f"the restored pod {record.twin} is gone")
        return found

    def _source(self, record: MigrationRecord) -> Json | None:
        namespace, _, name = record.pod.partition("/")
        found = self._objects.pod(namespace, name)
        return found if found is not None and found["metadata"]["uid"] == record.uid else None
