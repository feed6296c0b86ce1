"""MigrationPort: each move is carried in a thread of its own from state to state, and journalled at each.

    Prepared → Checkpointed → Transferred → Restored → Switched → Done, or RolledBack while it has not switched

The source runs on until its twin is seen running. A step that fails, or takes too long, is cleaned up after and begun
anew from a new checkpoint; after the last attempt the move is taken back with the reason. Moves that another process
has left behind are found in the cluster and carried on, or taken back. Each method has an engine of its own.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Event, RLock, Semaphore, Thread
from typing import Any

import structlog

from htas.adapters.migration.documents import Json, base_images_of, containers_of, found_in, is_its_own, record_in
from htas.adapters.migration.leftovers import Leftovers
from htas.adapters.migration.method import Method, fenced
from htas.adapters.migration.objects import Journal, Objects, TakenOverError, at_once_s
from htas.adapters.migration.present import check_nodes, check_pod
from htas.adapters.migration.steps import Steps
from htas.model.migrations import ENDED_KEPT, MigrationRecord, MigrationSettings, MigrationState, Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.pods import Pod
from htas.ports import ConflictError, HTASError, MoveRefusedError, NotFoundError

log = structlog.get_logger()

LOOK_S = 5.0
"""Between looks for moves that nobody carries, and for images that nobody needs."""
REST_S = 60.0
"""A move that was taken back is not begun anew for so long: what was wrong is wrong still."""


class MigrationEngine:
    """Implements MigrationPort. `run` carries moves, `close` ends that: only the daemon that leads does so.

    `sweepable` names the nodes on which an earlier move may have left something; `at_once` is what all methods share;
    `grace` is how many seconds a source is given to end, once its twin has its place.
    """

    def __init__(
        self,
        objects: Objects,
        method: Method,
        settings: MigrationSettings,
        *,
        sweepable: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.time,
        reached: Callable[[str], None] = lambda point: None,
        at_once: Semaphore | None = None,
        grace: Callable[[Json], int] = at_once_s,
    ) -> None:
        self._method = method = fenced(method, objects.may_write)
        self._settings = settings
        self._clock = clock
        self._closing = Event()
        self._objects = objects
        self._journal = Journal(objects)
        self._leftovers = Leftovers(objects, method, sweepable)
        self._steps = Steps(
            objects, self._journal, self._leftovers, method, settings, self._closing, clock, reached, grace
        )
        self._reached = reached
        self._lock = RLock()
        self._under_way: dict[str, MigrationRecord] = {}
        self._ended: deque[MigrationRecord] = deque(maxlen=ENDED_KEPT)
        self._at_once = at_once or Semaphore(settings.at_once)
        self._told: deque[str] = deque(maxlen=ENDED_KEPT)
        self._looking = PollingWorker("moves", self._look, self._rest, self._closing)

    # The port.

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.KUBELET_CHECKPOINT) -> None:
        source = self._objects.pod(pod.namespace, pod.name)
        if source is None or source["metadata"]["uid"] != pod.uid:
            raise NotFoundError(f"pod {pod.key} is gone")
        if source["spec"].get("nodeName") == target:
            return
        before = record_in(source)
        if before is not None and is_its_own(source, before) and self._is_begun(before, target):
            return
        for twin in self._objects.twins_of(pod.namespace, pod.uid):
            where = twin["spec"].get("nodeName", "")
            what = f"its twin {twin['metadata']['name']} of an earlier move may run on node {where} until that answers"
            raise ConflictError(f"pod {pod.key}: {what}")
        self._check(source, target)
        now = self._clock()
        facts = {"containers": tuple(containers_of(source)), **self._names(source)}
        where = source["spec"]["nodeName"]
        record = MigrationRecord.prepared(_id(pod.uid, target, now), pod, where, target, method, now, **facts)
        with self._lock:  # before it is written: a look in between must not take it for another process's
            self._under_way[record.id] = record
        try:
            self._journal.write(None, record)
        except Exception:
            with self._lock:
                del self._under_way[record.id]
            raise
        self._carry_on(record, is_found=False)
        self._reached("move.prepared")

    def moving(self) -> Sequence[Move]:
        with self._lock:
            return tuple(each.move for each in self._under_way.values())

    def records(self) -> Sequence[MigrationRecord]:
        with self._lock:
            return [each.shown() for each in (*self._under_way.values(), *self._ended)]

    def _carried(self) -> Sequence[MigrationRecord]:
        with self._lock:
            return tuple(self._under_way.values())

    def _is_begun(self, before: MigrationRecord, target: str) -> bool:
        """Raises ConflictError for a pod that is on its way elsewhere, or whose last move was taken back just now."""
        if not before.is_over:
            if before.target != target:
                raise ConflictError(f"pod {before.pod} is being moved to {before.target} already")
            return True
        is_fresh = before.ended_at is not None and self._clock() - before.ended_at < REST_S
        if before.state is MigrationState.ROLLED_BACK and before.target == target and is_fresh:
            raise ConflictError(
                f"pod {before.pod} could not be moved to {target}: {before.reason}: {before.shown().detail}"
            )
        return False

    def _names(self, source: Json) -> dict[str, Any]:
        """What is journalled before any image of the move is made: its key, and what it takes the place of."""
        if self._method.name is not MigrationMethod.KUBELET_CHECKPOINT:
            return {}
        return {"image_key": secrets.token_hex(16), "base_images": base_images_of(source)}

    def _check(self, source: Json, target: str) -> None:
        check_pod(source, self._settings, self._method.name)
        node, there = self._objects.node(source["spec"]["nodeName"]), self._objects.node(target)
        if node is None or there is None:
            raise NotFoundError(f"node {target if node is not None else source['spec']['nodeName']} is gone")
        check_nodes(node, there, self._method.name)

    # Carrying moves.

    def run(self) -> None:
        """Finish first what cannot wait: a Job without its pod makes another, which must not be bound."""
        self._looking.begin(lambda: self._steps.finish_switches(self._objects.moving()))

    def close(self) -> None:
        self._looking.close()

    def _look(self) -> None:
        self._take_up()
        self._leftovers.look(self._carried)

    def _rest(self) -> None:
        self._closing.wait(LOOK_S)

    def _take_up(self) -> None:
        """Take up the moves that nobody carries: an earlier process's, or another daemon's that leads no more."""
        for record in found_in(self._objects.moving()):
            with self._lock:
                has_ended = any(record.id == each.id for each in self._ended)  # while the pods were listed
                if record.id in self._under_way or has_ended or record.method is not self._method.name:
                    continue
                self._under_way[record.id] = record
            log.info("move found", move=record.id, pod=record.pod, state=record.state)
            self._carry_on(record, is_found=True)

    def _carry_on(self, record: MigrationRecord, *, is_found: bool) -> None:
        """In a thread that holds up no exit: what it leaves undone is found in the cluster again."""
        Thread(target=self._carry, args=(record, is_found), name=f"move {record.id}", daemon=True).start()

    def _carry(self, record: MigrationRecord, is_found: bool) -> None:
        try:
            with self._at_once:
                if is_found:
                    record = self._noted(self._steps.take_up(record))
                else:
                    self._note(record)
                since = time.monotonic()
                while not record.is_over and not self._closing.is_set():
                    before, record = record, self._noted(self._steps.advance(record, since))
                    if (before.state, before.attempt) != (record.state, record.attempt):
                        since = time.monotonic()
        except TakenOverError as error:
            log.warning("move left to another daemon", move=record.id, error=str(error))
        except HTASError as error:  # found again by the next look
            log.warning("move cannot be carried on, tried again", move=record.id, error=str(error))
        except Exception as error:
            if record.id not in self._told:  # it is met again with each look
                self._told.append(record.id)
                log.exception("a switched move met something unforeseen, tried again", move=record.id)
            else:
                log.warning("move cannot be carried on, tried again", move=record.id, error=repr(error))
        finally:
            with self._lock:
                self._under_way.pop(record.id, None)
                if record.is_over:
                    self._ended.append(record)

    def _noted(self, record: MigrationRecord) -> MigrationRecord:
        with self._lock:
            is_news = self._under_way.get(record.id) != record
            self._under_way[record.id] = record
        if is_news:
            self._note(record)
        return record

    def _note(self, record: MigrationRecord) -> None:
        facts = {"reason": record.reason, "detail": record.shown().detail} if record.reason else {}
        log.info("move", move=record.id, pod=record.pod, to=record.target, state=record.state, **facts)


def _id(uid: str, target: str, now: float) -> str:
    return hashlib.sha256(f"{uid}/{target}/{now}".encode()).hexdigest()[:12]


class PollingWorker:
    """Repeats `look`, and `rest` in between. What fails is told and tried again: it never ends the thread."""

    def __init__(self, name: str, look: Callable[[], None], rest: Callable[[], None], closing: Event) -> None:
        self._look = look
        self._rest = rest
        self._closing = closing
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def begin(self, first: Callable[[], None]) -> None:
        """Do what cannot wait before this returns, then go on beside the caller."""
        try:
            first()
        except HTASError as error:
            log.warning("moves cannot be looked for, tried again", error=str(error))
        self._thread.start()

    def close(self) -> None:
        """End after the present look, which is waited for five seconds."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._look()
            except HTASError as error:
                log.warning("moves cannot be looked for, tried again", error=str(error))
            except Exception:
                log.exception("moves failed on a defect of htas, tried again")
            self._rest()


class MovesByMethod:
    """Implements MigrationPort: each move goes to the engine that carries its method."""

    def __init__(self, engines: Mapping[MigrationMethod, MigrationEngine], objects: Objects) -> None:
        self._engines = engines
        self._objects = objects

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        engine = self._engines.get(method)
        if engine is None:
            what = f"pod {pod.key}: {method} is not set up, and no group moves by it"
            raise MoveRefusedError(Refusal.NOT_CONFIGURED, what)
        engine.start(pod, target, method)

    def moving(self) -> Sequence[Move]:
        return [move for engine in self._engines.values() for move in engine.moving()]

    def records(self) -> Sequence[MigrationRecord]:
        found = [record for engine in self._engines.values() for record in engine.records()]
        ended = sorted((each for each in found if each.is_over), key=lambda each: each.ended_at or 0.0)
        return [each for each in found if not each.is_over] + ended[-ENDED_KEPT:]

    def run(self) -> None:
        """Carry moves: only the daemon that leads does so. Those that no engine carries are told."""
        tell_stranded(self._objects, self._engines)
        for engine in self._engines.values():
            engine.run()

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()


def tell_stranded(objects: Objects, carried: Collection[MigrationMethod]) -> None:
    """Warn of each move under way by a method that is not among those carried."""
    try:
        pods = objects.moving()
    except HTASError as error:
        log.warning("moves that no daemon continues cannot be looked for", error=str(error))
        return
    told = set()
    for pod in pods:
        record = record_in(pod)
        if record is None or record.is_over or record.method in carried or record.id in told:
            continue
        told.add(record.id)
        log.warning(
            "no daemon continues a move",
            move=record.id,
            pod=record.pod,
            method=record.method.value,
            state=record.state.value,
            do=f"configure migration for {record.method} again and restart, until the label htas.io/moving is gone",
        )
