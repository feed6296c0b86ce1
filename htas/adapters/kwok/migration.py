"""MigrationPort on simulated nodes: a moved pod keeps its progress, as a checkpoint would keep it.

The source runs on until its twin runs on the target; then the twin takes the source's place with its controller, and
the source is deleted. What is under way is written on the twin alone, so that any later process goes on from there:

    twin created → running → copied → source orphaned → twin adopted → source deleted → mark removed

Orphaned before adopted: a Job that sees two active pods may remove the younger one, which is the twin. Copied: nothing
is, but the time passes that copying the checkpoint would take (C ÷ B of T = C ÷ B + K, HTAS paper 5.3). A twin that
runs is what the states of real moves call Restored; there is no archive, so Checkpointed and Transferred are times
alone, and one attempt is all there is: what a simulated node fails at, it fails at again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, RLock

import msgspec
import structlog

from htas.adapters import twins
from htas.adapters.controllers import kind_and_group
from htas.adapters.kubernetes.api import ApiServer, part
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kwok.twins import ending_as_meant, runs, twin_of, unmarking
from htas.adapters.polling_worker import PollingWorker
from htas.adapters.twins import Json, Origin
from htas.model.migrations import (
    ENDED_KEPT,
    TRANSITIONS,
    Failure,
    MigrationRecord,
    MigrationState,
    Refusal,
)
from htas.model.moves import MigrationMethod, Move
from htas.model.pods import MOVING, TWIN_OF, Pod
from htas.ports import ConflictError, MoveRefusedError, NotFoundError

log = structlog.get_logger()

TICK_S = 0.2
"""Between looks at the moves under way."""
GONE = "its twin was deleted"
RECALL_S = 10.0
"""Between looks while none is: another daemon's may have been left behind."""


class KwokMigration:
    """Implements MigrationPort. `run` takes moves further, `close` ends that: only the daemon that leads does so."""

    def __init__(
        self,
        api: ApiServer,
        live: LiveView,
        *,
        bandwidth_bytes_per_s: float | None = None,
        clock: Callable[[], float] = time.time,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._api = api
        self._live = live
        self._bandwidth = bandwidth_bytes_per_s
        self._clock = clock
        self._reached = reached
        self._lock = RLock()
        self._moves: dict[str, MigrationRecord] = {}
        self._ended: deque[MigrationRecord] = deque(maxlen=ENDED_KEPT)
        self._closing = Event()
        self._looking = PollingWorker("kwok moves", self.advance, self._rest, self._closing)

    # The port.

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        if method is not MigrationMethod.CHECKPOINT:
            raise MoveRefusedError(Refusal.NOT_CONFIGURED, f"pod {pod.key}: simulated nodes know no {method}")
        source = self._get(pod.namespace, pod.name)
        if source is None or source["metadata"]["uid"] != pod.uid:
            raise NotFoundError(f"pod {pod.key} is gone")
        if source["spec"].get("nodeName") == target:
            return
        _check_movable(source, pod.key)
        node = self._live.node(target)
        if node is None:
            raise NotFoundError(f"node {target} is gone")
        if not node.is_ready or node.is_unschedulable:
            raise MoveRefusedError(Refusal.TARGET_NOT_READY, f"node {target} takes no pods")
        size = pod.requests.memory_bytes
        copy_s = size / self._bandwidth if self._bandwidth is not None else 0.0
        twin = twin_of(source, target, self._clock(), memory_bytes=size, copy_s=copy_s)
        with suppress(ConflictError):  # begun already
            self._api.post(f"/api/v1/namespaces/{part(pod.namespace)}/pods", twin)
        self._reached("migrate.twin-created")
        with self._lock:
            origin = twins.origin_of(twin)
            assert origin is not None  # made a moment ago
            self._moves[pod.key] = _record(twin, origin)

    def moving(self) -> Sequence[Move]:
        with self._lock:
            return tuple(each.move for each in self._moves.values())

    def records(self) -> Sequence[MigrationRecord]:
        with self._lock:
            return (*self._moves.values(), *self._ended)

    # Taking moves further.

    def run(self) -> None:
        """Finish half a switch first: a Job without its pod makes another, for which a machine would be bought."""
        self._looking.begin(self.advance)

    def close(self) -> None:
        self._looking.close()

    def _rest(self) -> None:
        """For a tick; longer while nothing moves, but no longer than until a move is begun."""
        began = time.monotonic()
        while not self._closing.wait(TICK_S) and not self._moves and time.monotonic() - began < RECALL_S:
            pass

    def advance(self) -> None:
        """Take every move as far as it can go now; those of an earlier process too."""
        now = self._clock()
        with self._lock:
            before = set(self._moves)
        found = msgspec.json.decode(self._api.get("/api/v1/pods", {"labelSelector": f"{TWIN_OF},!{MOVING}"}))
        under_way = set()
        for twin in found["items"]:
            origin = twins.origin_of(twin)
            if origin is None:
                self._delete(twin, "it is a twin of nobody knows which pod")
                continue
            key = f"{twin['metadata']['namespace']}/{origin.name}"
            with self._lock:
                if key not in self._moves:  # another daemon began it
                    self._moves[key] = _record(twin, origin)
            if not self._step(twin, origin, key):
                under_way.add(key)
        with self._lock:
            for key in before - under_way:  # not those that `start` has begun meanwhile
                self._advance(key, MigrationState.ROLLED_BACK, now, reason=Failure.TARGET_LOST.value, detail=GONE)
                self._over(key)

    def _step(self, twin: Json, origin: Origin, key: str) -> bool:
        """Take one move further; True: it is over."""
        space = twin["metadata"]["namespace"]
        source = self._get(space, origin.name)
        if source is not None and source["metadata"]["uid"] != origin.uid:
            source = None
        if twins.is_switched(twin):
            return self._finish(twin, source, origin, key)
        if twin["metadata"].get("deletionTimestamp"):
            return False
        if source is None or (twins.has_ended(source) and not twins.is_switched(source)):
            return self._roll_back(twin, key, Failure.SOURCE_ENDED, "its source ended or went")
        if twins.has_ended(twin) or self._live.node(twin["spec"]["nodeName"]) is None:
            return self._roll_back(twin, key, Failure.TARGET_LOST, "its node went, or it failed")
        now = self._clock()
        if not runs(twin) or (now < origin.started_at + origin.copy_s and not twins.is_switched(source)):
            return False
        self._advance(key, MigrationState.TRANSFERRED, origin.started_at + origin.copy_s)
        self._advance(key, MigrationState.RESTORED, now)
        self._reached("migrate.twin-running")
        self._switch(twin, source, origin)
        self._advance(key, MigrationState.SWITCHED, self._clock())
        return self._finish(twin, source, origin, key)

    def _advance(self, key: str, state: MigrationState, at: float, **changes: object) -> None:
        """Note how far a move has come. One that an earlier process brought that far is told as it is found."""
        with self._lock:
            move = self._moves.get(key)
            if move is not None and state in TRANSITIONS[move.state]:
                self._moves[key] = move.advanced(state, at, **changes)

    def _over(self, key: str) -> None:
        with self._lock:
            move = self._moves.pop(key, None)
            if move is not None and move.is_over:
                self._ended.append(move)

    def _switch(self, twin: Json, source: Json, origin: Origin) -> None:
        """The two patches between which the controller sees no pod at all: nothing else may come between them."""
        if not twins.is_switched(source):
            self._api.patch(_path(source), twins.orphaning(origin))
            self._reached("migrate.orphaned")
        self._patch(twin, twins.adoption(origin), origin)
        self._reached("migrate.adopted")

    def _finish(self, twin: Json, source: Json | None, origin: Origin, key: str) -> bool:
        if source is not None:
            self._remove(source)
            self._reached("migrate.deleted")
        for state in (MigrationState.RESTORED, MigrationState.SWITCHED, MigrationState.DONE):
            self._advance(key, state, self._clock())
        with self._lock:
            record = self._moves.get(key)
        self._patch(twin, unmarking(record), origin)
        self._over(key)
        return True

    def _patch(self, twin: Json, patch: Json, origin: Origin) -> None:
        self._api.patch(_path(twin), ending_as_meant(patch, twin, origin, self._clock()))

    def _roll_back(self, twin: Json, key: str, failure: Failure, why: str) -> bool:
        self._delete(twin, why)
        self._advance(key, MigrationState.ROLLED_BACK, self._clock(), reason=failure.value, detail=why)
        self._over(key)
        return True

    def _delete(self, twin: Json, why: str) -> bool:
        """The source was never touched, or is no more."""
        log.info("move rolled back", twin=twin["metadata"]["name"], why=why)
        self._remove(twin)
        return True

    def _remove(self, pod: Json) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        try:
            self._api.delete(_path(pod), body)
        except NotFoundError:
            return

    def _get(self, namespace: str, name: str) -> Json | None:
        try:
            found: Json = msgspec.json.decode(self._api.get(_pod_path(namespace, name)))
        except NotFoundError:
            return None
        return found


def _check_movable(source: Json, key: str) -> None:
    meta, spec = source["metadata"], source["spec"]
    if meta.get("deletionTimestamp") or not spec.get("nodeName") or not runs(source):
        raise MoveRefusedError(Refusal.NOT_RUNNING, f"pod {key} does not run, or not for long")
    owners = meta.get("ownerReferences") or ()
    if any(kind_and_group(owner["kind"], owner.get("apiVersion", "")) == "StatefulSet" for owner in owners):
        raise MoveRefusedError(Refusal.KEEPS_ITS_NAME, f"pod {key} must keep its name, which a twin cannot have")


def _record(twin: Json, origin: Origin) -> MigrationRecord:
    """A move as its twin tells of it. There is no archive: it is Checkpointed as soon as it has begun."""
    began = origin.started_at
    return MigrationRecord(
        id=twin["metadata"]["name"],
        pod=f"{twin['metadata']['namespace']}/{origin.name}",
        uid=origin.uid,
        source=origin.node,
        target=twin["spec"]["nodeName"],
        method=MigrationMethod.CHECKPOINT,
        state=MigrationState.CHECKPOINTED,
        started_at=began,
        reached={MigrationState.PREPARED.value: began, MigrationState.CHECKPOINTED.value: began},
        dumped_at=began,
        twin=twin["metadata"]["name"],
        archive_bytes=origin.memory_bytes,
        memory_bytes=origin.memory_bytes,
    )


def _path(pod: Json) -> str:
    return _pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{part(namespace)}/pods/{part(name)}"
