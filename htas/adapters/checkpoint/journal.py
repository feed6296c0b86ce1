"""The journal of moves: an annotation on the pod that is moved, and on its twin once that has taken over.

So a daemon that was killed, or another one that leads now, finds every move without a store, and nothing has to be
kept in step with the cluster.
"""

from __future__ import annotations

from htas.adapters.checkpoint.documents import Json, journalled, record_in
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.objects import CONFLICTS, Objects
from htas.model.migrations import Failure, MigrationRecord
from htas.ports import ConflictError, HTASError


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
                raise StepFailedError(Failure.SOURCE_ENDED, f"pod {after.pod} is gone", is_final=True)
            _check_ours(pod, before, after)
            try:
                self._objects.patch(pod, journalled(after))
                return after
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise
        raise AssertionError("the last conflict is raised")


def _check_ours(pod: Json, before: MigrationRecord | None, after: MigrationRecord) -> None:
    found = record_in(pod)
    if found is not None and found.is_over and before is None:
        return  # an earlier move of the same pod
    if found != before and found != after:
        raise TakenOverError(f"the journal of {after.pod} was written by another daemon")
