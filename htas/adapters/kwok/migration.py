"""MigrationPort on simulated nodes: a moved pod keeps its progress, as a checkpoint would keep it.

The source runs on until its twin runs on the target; then the twin takes the source's place with its controller, and
the source is deleted. What is under way is written on the twin alone, so that any later process goes on from there:

    twin created → running → source orphaned → twin adopted → source deleted → mark removed

Orphaned before adopted: a Job that sees two active pods may remove the younger one, which is the twin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, RLock, Thread

import msgspec
import structlog

from htas.adapters.kubernetes.api import ApiServer, part
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kwok import twins
from htas.adapters.kwok.twins import Json, Origin
from htas.model.pods import TWIN_OF, Pod
from htas.model.snapshot import Move
from htas.ports import ConflictError, HTASError, NotFoundError

log = structlog.get_logger()

TICK_S = 0.2
"""Between looks at the moves under way."""
RECALL_S = 10.0
"""Between looks while none is: another daemon's may have been left behind."""


class KwokMigration:
    """Implements MigrationPort. `run` takes moves further, `close` ends that: only the daemon that leads does so."""

    def __init__(
        self,
        api: ApiServer,
        live: LiveView,
        *,
        clock: Callable[[], float] = time.time,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._api = api
        self._live = live
        self._clock = clock
        self._reached = reached
        self._lock = RLock()
        self._moves: dict[str, Move] = {}
        self._closing = Event()
        self._thread: Thread | None = None

    # The port.

    def start(self, pod: Pod, target: str) -> None:
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
            raise ConflictError(f"node {target} takes no pods")
        twin = twins.twin_of(source, target, self._clock())
        with suppress(ConflictError):  # begun already
            self._api.post(f"/api/v1/namespaces/{part(pod.namespace)}/pods", twin)
        self._reached("migrate.twin-created")
        with self._lock:
            self._moves[pod.key] = Move(pod.key, source["spec"]["nodeName"], target, "checkpoint", self._clock())

    def moving(self) -> Sequence[Move]:
        with self._lock:
            return tuple(self._moves.values())

    # Taking moves further.

    def run(self) -> None:
        self._thread = Thread(target=self._run, name="kwok moves", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.advance()
            except HTASError as error:
                log.warning("moves cannot be taken further, tried again", error=str(error))
            except Exception:
                log.exception("moves failed on a defect of htas, tried again")
            began = time.monotonic()
            while not self._closing.wait(TICK_S) and not self._moves and time.monotonic() - began < RECALL_S:
                pass

    def advance(self) -> None:
        """Take every move as far as it can go now; those of an earlier process too."""
        with self._lock:
            before = set(self._moves)
        found = msgspec.json.decode(self._api.get("/api/v1/pods", {"labelSelector": TWIN_OF}))
        under_way = set()
        for twin in found["items"]:
            origin = twins.origin_of(twin)
            if origin is None:
                self._delete(twin, "it is a twin of nobody knows which pod")
                continue
            key = f"{twin['metadata']['namespace']}/{origin.name}"
            move = Move(key, origin.node, twin["spec"]["nodeName"], "checkpoint", origin.started_at)
            if not self._step(twin, origin):
                under_way.add(key)
                with self._lock:
                    self._moves[key] = move
        with self._lock:
            for key in before - under_way:  # not those that `start` has begun meanwhile
                self._moves.pop(key, None)

    def _step(self, twin: Json, origin: Origin) -> bool:
        """Take one move further; True: it is over."""
        space = twin["metadata"]["namespace"]
        source = self._get(space, origin.name)
        if source is not None and source["metadata"]["uid"] != origin.uid:
            source = None
        if twins.is_switched(twin):
            return self._finish(twin, source)
        if twin["metadata"].get("deletionTimestamp"):
            return False
        if source is None or (twins.has_ended(source) and not twins.is_switched(source)):
            return self._delete(twin, "its source ended or went")
        if twins.has_ended(twin) or self._live.node(twin["spec"]["nodeName"]) is None:
            return self._delete(twin, "its node went, or it failed")
        if not twins.runs(twin):
            return False
        self._reached("migrate.twin-running")
        self._switch(twin, source, origin)
        return self._finish(twin, source)

    def _switch(self, twin: Json, source: Json, origin: Origin) -> None:
        """The two patches between which the controller sees no pod at all: nothing else may come between them."""
        if not twins.is_switched(source):
            self._api.patch(_path(source), twins.orphaning(origin))
            self._reached("migrate.orphaned")
        self._api.patch(_path(twin), twins.adoption(origin))
        self._reached("migrate.adopted")

    def _finish(self, twin: Json, source: Json | None) -> bool:
        if source is not None:
            self._remove(source)
            self._reached("migrate.deleted")
        self._api.patch(_path(twin), twins.UNMARKING)
        return True

    def _delete(self, twin: Json, why: str) -> bool:
        """Roll a move back: the source was never touched, or is no more."""
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
    if meta.get("deletionTimestamp") or not spec.get("nodeName") or not twins.runs(source):
        raise ConflictError(f"pod {key} does not run, or not for long")
    if any(owner["kind"] == "StatefulSet" for owner in meta.get("ownerReferences") or ()):
        raise ConflictError(f"pod {key} must keep its name, which a twin cannot have")


def _path(pod: Json) -> str:
    return _pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{part(namespace)}/pods/{part(name)}"
