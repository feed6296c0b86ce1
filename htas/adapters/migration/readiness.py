"""How a twin is doing, by what the kubelet says of its containers; one that was started afresh, by its Ready condition.

Never by its phase: that says Running also where every restore has failed and is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htas.adapters.migration.documents import Json, is_ready, starts_afresh, statuses
from htas.adapters.migration.failures import StepFailedError, shortened
from htas.model.migrations import Failure, MigrationRecord

WAITING_WELL = frozenset({"", "ContainerCreating", "PodInitializing"})


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
