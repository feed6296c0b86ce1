"""How a restored pod is doing, by what the kubelet says of its containers.

Never by its phase: that says Running also where every restore has failed and is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htas.adapters.checkpoint.documents import Json, is_ready, statuses
from htas.adapters.checkpoint.failures import StepFailedError, shortened
from htas.model.migrations import Failure

WAITING_WELL = frozenset({"", "ContainerCreating", "PodInitializing"})


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
