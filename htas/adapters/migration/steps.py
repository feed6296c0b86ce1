"""One step of a move at a time: from the state it is in to the next, the next attempt, or back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event

import msgspec
import structlog

from htas.adapters.migration.documents import (
    Json,
    found_in,
    has_ended,
    is_ending,
    is_introduced,
    is_ready,
    is_switched,
    is_twin_of,
    record_in,
    starts_afresh,
    twin_name_of,
)
from htas.adapters.migration.leftovers import Leftovers
from htas.adapters.migration.method import Checkpointing, Method, StepFailedError, shortened
from htas.adapters.migration.objects import POLL_S, Journal, Objects, Removal, TakenOverError, at_once_s, poll_s
from htas.adapters.migration.present import PresentObjects, check_target, has_come_up, late
from htas.adapters.migration.switching import Handover, Switching, is_available
from htas.model.migrations import Failure, MigrationRecord, MigrationSettings, MigrationState
from htas.ports import HTASError, PermanentError, TransientError

log = structlog.get_logger()

Step = Callable[[MigrationRecord, float], MigrationRecord]
"""Of a move's record and its seconds: the record after it."""
PAUSE_S = 1.0
"""Before the next attempt, and before the API server is asked again that did not answer."""
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
        grace: Callable[[Json], int],
    ) -> None:
        self._objects = objects
        self._journal = journal
        self._leftovers = leftovers
        self._method = method
        self._settings = settings
        self._closing = closing
        self._clock = clock
        self._reached = reached
        self._grace = grace
        self._present = PresentObjects(objects, settings)
        self._switching = Switching(objects, reached)
        self._handover = Handover(objects, self._present, self._switching, closing, reached)
        self._removal = Removal(objects, closing)
        limits = settings.deadlines
        self._steps: dict[MigrationState, tuple[Step, float]] = {
            MigrationState.PREPARED: (self._start_afresh, limits.restore_s),
            MigrationState.TRANSFERRED: (self._restore, limits.restore_s),
            MigrationState.RESTORED: (self._switch, limits.switch_s),
        }
        if isinstance(method, Checkpointing):
            self._steps[MigrationState.PREPARED] = partial(self._checkpoint, method), limits.checkpoint_s
            self._steps[MigrationState.CHECKPOINTED] = partial(self._deliver, method), limits.transfer_s

    def advance(self, record: MigrationRecord, since: float) -> MigrationRecord:
        """The record after the next step, whichever way that went; the same where it is to be tried again.

        `since` is when this daemon had it in its state for the first time, by the monotonic clock: deadlines count
        from there. Raises TakenOverError where another daemon carries the move, and TransientError while the API server
        is away, or a node does not answer, and a switched move cannot be finished.
        """
        if record.state is MigrationState.SWITCHED:
            return self._finish(record, since)
        step, within_s = self._steps[record.state]
        try:
            return step(record, within_s)
        except StepFailedError as failure:
            return self._failed(record, failure)
        except TransientError as error:  # the API server is away
            if time.monotonic() - since > within_s:
                return self._failed(record, StepFailedError(Failure.DEADLINE, str(error)))
            self._closing.wait(PAUSE_S)
            return record
        except PermanentError as error:
            return self._failed(record, StepFailedError(_blamed(record), str(error)))
        except HTASError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {shortened(str(error))}"
            if record.detail != what:  # the attempt before met another
                log.exception("a move met something unforeseen", move=record.id, pod=record.pod, state=record.state)
            return self._failed(record, StepFailedError(Failure.UNEXPECTED, what))

    def take_up(self, record: MigrationRecord) -> MigrationRecord:
        """Go on with a move of a dead daemon; or begin its next attempt, where the last one cannot be gone on with."""
        found = msgspec.structs.replace(record, is_taken_up=True)
        if record.state is MigrationState.SWITCHED:
            return found
        try:
            record = self._journal.write(record, found)
        except StepFailedError as failure:
            return self._failed(record, failure)
        if record.state is MigrationState.PREPARED:
            self._clean(record, self._present.source_or_none(record))  # it may have been killed in the middle of a dump
        if record.state in (MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED):
            age_s = self._clock() - (record.dumped_at or record.started_at)
            if age_s > STALE_S and self._present.twin(record) is None:
                what = f"its checkpoint was {age_s:.0f} s old when another daemon found it"
                return self._failed(record, StepFailedError(Failure.INTERRUPTED, what))
        return record

    def finish_switches(self, pods: Sequence[Json]) -> None:
        """Give the twins of `pods` to Jobs that a dead daemon had taken their sources from.

        Such a Job has made a replacement meanwhile. It deletes one of two pods, that which is not bound: waited for.
        """
        for record in found_in(pods):
            source = self._present.source_or_none(record)
            if record.state is not MigrationState.RESTORED or source is None or not is_switched(source):
                continue
            try:
                self._switch(record, 0.0)
            except HTASError as error:  # met again, and dealt with, by whoever carries the move
                log.warning("a switch could not be finished", move=record.id, error=str(error))
                continue
            until = time.monotonic() + REPLACED_S
            while time.monotonic() < until and self._objects.unbound_beside(self._present.twin(record)):
                self._closing.wait(POLL_S)

    # Forwards.

    def _start_afresh(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        """Without a checkpoint: a copy is begun, unless the source's node is lost or the target takes no pods."""
        self._present.check_source_node(record)
        self._present.check_target(record)
        return self._restore(record, within_s)

    def _checkpoint(self, method: Checkpointing, record: MigrationRecord, within_s: float) -> MigrationRecord:
        source = self._present.running_source(record)
        self._present.check_source_node(record)
        self._present.check_target(record)
        dump = method.checkpoint(record, source, within_s)
        self._reached("move.dumped")
        return self._write(record, MigrationState.CHECKPOINTED, archive=dump.archive, dumped_at=dump.dumped_at)

    def _deliver(self, method: Checkpointing, record: MigrationRecord, within_s: float) -> MigrationRecord:
        source = self._present.running_source(record)
        delivered = method.deliver(record, source, within_s)
        self._reached("move.delivered")
        facts = {"image": " ".join(delivered.images), "digest": " ".join(delivered.digests)}
        return self._write(record, MigrationState.TRANSFERRED, archive_bytes=delivered.size, **facts)

    def _restore(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        began = time.monotonic()
        source = self._present.movable_source(record)
        name = self._method.restore(record, source, within_s)
        self._reached("move.twin-created")
        namespace = record.pod.partition("/")[0]
        min_ready_s = self._handover.min_ready_s(record, source)
        within_s += min_ready_s
        while not self._closing.is_set():
            twin = self._objects.pod(namespace, name)
            if twin is None or not is_twin_of(twin, record):
                raise StepFailedError(Failure.RESTORE_FAILED, f"pod {name} went before it ran")
            is_up = has_come_up(record, twin, self._present.running_source(record))
            if is_up and is_available(twin, min_ready_s, self._clock()):
                self._leftovers.discard(record)
                return self._write(record, MigrationState.RESTORED, twin=name)
            if time.monotonic() > began + within_s:
                self._present.check_target(record)
                raise StepFailedError(Failure.DEADLINE, f"pod {name} {late(record, twin, within_s)}")
            self._present.check_target(record, may_be_unready=True)
            self._closing.wait(poll_s(began))
        return record

    def _switch(self, record: MigrationRecord, within_s: float) -> MigrationRecord:
        self._present.check_source_node(record, may_be_gone=True)
        if not self._handover.prepare(record, within_s):
            return record
        switched = record.advanced(MigrationState.SWITCHED, self._clock())
        self._switching.switch(record, switched)
        self._reached("move.switched")
        return switched

    def _finish(self, record: MigrationRecord, since: float) -> MigrationRecord:
        """Delete the source, then whatever else is left. As long as the source lives, a twin that died is no loss."""
        within_s = self._settings.deadlines.switch_s
        source = self._present.source_or_none(record)
        if source is not None and not is_ending(source):
            try:
                self._check_taken_over(record, source)
            except StepFailedError as failure:
                if failure.reason is not Failure.DEADLINE or time.monotonic() - since > within_s:
                    return self._give_back(record, failure)
                self._closing.wait(POLL_S)
                return record
        self._remove_source(record, within_s)
        self._reached("move.source-deleted")
        if record.needs_image:
            self._leftovers.restored(record.target, record.id)
        is_clean = self._clean(record, source, keep_image=True)
        done = record.advanced(MigrationState.DONE, self._clock(), reason="", detail="")
        with suppress(StepFailedError, TakenOverError):  # a finalizer holds its object: it would be found as Restored
            self._journal.write(record, done)
        done = msgspec.structs.replace(done, left_behind=not is_clean)
        self._journal.write_on_twin(done)
        return done

    def _check_taken_over(self, record: MigrationRecord, source: Json) -> None:
        """Raises StepFailedError unless the twin runs where its source is about to go; DEADLINE: it may do so soon."""
        twin = self._present.twin(record)
        if twin is None:
            raise StepFailedError(Failure.RESTORE_FAILED, f"pod {record.twin} went before its source did")
        check_target(self._objects, record)
        if not has_come_up(record, twin, source):
            raise StepFailedError(Failure.DEADLINE, f"pod {record.twin} is not ready any more")

    def _remove_source(self, record: MigrationRecord, within_s: float) -> None:
        """Raises TransientError, and says so in the journal, while a node that does not answer may run it on."""
        if self._removal.remove(lambda: self._present.source_or_none(record), within_s, self._grace):
            return
        what = f"node {record.source} is not Ready: {record.pod} may run there still, until it answers or is removed"
        if record.reason != Failure.SOURCE_LOST:
            self._journal.write_on_twin(msgspec.structs.replace(record, reason=Failure.SOURCE_LOST.value, detail=what))
        raise TransientError(what)

    def _give_back(self, record: MigrationRecord, failure: StepFailedError) -> MigrationRecord:
        """Undo a switch: the twin died, and its source goes on as what it was. There is no other attempt."""
        self._present.twin_of_the_move(record)
        log.info("a switch is undone", move=record.id, pod=record.pod, error=record.without_names(str(failure)))
        self._switching.take_from(record)
        self._switching.undo(record)
        has_gone = self._removal.remove(
            lambda: self._present.twin_of_the_move(record), self._settings.deadlines.switch_s
        )
        is_clean = self._clean(record, self._present.source_or_none(record))
        return self._taken_back(record, failure, is_clean=is_clean, has_gone=has_gone)

    def _write(self, before: MigrationRecord, state: MigrationState, **changes: object) -> MigrationRecord:
        after = self._journal.write(before, before.advanced(state, self._clock(), reason="", detail="", **changes))
        self._reached(f"move.{state.lower()}")
        return after

    # Backwards.

    def _failed(self, record: MigrationRecord, failure: StepFailedError) -> MigrationRecord:
        """Clean up after an attempt; then the next one, or the end. A move that switched, or may still, goes on."""
        ahead = self._ahead(record) or self._handover.inherited(record, self._clock())
        if ahead is not None:
            return ahead
        failure = self._explained(record, failure)
        log.info(
            "attempt to move failed",
            move=record.id,
            pod=record.pod,
            attempt=record.attempt,
            error=record.without_names(str(failure)),
        )
        source = self._present.source_or_none(record)
        has_gone = self._take_back(record)
        is_clean = self._clean(record, source)
        self._reached("move.taken-back")
        has_more = record.attempt < self._settings.attempts and not failure.is_final and has_gone
        if source is None or has_ended(source) or not has_more:
            return self._taken_back(record, failure, is_clean=is_clean, has_gone=has_gone)
        self._closing.wait(PAUSE_S)
        why = {"reason": failure.reason.value, "detail": failure.detail}
        try:
            return self._journal.write(record, record.advanced(MigrationState.PREPARED, self._clock(), **why))
        except StepFailedError as gone:
            return self._taken_back(record, gone, is_clean=is_clean, has_gone=has_gone)

    def _ahead(self, record: MigrationRecord) -> MigrationRecord | None:
        """The record as the twin tells it, if it has switched: an answer was lost, or another daemon was quicker.

        Raises TakenOverError where the journal has been written by another daemon.
        """
        twin, source = self._present.twin(record), self._present.source_or_none(record)
        told = record_in(twin) if twin is not None else None
        if told is not None and told.id == record.id and told.state in (MigrationState.SWITCHED, MigrationState.DONE):
            return told
        found = record_in(source) if source is not None else None
        if found is not None and found != record:
            raise TakenOverError(f"the journal of {record.pod} was written by another daemon")
        return None

    def _explained(self, record: MigrationRecord, failure: StepFailedError) -> StepFailedError:
        """Where nothing is left to be moved, or its node is lost, that is the reason, whatever else failed."""
        source = self._present.source_or_none(record)
        if source is None or has_ended(source):
            ended = StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended: {failure.detail}", is_final=True)
            return failure if failure.reason is Failure.SOURCE_ENDED else ended
        try:
            self._present.check_source_node(record)
        except StepFailedError as lost:
            return lost
        node = self._objects.node(record.target)
        if not failure.is_final and (node is None or not is_ready(node)):
            what = f"node {record.target} is {'gone' if node is None else 'not Ready'}: {failure.detail}"
            return StepFailedError(Failure.TARGET_LOST, what)
        return failure

    def _taken_back(
        self, record: MigrationRecord, failure: StepFailedError, *, is_clean: bool, has_gone: bool
    ) -> MigrationRecord:
        detail = failure.detail
        if not has_gone:
            detail += f"; node {record.target} did not end pod {twin_name_of(record)}, which may run until it answers"
        over = record.advanced(MigrationState.ROLLED_BACK, self._clock(), reason=failure.reason.value, detail=detail)
        if not has_gone:
            self._journal.write_on_twin(over)  # first, or it would be found again without its source's journal
        over = msgspec.structs.replace(over, left_behind=not is_clean)
        with suppress(StepFailedError):  # it has gone meanwhile, and its journal with it
            self._journal.write(record, over)
        return over

    def _take_back(self, record: MigrationRecord) -> bool:
        """The twin goes, and its source is its controller's again. False: the twin's node may run it on.

        Raises TakenOverError where another daemon gives it its source's place meanwhile.
        """

        def unswitched() -> Json | None:
            twin = self._present.twin_of_the_move(record)
            if twin is not None and is_switched(twin):
                raise TakenOverError(f"pod {twin['metadata']['name']} has taken over")
            return twin

        unswitched()
        self._switching.undo(record)  # at once: a Job that was left without its pod has another made
        return self._removal.remove(unswitched, self._settings.deadlines.switch_s, self._grace_of_a_twin)

    def _grace_of_a_twin(self, twin: Json) -> int:
        """One that has served, as any copy may by now, ends as its source would."""
        return self._grace(twin) if is_introduced(twin) else at_once_s(twin)

    def _clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool = False) -> bool:
        """Whether all was removed; what could not be is left to later."""
        try:
            self._method.clean(record, source, keep_image=keep_image)
            return True
        except TransientError:
            raise
        except (StepFailedError, PermanentError) as error:
            log.info("a move left something behind for now", move=record.id, error=record.without_names(str(error)))
        except Exception:
            log.exception("a move met something unforeseen and left something behind", move=record.id)
        self._leftovers.owe(record, keep_image=keep_image)
        return False


def _blamed(record: MigrationRecord) -> Failure:
    """What is told of a step that the API server refused."""
    is_begun = record.state is MigrationState.PREPARED and starts_afresh(record)
    return Failure.RESTORE_FAILED if is_begun else _BLAMED[record.state]


_BLAMED = {
    MigrationState.PREPARED: Failure.CHECKPOINT_FAILED,
    MigrationState.CHECKPOINTED: Failure.TRANSFER_FAILED,
    MigrationState.TRANSFERRED: Failure.RESTORE_FAILED,
    MigrationState.RESTORED: Failure.SWITCH_FAILED,
}
