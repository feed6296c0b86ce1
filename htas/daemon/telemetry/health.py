"""Whether the daemon does its work: judged by its last success, not by its last attempt."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic

from htas.model.policy import Cycles

PATIENCE_S = 600.0
"""Without a success for longer, a restart may help (Cluster Autoscaler's max-inactivity): an outage of the API server
of a few minutes is no reason to lose a warm cache."""
CYCLES = 3
"""With cycles longer than that, this many of them may pass."""


class Health:
    """Told of successes and failures from any thread; asked by the probes."""

    def __init__(self, cycles: Cycles, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._patience_s = patience_s(cycles)
        self._succeeded_at = clock()
        self._what = "start"
        self._why = ""
        self._is_synced = False
        self.remark: Callable[[], str] = str
        """What else is worth saying though the daemon works; empty: nothing."""

    def succeeded(self, what: str) -> None:
        """Something that shows the daemon works: a cycle, or a stand-by's look at the lease."""
        with self._lock:
            self._succeeded_at, self._what, self._why = self._clock(), what, ""

    def failed(self, why: str) -> None:
        with self._lock:
            self._why = why

    def synced(self) -> None:
        """Every kind has been listed."""
        with self._lock:
            self._is_synced = True

    def adopt(self, cycles: Cycles) -> None:
        with self._lock:
            self._patience_s = patience_s(cycles)

    def complaint(self) -> str | None:
        """Why the daemon should be started again; None: it works."""
        with self._lock:
            ago_s = self._clock() - self._succeeded_at
            if ago_s < self._patience_s:
                return None
            why = f": {self._why}" if self._why else ""
            return f"the last success ({self._what}) was {ago_s:.0f} s ago{why}"

    def not_ready(self) -> str | None:
        """Why it cannot act or take over yet; None: it can."""
        with self._lock:
            return None if self._is_synced else f"not synced yet{f': {self._why}' if self._why else ''}"


def patience_s(cycles: Cycles) -> float:
    return max(PATIENCE_S, CYCLES * max(cycles.scheduling_s, cycles.autoscaling_s, cycles.cleaning_s))
