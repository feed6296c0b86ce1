"""The journal of moves: an annotation on the pod that is moved, and on its twin once that has taken over.

So a daemon that was killed, or another one that leads now, finds every move without a store, and nothing has to be
kept in step with the cluster.
"""

from __future__ import annotations

from htas.adapters.migration.documents import (
    Json,
    is_its_own,
    is_twin_of,
    journalled,
    record_in,
    settled,
    twin_name_of,
)
from htas.adapters.migration.failures import StepFailedError
from htas.adapters.migration.objects import CONFLICTS, Objects
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.ports import ConflictError, HTASError, NotFoundError


class TakenOverError(HTASError):
    """Somebody else has written the journal of a move since we did: it is not ours to carry on."""


class Journal:
    """Writes the state of moves on their sources, and on twins that have taken over."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def write(self, before: MigrationRecord | None, after: MigrationRecord) -> MigrationRecord:
        """Write a state over the one that was written last; returns it.

        Raises TakenOverError where the journal says something else than `before`, and StepFailedError (final) where
        the source is gone.
        """
        namespace, _, name = after.pod.partition("/")
        for attempt in range(CONFLICTS):
            pod = self._objects.pod(namespace, name)
            if pod is None or pod["metadata"]["uid"] != after.uid:
                raise _gone(after)
            _check_ours(pod, before, after)
            try:
                self._objects.patch(pod, journalled(after))
                return after
            except NotFoundError as error:
                raise _gone(after) from error
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise
        raise AssertionError("the last conflict is raised")

    def write_on_twin(self, record: MigrationRecord) -> None:
        """Write a state where the source is about to go; a twin that was deleted meanwhile has none."""
        for attempt in range(CONFLICTS):
            twin = self._objects.pod(record.pod.partition("/")[0], twin_name_of(record))
            if twin is None or not is_twin_of(twin, record):
                return
            try:
                is_done = record.state is MigrationState.DONE
                self._objects.patch(twin, settled(record) if is_done else journalled(record))
                return
            except NotFoundError:
                return
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise


def _gone(record: MigrationRecord) -> StepFailedError:
    return StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} is gone", is_final=True)


def _check_ours(pod: Json, before: MigrationRecord | None, after: MigrationRecord) -> None:
    found = record_in(pod)
    if found is not None and not is_its_own(pod, found):
        found = None  # a copy of a pod bears its annotations, too
    if found is not None and found.is_over and before is None:
        return  # an earlier move of the same pod
    if found is not None and before is not None and before.state is MigrationState.SWITCHED and found.id == after.id:
        return  # from the switch on the twin's journal was written, and this one no more
    if found != before and found != after:
        raise TakenOverError(f"the journal of {after.pod} was written by another daemon")
