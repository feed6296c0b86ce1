"""What is there of a move at this moment: its source, its twin and how that is doing, and their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htas.adapters.migration.documents import (
    Json,
    is_ending,
    is_ready,
    is_twin_of,
    stands_for,
    starts_afresh,
    statuses,
    twin_name_of,
)
from htas.adapters.migration.failures import StepFailedError, shortened
from htas.adapters.migration.journal import TakenOverError
from htas.adapters.migration.objects import Objects
from htas.adapters.migration.refusals import check_pod, unready
from htas.model.migrations import Failure, MigrationRecord, MigrationSettings, Refusal
from htas.ports import MoveRefusedError


class PresentObjects:
    """Looks anew each time it is asked; raises what the API server answers."""

    def __init__(self, objects: Objects, settings: MigrationSettings) -> None:
        self._objects = objects
        self._settings = settings

    def source_or_none(self, record: MigrationRecord) -> Json | None:
        return source_of(self._objects, record)

    def running_source(self, record: MigrationRecord) -> Json:
        found = self.source_or_none(record)
        if found is None or is_ending(found):
            raise StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)
        return found

    def movable_source(self, record: MigrationRecord) -> Json:
        """Looked at once more before a twin is made of it: somebody may have changed it, or written its journal."""
        source = self.running_source(record)
        try:
            check_pod(source, self._settings, record.method)
        except MoveRefusedError as error:
            is_final = error.reason is not Refusal.NOT_RUNNING
            raise StepFailedError(Failure.REFUSED, str(error), is_final=is_final) from error
        return source

    def twin(self, record: MigrationRecord) -> Json | None:
        """The twin of the present attempt, also where the journal does not know of it yet."""
        found = self._objects.pod(record.pod.partition("/")[0], twin_name_of(record))
        return found if found is not None and is_twin_of(found, record) else None

    def twin_of_the_move(self, record: MigrationRecord) -> Json | None:
        """Only such a twin may be deleted. Raises TakenOverError for one that is a pod like any other by now."""
        twin = self.twin(record)
        if twin is not None and not stands_for(twin, record):
            raise TakenOverError(f"pod {twin['metadata']['name']} is no twin any more")
        return twin

    def check_source_node(self, record: MigrationRecord, *, may_be_gone: bool = False) -> None:
        """A switch may go on without the node, when the twin is all that is left; not while nobody knows."""
        node = self._objects.node(record.source)
        if node is None and not may_be_gone:
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is gone", is_final=True)
        if node is not None and not is_ready(node):
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is not Ready")

    def check_target(self, record: MigrationRecord, *, may_be_unready: bool = False) -> None:
        """A node that is not Ready may be so again before a deadline; one that is gone does not come back."""
        node = self._objects.node(record.target)
        if node is None:
            raise StepFailedError(Failure.TARGET_LOST, f"node {record.target} is gone", is_final=True)
        if not may_be_unready and (why := unready(node)):
            raise StepFailedError(Failure.TARGET_LOST, why)


# How a twin is doing, by what the kubelet says of its containers; one that was started afresh, by its Ready condition.
#
# Never by its phase: that says Running also where every restore has failed and is tried again.

WAITING_WELL = frozenset({"", "ContainerCreating", "PodInitializing"})


def source_of(objects: Objects, record: MigrationRecord) -> Json | None:
    """The pod that is moved, unless it is gone; another one may bear its name by now."""
    namespace, _, name = record.pod.partition("/")
    found = objects.pod(namespace, name)
    return found if found is not None and found["metadata"]["uid"] == record.uid else None


def has_come_up(record: MigrationRecord, twin: Json, source: Json) -> bool:
    """Whether a twin can take its source's place; raises StepFailedError where that will not happen any more."""
    return _is_started(twin) if starts_afresh(record) else is_restored(twin, source)


def late(record: MigrationRecord, twin: Json, within_s: float) -> str:
    """What is told of a twin that was given enough time: of a fresh copy, what its containers wait for, too."""
    if not starts_afresh(record):
        return f"did not run within {within_s:.0f} s"
    told = twin.get("status", {})
    said = [*(told.get("initContainerStatuses") or ()), *(told.get("containerStatuses") or ())]
    waiting = ((each["name"], (each.get("state") or {}).get("waiting")) for each in said)
    why = "".join(f"; {name}: {_told(state)}" for name, state in waiting if state)
    return shortened(f"was not Ready within {within_s:.0f} s{why}")


def _is_started(twin: Json) -> bool:
    """A container that ends or waits is started again by its kubelet, as any pod's is: there is a deadline for that."""
    told = twin.get("status", {})
    if told.get("phase") in ("Failed", "Succeeded"):
        what = f"it ended as {told['phase']} ({told.get('reason', '')}: {told.get('message', '')})"
        raise StepFailedError(Failure.RESTORE_FAILED, shortened(what))
    if twin["metadata"].get("deletionTimestamp"):
        raise StepFailedError(Failure.RESTORE_FAILED, "the new pod was deleted")
    return is_ready(twin)


def is_restored(twin: Json, source: Json) -> bool:
    """Whether every container runs, or ran on to its end, and the twin is as ready as its source is.

    Raises StepFailedError where that will not happen any more.
    """
    told = twin.get("status", {})
    if told.get("phase") == "Failed" and not told.get("containerStatuses"):
        raise StepFailedError(Failure.RESTORE_FAILED, shortened(f"{told.get('reason')}: {told.get('message')}"))
    if twin["metadata"].get("deletionTimestamp"):
        raise StepFailedError(Failure.RESTORE_FAILED, "the restored pod was deleted")
    runs = [_runs(status) for status in statuses(twin)]
    return all(runs) and (is_ready(twin) or not is_ready(source) or told.get("phase") == "Succeeded")


def _runs(status: Mapping[str, Any]) -> bool:
    state: Mapping[str, Any] = status.get("state") or {}
    if "terminated" in state:
        if state["terminated"].get("exitCode") == 0:
            return True  # it was near its end
        raise StepFailedError(Failure.RESTORE_FAILED, _told(state["terminated"]))
    waiting = state.get("waiting") or {}
    if waiting.get("reason", "") not in WAITING_WELL:
        raise StepFailedError(Failure.RESTORE_FAILED, _told(waiting))
    return "running" in state


def _told(state: Mapping[str, Any]) -> str:
    return shortened(f"{state.get('reason', 'ended')}: {state.get('message') or state.get('exitCode', '')}")
