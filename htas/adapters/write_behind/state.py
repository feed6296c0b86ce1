"""Whether the remote store answers, as people are told."""

from __future__ import annotations

from enum import StrEnum
from threading import Lock
from time import monotonic, time

import msgspec
import structlog

log = structlog.get_logger()


class Lane(StrEnum):
    """What is shipped in one order. The two do not wait for each other."""

    JOURNAL = "journal"
    """Claims and drains, and with them what is as small: bills and what was learned."""
    HISTORY = "history"
    """Profile rows, runs, cycles."""


class StoreState(msgspec.Struct, frozen=True):
    """How the remote store fares.

    `since` is when it went away (seconds since the epoch; 0: it is there). `dropped` counts entries that will never be
    shipped: those beyond the bound on disk, and those that the store refused for good.
    """

    is_away: bool = False
    is_behind: bool = False
    """It answers, and has not been told everything yet that was written while it was away."""
    since: float = 0.0
    reason: str = ""
    waiting_entries: int = 0
    waiting_bytes: int = 0
    dropped: int = 0


class Availability:
    """Told by each lane how its calls go; says once in the log when the store went away, and when it caught up."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reasons: dict[Lane, str] = {}
        self._behind: set[Lane] = set()
        self._since = 0.0
        self._back_at: float | None = None
        self._shipped = 0

    def failed(self, lane: Lane, reason: str) -> None:
        """A call of this lane was not answered, or refused; until it is `worked` the store is away."""
        with self._lock:
            if not self._reasons:
                self._since = time()
                log.warning("the store is away; htas goes on, and ships what is queued when it is back", reason=reason)
            self._reasons[lane] = reason
            self._behind.add(lane)
            self._back_at = None

    def worked(self, lane: Lane, entries: int) -> None:
        """A call of this lane was answered; so many entries have been acknowledged."""
        with self._lock:
            self._reasons.pop(lane, None)
            if self._behind:
                self._shipped += entries
            if self._behind and not self._reasons and self._back_at is None:
                self._back_at = monotonic()

    def emptied(self, lane: Lane) -> None:
        """Nothing of this lane waits."""
        with self._lock:
            if lane not in self._behind or lane in self._reasons:
                return
            self._behind.discard(lane)
            if self._behind or self._back_at is None:
                return
            took_s = round(monotonic() - self._back_at, 1)
            log.info("the store is back and has caught up", entries=self._shipped, seconds=took_s)
            self._shipped, self._back_at = 0, None

    def is_away(self, lane: Lane | None = None) -> bool:
        """Whether the last call failed: of this lane, or of any."""
        with self._lock:
            return bool(self._reasons) if lane is None else lane in self._reasons

    def is_behind(self, lane: Lane) -> bool:
        """Whether something waits in this lane that was written while the store was away."""
        with self._lock:
            return lane in self._behind

    def state(self, entries: int, waiting_bytes: int, dropped: int) -> StoreState:
        with self._lock:
            is_away = bool(self._reasons)
            return StoreState(
                is_away=is_away,
                is_behind=bool(self._behind),
                since=self._since if is_away else 0.0,
                reason=next(iter(self._reasons.values()), ""),
                waiting_entries=entries,
                waiting_bytes=waiting_bytes,
                dropped=dropped,
            )
