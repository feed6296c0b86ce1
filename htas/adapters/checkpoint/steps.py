"""One step of a move at a time: from the state it is in to the next, the next attempt, or back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event

import structlog

from htas.adapters.checkpoint.documents import Json, found_in, settled
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.journal import Journal
from htas.adapters.checkpoint.leftovers import Leftovers
from htas.adapters.checkpoint.methods import Method
from htas.adapters.checkpoint.objects import CONFLICTS, Objects
from htas.adapters.checkpoint.refusals import unready
from htas.adapters.checkpoint.restoring import is_restored
from htas.adapters.checkpoint.switching import Switching
from htas.adapters.twins import has_ended, is_switched, twin_name
from htas.model.migrations import Failure, MigrationRecord, MigrationSettings, MigrationState
from htas.ports import ConflictError, HTASError, NotFoundError, PermanentError, TransientError

log = structlog.get_logger()

PAUSE_S = 1.0
"""Before the next attempt, and before the API server is asked again that did not answer."""
POLL_S = 0.1
"""Between looks at a pod that is being restored."""
REPLACED_S = 5.0
"""For a Job to delete a replacement that it needs no more; it looks once a second."""
STALE_S = 30.0
"""A checkpoint that a dead daemon left is not restored when it is older: what the source did since would be lost."""


class Steps:
    """Carries out single steps. Nothing is remembered here: the record says where a move is."""

    def __init__(
        self,
        objects: Objects,
        journal: Journal,
        leftovers: Leftovers,
        method: Method,
        settings: MigrationSettings,
        closing: Event,
        clock: Callable[[], float],
        reached: Callable[[str], None],
    ) -> None:
        self._objects = objects
        self._journal = journal
        self._leftovers = leftovers
        self._method = method
        self._settings = settings
        self._closing = closing
        self._clock = clock
        self._reached = reached
        self._switching = Switching(objects, reached)
        limits = settings.deadlines
        self._steps = {
            MigrationState.PREPARED: (self._checkpoint, limits.checkpoint_s),
            MigrationState.CHECKPOINTED: (self._deliver, limits.transfer_s),
            MigrationState.TRANSFERRED: (self._restore, limits.restore_s),
            MigrationState.RESTORED: (self._switch, limits.switch_s),
        }

    def advance(self, record: MigrationRecord) -> MigrationRecord:
        """The record after the next step, whichever way that went; the same where it is to be tried again.

        Raises TakenOverError where another daemon carries the move, and TransientError while the API server is away
        and a switched move cannot be finished.
        """
        if record.state is MigrationState.SWITCHED:
            return self._finish(record)
        step, within_s = self._steps[record.state]
        try:
            return step(record, within_s)
        except StepFailedError as failure:
            return self._failed(record, failure)
        except TransientError as error:  # the API server is away
            if self._clock() - record.reached.get(record.state, record.started_at) > within_s:
                return self._failed(record, StepFailedError(Failure.DEADLINE, str(error)))
            self._closing.wait(PAUSE_S)
            return record
        except PermanentError as error:
            return self._failed(record, StepFailedError(_blamed(record.state), str(error)))

    def take_up(self, record: MigrationRecord) -> MigrationRecord:
        """Go on with a move of a dead daemon; or begin its next attempt, where the last one cannot be gone on with."""
        if record.state is MigrationState.PREPARED:
            self._clean(record, self._source_or_none(record))  # it may have been killed in the middle of a dump
        if record.state in (MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED):
            age_s = self._clock() - (record.dumped_at or record.started_at)
            if age_s > STALE_S and self._twin(record) is None:
                what = f"its checkpoint was {age_s:.0f} s old when another daemon found it"
                return self._failed(record, StepFailedError(Failure.INTERRUPTED, what))
        return record

    def finish_switches(self, pods: Sequence[Json]) -> None:
        """Give the twins of `pods` to Jobs that a dead daemon had taken their sources from.

        Such a Job has made a replacement meanwhile. It deletes one of two pods, that which is not bound: waited for.
        """
        for record in found_in(pods):
            source = self._source_or_none(record)
            if record.state is not MigrationState.RESTORED or source is None or not is_switched(source):
                continue
            try:
                self._switch(record, 0.0)
            except HTASError as error:  # met again, and dealt with, by whoever carries the move
                log.warning("a switch could not be finished", move=record.id, error=str(error))
                continue
            until = time.monotonic() + REPLACED_S
            while time.monotonic() < until and self._objects.unbound_beside(self._twin(record)):
                self._closing.wait(POLL_S)

    # Forwards.

    def _checkpoint(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        source = self._running_source(record)
        self._check_target(record)
        dump = self._method.checkpoint(record, source, within_s)
        self._reached("move.dumped")
        return self._write(record, MigrationState.CHECKPOINTED, archive=dump.archive, dumped_at=dump.dumped_at)

    def _deliver(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        source = self._running_source(record)
        delivered = self._method.deliver(record, source, within_s)
        self._reached("move.delivered")
        facts = {"image": " ".join(delivered.images), "digest": " ".join(delivered.digests)}
        return self._write(record, MigrationState.TRANSFERRED, archive_bytes=delivered.size, **facts)

    def _restore(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        until = time.monotonic() + within_s
        name = self._method.restore(record, self._running_source(record), within_s)
        self._reached("move.twin-created")
        namespace = record.pod.partition("/")[0]
        while not self._closing.is_set():
            twin = self._objects.pod(namespace, name)
            if twin is None:
                raise StepFailedError(Failure.RESTORE_FAILED, f"pod {name} went before it ran")
            if is_restored(twin, self._running_source(record)):
                return self._write(record, MigrationState.RESTORED, twin=name)
            if time.monotonic() > until:
                self._check_target(record)
                raise StepFailedError(Failure.DEADLINE, f"pod {name} did not run within {within_s:.0f} s")
            self._closing.wait(POLL_S)
        return record

    def _switch(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        switched = record.advanced(MigrationState.SWITCHED, self._clock())
        self._switching.switch(record, switched)
        self._reached("move.switched")
        return switched

    def _finish(self, record: MigrationRecord) -> MigrationRecord:
        """Delete the source, then whatever else is left. There is no way back from here."""
        source = self._source_or_none(record)
        if source is not None:
            self._objects.delete(source)
        self._reached("move.source-deleted")
        self._leftovers.restored(record.target, record.id)
        self._clean(record, source, keep_image=True)
        done = record.advanced(MigrationState.DONE, self._clock())
        for _ in range(CONFLICTS):
            twin = self._twin(record)
            if twin is None:
                break  # deleted meanwhile, as any pod may be
            try:
                self._objects.patch(twin, settled(done))
                break
            except (ConflictError, NotFoundError):
                continue
        return done

    def _write(self, before: MigrationRecord, state: MigrationState, **changes: object) -> MigrationRecord:
        after = self._journal.write(before, before.advanced(state, self._clock(), reason="", detail="", **changes))
        self._reached(f"move.{state.lower()}")
        return after

    # Backwards.

    def _failed(self, record: MigrationRecord, failure: StepFailedError) -> MigrationRecord:
        """Clean up after an attempt; then the next one, or the end."""
        log.info("attempt to move failed", move=record.id, pod=record.pod, attempt=record.attempt, error=str(failure))
        source = self._source_or_none(record)
        self._take_back(record)
        self._clean(record, source)
        self._reached("move.taken-back")
        why = {"reason": failure.reason.value, "detail": failure.detail}
        has_more = record.attempt < self._settings.attempts and not failure.is_final
        if source is None or has_ended(source) or not has_more:
            over = record.advanced(MigrationState.ROLLED_BACK, self._clock(), **why)
            with suppress(StepFailedError):  # it has gone meanwhile, and its journal with it
                self._journal.write(record, over)
            return over
        self._closing.wait(PAUSE_S)
        try:
            return self._journal.write(record, record.advanced(MigrationState.PREPARED, self._clock(), **why))
        except StepFailedError as gone:
            return record.advanced(MigrationState.ROLLED_BACK, self._clock(), reason=gone.reason, detail=gone.detail)

    def _take_back(self, record: MigrationRecord) -> None:
        """The twin goes, and its source is its controller's again."""
        twin = self._twin(record)
        if twin is not None:
            self._objects.delete(twin)
        self._switching.undo(record)

    def _clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool = False) -> None:
        """What cannot be removed now is left to a later sweep."""
        try:
            self._method.clean(record, source, keep_image=keep_image)
        except (StepFailedError, NotFoundError) as error:
            log.info("a move left something behind for now", move=record.id, error=str(error))
            for node in (record.source,) if keep_image else (record.source, record.target):
                self._leftovers.defer(node)

    # What is there.

    def _source_or_none(self, record: MigrationRecord) -> Json | None:
        namespace, _, name = record.pod.partition("/")
        found = self._objects.pod(namespace, name)
        return found if found is not None and found["metadata"]["uid"] == record.uid else None

    def _running_source(self, record: MigrationRecord) -> Json:
        found = self._source_or_none(record)
        if found is None or has_ended(found) or found["metadata"].get("deletionTimestamp"):
            raise StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)
        return found

    def _twin(self, record: MigrationRecord) -> Json | None:
        """The twin of the present attempt, also where the journal does not know of it yet."""
        namespace, _, name = record.pod.partition("/")
        known = record.twin or twin_name(name, f"{record.uid}/{record.id}/{record.attempt}")
        return self._objects.pod(namespace, known)

    def _check_target(self, record: MigrationRecord) -> None:
        node = self._objects.node(record.target)
        why = f"node {record.target} is gone" if node is None else unready(node)
        if why:
            raise StepFailedError(Failure.TARGET_LOST, why)


_BLAMED = {
    MigrationState.PREPARED: Failure.CHECKPOINT_FAILED,
    MigrationState.CHECKPOINTED: Failure.TRANSFER_FAILED,
    MigrationState.TRANSFERRED: Failure.RESTORE_FAILED,
    MigrationState.RESTORED: Failure.SWITCH_FAILED,
}


def _blamed(state: MigrationState) -> Failure:
    return _BLAMED[state]
