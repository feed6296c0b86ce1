"""A pod that is being moved in a cluster, from any state on, and the engine that finds it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Semaphore
from typing import Any

import msgspec

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.documents import MOVE, adoption, journalled, origin_of, orphaning, twin_name_of, twin_of
from htas.adapters.migration.engine import MigrationEngine
from htas.adapters.migration.method import Delivered, Dump, Method, StepFailedError
from htas.adapters.migration.objects import Objects, at_once_s
from htas.model.migrations import Deadlines, Failure, MigrationRecord, MigrationSettings, MigrationState
from htas.model.moves import MigrationMethod
from tests.unit.adapters.migration.cluster import Cluster, Json, merge
from tests.waiting import until

ID = "abcdef012345"
KEY = "0123456789abcdef" * 2
IMAGE = f"localhost/htas-checkpoint/main:{ID}-1-{KEY}"
QUICK = Deadlines(checkpoint_s=5.0, transfer_s=5.0, restore_s=5.0, switch_s=5.0)


class Disks:
    """A Method whose archives and images are names on the disks of nodes."""

    name = MigrationMethod.KUBELET_CHECKPOINT

    def __init__(self) -> None:
        self.archives: dict[str, set[str]] = {"a": set(), "b": set()}
        self.images: dict[str, set[str]] = {"a": set(), "b": set()}
        self.unreachable: set[str] = set()
        self.defect: Exception | None = None
        """What a dump meets that nobody foresaw."""
        self.objects: Objects | None = None

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        self._reach(record.source)
        if self.defect is not None:
            raise self.defect
        self.archives[record.source].add(record.pod)
        return Dump(record.pod, time.time())

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        self._reach(record.source)
        self._reach(record.target)
        self.images[record.target].add(record.id)
        return Delivered((IMAGE,), ("d",), 5)

    def discard(self, record: MigrationRecord) -> None:
        self._reach(record.target)
        self.images[record.target].discard(record.id)

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        assert self.objects is not None
        self.objects.create(twin_of(source, record, [IMAGE], "Never"))
        return twin_name_of(record)

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        if not keep_image or not record.needs_image:
            self._reach(record.target)
            self.images[record.target].discard(record.id)
        self.clean_again(record, keep_image=keep_image)

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        self._reach(record.source)
        self.archives[record.source].discard(record.pod)

    def forget(self, node: str, move: str) -> None:
        self.images[node].discard(move)

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        self._reach(node)
        self.images[node] &= set(keep)

    def _reach(self, node: str) -> None:
        if node in self.unreachable:
            raise StepFailedError(Failure.TRANSFER_FAILED, f"{node} did not answer")


class World:
    """Nodes a and b, and the pod team/train on a, that is on its way to b."""

    def __init__(self, owner: str = "Job") -> None:
        self.cluster = Cluster()
        self.disks = Disks()
        for node in ("a", "b"):
            self.cluster.add_node(node)
        self.source = self.cluster.add(a_source(owner))
        if owner == "ReplicaSet":
            wanted = {"replicas": 1, "selector": {"matchLabels": {"app": "train"}}}
            self.cluster.controllers["team", "o"] = {"metadata": {"name": "o", "uid": "u-o"}, "spec": wanted}
        self.method: Callable[[Objects], Method] = self._disks
        self.objects: Callable[[ApiServer], Objects] = Objects

    def left(self, state: MigrationState, *, ago_s: float = 0.0, **changes: Any) -> MigrationRecord:
        """The move as an earlier daemon left it in a state: its journal, and its twin from Restored on."""
        at = time.time() - ago_s
        facts: Json = {
            "id": ID,
            "pod": "team/train",
            "uid": "u-1",
            "source": "a",
            "target": "b",
            "method": "kubelet-checkpoint",
            "started_at": at,
            "reached": {"Prepared": at, state.value: at},
            "dumped_at": at,
            "image": IMAGE,
            "containers": ("main",),
            "image_key": KEY,
            "base_images": ("busybox:1.36",),
        }
        record = MigrationRecord(state=MigrationState.TRANSFERRED, **(facts | changes))
        if state is MigrationState.RESTORED:
            self.cluster.add(twin_of(self.source, record, [IMAGE], "Never"))
            self.disks.images["b"].add(ID)
            record = msgspec.structs.replace(record, twin=twin_name_of(record))
        record = msgspec.structs.replace(record, state=state)
        merge(self.source, journalled(record))
        return record

    def switch_half(self) -> None:
        """The source has been taken from its controller, and the twin not been given to it."""
        given = origin_of(self.twin)
        assert given is not None
        merge(self.source, orphaning(given))
        self.source["metadata"]["annotations"][MOVE] = self.twin["metadata"]["annotations"][MOVE]

    def switch(self, record: MigrationRecord) -> None:
        """The earlier daemon came as far as the twin's adoption."""
        self.switch_half()
        given = origin_of(self.twin)
        assert given is not None
        merge(self.twin, adoption(given))
        merge(self.twin, journalled(record.advanced(MigrationState.SWITCHED, time.time())))

    @property
    def twin(self) -> Json:
        (found,) = [pod for (_, name), pod in self.cluster.pods.items() if name.startswith("train-m")]
        return found

    @property
    def names(self) -> list[str]:
        """Of all pods; the twin's without its digits."""
        return sorted(name.partition("-m")[0] + "-m" * ("-m" in name) for _, name in self.cluster.pods)

    def _disks(self, objects: Objects) -> Method:
        self.disks.objects = objects
        return self.disks

    @contextmanager
    def engine(
        self, at_once: Semaphore | None = None, grace: Callable[[Json], int] = at_once_s, **changes: Any
    ) -> Iterator[MigrationEngine]:
        settings = MigrationSettings(**{"deadlines": QUICK, "attempts": 1, **changes})
        with self.cluster.served() as server:
            self.api = ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None)
            objects = self.objects(self.api)
            engine = MigrationEngine(objects, self.method(objects), settings, at_once=at_once, grace=grace)
            try:
                yield engine
            finally:
                engine.close()

    def carried_on(self, **changes: Any) -> MigrationRecord:
        """What becomes of the move once a daemon has found it."""
        with self.engine(**changes) as engine:
            engine.run()
            return over(engine)


def over(engine: MigrationEngine) -> MigrationRecord:
    """Wait for the only move's end."""
    until(lambda: engine.records() and all(record.is_over for record in engine.records()))
    (record,) = engine.records()
    return record


def is_owned(pod: Json) -> bool:
    """Whether a controller has it, by every mark that counts."""
    meta = pod["metadata"]
    return bool(meta.get("ownerReferences") and meta.get("finalizers") and meta["labels"].get("app"))


def a_source(owner: str = "Job", name: str = "train", namespace: str = "team", uid: str = "u-1") -> Json:
    owners = [{"kind": owner, "name": "o", "uid": "u-o", "controller": True}] if owner else []
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "labels": {"app": "train"},
            "annotations": {},
            "ownerReferences": owners,
            "finalizers": ["batch.kubernetes.io/job-tracking"] if owner == "Job" else [],
        },
        "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "train:1"}]},
    }
