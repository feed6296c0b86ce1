"""The journal of moves: an annotation on the pod that is moved, and on its twin once that has taken over.

So a daemon that was killed, or another one that leads now, finds every move without a store, and nothing has to be
kept in step with the cluster.
"""

from __future__ import annotations

from htas.adapters.checkpoint.documents import Json, is_its_own, journalled, record_in
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.objects import CONFLICTS, Objects
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.ports import ConflictError, HTASError, NotFoundError


class TakenOverError(HTASError):
    """Somebody else has written the journal of a move since we did: it is not ours to carry on."""


class Journal:
    """Writes the state of moves on their sources."""

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
