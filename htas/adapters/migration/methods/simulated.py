"""The method checkpoint: on nodes that KWOK plays, a moved pod keeps its progress as a checkpoint would keep it.

Nothing is dumped, but the time passes that copying a checkpoint would take (C ÷ B of T = C ÷ B + K, HTAS paper 5.3).
The twin runs for what was left of its source's run at the dump: what the source does meanwhile, it does again.

KWOK counts a pod's run anew from each change of it: journalled 4 s after it began, and with the same delay as before,
it would run for 4 s longer than it was meant to. So each patch brings the delay up to date (`SimulatedObjects`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.migration.documents import Json, twin_of
from htas.adapters.migration.method import Delivered, Dump, LeavesNothing, StepFailedError
from htas.adapters.migration.objects import Objects
from htas.model.migrations import Failure, MigrationRecord
from htas.model.moves import MigrationMethod
from htas.model.pods import RUNTIME

DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long KWOK lets a pod run, counted from Running or from its last change."""
RUNS = "htas.io/simulated-run"
"""The annotation with how long a simulated pod is to run in all, counted from Running."""
SHORTEST_S = 0.1
"""What is left of a run that should be over."""
_DURATION = re.compile(r"(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s)?(?:([0-9.]+)ms)?")


class Simulated(LeavesNothing):
    """Implements Checkpointing."""

    name = MigrationMethod.CHECKPOINT

    def __init__(
        self,
        objects: Objects,
        *,
        bandwidth_bytes_per_s: float | None = None,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._objects = objects
        self._bandwidth = bandwidth_bytes_per_s
        self._clock = clock
        self._pause = pause

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        return Dump("", self._clock())

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        """Wait until a copy that began with the dump would be there; another daemon's, too."""
        size = record.memory_bytes
        copy_s = size / self._bandwidth if self._bandwidth is not None else 0.0
        left_s = (record.dumped_at or record.started_at) + copy_s - self._clock()
        self._pause(min(max(left_s, 0.0), within_s))
        if left_s > within_s:
            raise StepFailedError(Failure.DEADLINE, f"{size} bytes are not copied within {within_s:.0f} s")
        return Delivered((), size=size)

    def discard(self, record: MigrationRecord) -> None:
        """Nothing: there is no image."""

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        twin = simulated_twin(source, record)
        self._objects.create(twin)
        name: str = twin["metadata"]["name"]
        return name


class SimulatedObjects(Objects):
    """The pods of nodes that KWOK plays: a change of one that runs does not lengthen its run."""

    def __init__(self, api: ApiServer, clock: Callable[[], float] = time.time) -> None:
        super().__init__(api)
        self._clock = clock

    def patch(self, pod: Json, patch: Json) -> Json:
        return super().patch(pod, ending_as_meant(patch, pod, self._clock()))


def simulated_twin(source: Json, record: MigrationRecord) -> Json:
    """The twin's manifest: the source's, to run for what remained of the source's run when it was dumped."""
    twin = twin_of(source, record, [container["image"] for container in source["spec"]["containers"]], "IfNotPresent")
    annotations = twin["metadata"]["annotations"]
    dumped_at = record.dumped_at or record.started_at
    ran_s = max(0.0, dumped_at - _running_since(source, dumped_at))
    for keys, whole_s in (((DELAY, RUNS), _run_of(source)), ((RUNTIME,), seconds(annotations.get(RUNTIME, "")))):
        if whole_s is not None:
            annotations |= dict.fromkeys(keys, f"{max(SHORTEST_S, whole_s - ran_s):.1f}s")
    return twin


def ending_as_meant(patch: Json, pod: Json, now: float) -> Json:
    """A patch to a pod, with what is left of its run if it runs."""
    run_s, since = _run_of(pod), _running_since(pod, now)
    if run_s is None or not _runs(pod):
        return patch
    left_s = max(SHORTEST_S, run_s - max(0.0, now - since))
    meta = patch["metadata"]
    annotations = {**(meta.get("annotations") or {}), DELAY: f"{left_s:.1f}s", RUNS: f"{run_s:.1f}s"}
    return {**patch, "metadata": {**meta, "annotations": annotations}}


def _run_of(pod: Json) -> float | None:
    """How long a pod is to run in all; None: nobody ends it."""
    annotations = pod["metadata"].get("annotations") or {}
    return seconds(annotations.get(RUNS) or annotations.get(DELAY, ""))


def _runs(pod: Json) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return any("running" in (status.get("state") or {}) for status in statuses)


def _running_since(pod: Json, otherwise: float) -> float:
    started = [
        datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()
        for status in pod.get("status", {}).get("containerStatuses") or ()
        if "running" in (status.get("state") or {})
    ]
    return min(started, default=otherwise)


def seconds(text: str) -> float | None:
    """Seconds of a Go duration as KWOK reads it, such as 90s, 1h30m or 2.5s; None for anything else."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    try:
        hours, minutes, rest, millis = (float(each or 0) for each in match.groups())
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + rest + millis / 1000
