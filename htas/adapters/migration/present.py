"""What is there of a move at this moment: its source, its twin, and their nodes."""

from __future__ import annotations

from htas.adapters.migration.documents import Json, is_ending, is_ready, is_twin_of, stands_for, twin_name_of
from htas.adapters.migration.failures import StepFailedError
from htas.adapters.migration.journal import TakenOverError
from htas.adapters.migration.objects import Objects
from htas.adapters.migration.refusals import check_pod, unready
from htas.model.migrations import Failure, MigrationRecord, MigrationSettings, Refusal
from htas.ports import MoveRefusedError


class Present:
    """Looks anew each time it is asked; raises what the API server answers."""

    def __init__(self, objects: Objects, settings: MigrationSettings) -> None:
        self._objects = objects
        self._settings = settings

    def source_or_none(self, record: MigrationRecord) -> Json | None:
        namespace, _, name = record.pod.partition("/")
        found = self._objects.pod(namespace, name)
        return found if found is not None and found["metadata"]["uid"] == record.uid else None

    def running_source(self, record: MigrationRecord) -> Json:
        found = self.source_or_none(record)
        if found is None or is_ending(found):
            raise StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)
        return found

    def movable_source(self, record: MigrationRecord) -> Json:
        """Looked at once more before a twin is made of it: somebody may have changed it, or written its journal."""
        source = self.running_source(record)
        try:
            check_pod(source, self._settings, record.method)
        except MoveRefusedError as error:
            is_final = error.reason is not Refusal.NOT_RUNNING
            raise StepFailedError(Failure.REFUSED, str(error), is_final=is_final) from error
        return source

    def twin(self, record: MigrationRecord) -> Json | None:
        """The twin of the present attempt, also where the journal does not know of it yet."""
        found = self._objects.pod(record.pod.partition("/")[0], twin_name_of(record))
        return found if found is not None and is_twin_of(found, record) else None

    def twin_of_the_move(self, record: MigrationRecord) -> Json | None:
        """Only such a twin may be deleted. Raises TakenOverError for one that is a pod like any other by now."""
        twin = self.twin(record)
        if twin is not None and not stands_for(twin, record):
            raise TakenOverError(f"pod {twin['metadata']['name']} is no twin any more")
        return twin

    def check_source_node(self, record: MigrationRecord, *, may_be_gone: bool = False) -> None:
        """A switch may go on without the node, when the twin is all that is left; not while nobody knows."""
        node = self._objects.node(record.source)
        if node is None and not may_be_gone:
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is gone", is_final=True)
        if node is not None and not is_ready(node):
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is not Ready")

    def check_target(self, record: MigrationRecord, *, may_be_unready: bool = False) -> None:
        """A node that is not Ready may be so again before a deadline; one that is gone does not come back."""
        node = self._objects.node(record.target)
        if node is None:
            raise StepFailedError(Failure.TARGET_LOST, f"node {record.target} is gone", is_final=True)
        if not may_be_unready and (why := unready(node)):
            raise StepFailedError(Failure.TARGET_LOST, why)
