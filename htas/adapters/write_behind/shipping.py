"""A thread that ships one lane of the outbox: in order, until each entry is acknowledged, however long that takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Event, Thread
from time import monotonic
from typing import TypeVar

import structlog

from htas.adapters.write_behind.entries import JournalEntry
from htas.adapters.write_behind.outbox import Outbox
from htas.adapters.write_behind.remote import Remote
from htas.adapters.write_behind.state import Availability, Lane
from htas.ports import HTASError, StorePort, TransientError

log = structlog.get_logger()

_T = TypeVar("_T")

HURRIED_S = 0.25
"""Between attempts once the end has come: of its few seconds none is spent on patience."""


@dataclass(frozen=True, slots=True)
class ShippingTiming:
    """Seconds: how long a write of the journal waits for the remote store; the pauses between attempts while it is
    away, doubled from the first to the longest; how long the end may take, and the next process wait for it."""

    call_s: float = 2.0
    first_pause_s: float = 1.0
    longest_pause_s: float = 10.0
    close_s: float = 5.0


class Shipper(ABC):
    """Runs from `start` to `stop`. A call that hangs holds up this lane alone, and nobody who writes to it."""

    def __init__(
        self,
        lane: Lane,
        outbox: Outbox,
        remote: Remote,
        availability: Availability,
        timing: ShippingTiming,
        on_call: Callable[[float], None],
    ) -> None:
        self._lane = lane
        self._outbox = outbox
        self._remote = remote
        self._availability = availability
        self._timing = timing
        self._on_call = on_call
        self._calling_since: float | None = None
        self._wake = Event()
        self._hurry = Event()
        self._stopping = Event()
        self._progress = Condition()
        self._thread = Thread(target=self._run, name=f"store {lane}", daemon=True)

    @abstractmethod
    def _ship(self) -> None:
        """Ship the next entries. Raises what the store raises."""

    def _failed(self, reason: str) -> None:
        self._availability.failed(self._lane, reason)
        self._tell()

    def _shipped(self, entries: Sequence[JournalEntry]) -> None:
        self._outbox.remove(entry.number for entry in entries)
        self._availability.worked(self._lane, len(entries))

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._outbox.waits(self._lane) <= 0

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something waits. A call that has had no answer for as long as the longest pause is told as an outage."""
        since = self._calling_since
        if since is not None and monotonic() - since > self._timing.longest_pause_s:
            self._failed(f"no answer for {monotonic() - since:.0f} s")
        self._wake.set()

    def wait(self, within_s: float, *, for_an_answer: bool = True) -> bool:
        """Whether nothing waits any more, as soon as that is so; False after so long.

        With `for_an_answer` it is False, too, as soon as the store is away.
        """

        def is_settled() -> bool:
            return self.is_idle or (for_an_answer and self._availability.is_away(self._lane))

        with self._progress:
            self._progress.wait_for(is_settled, within_s)
        return self.is_idle

    def hurry(self) -> None:
        """The end is near: pause no longer than a moment."""
        self._hurry.set()

    def end(self) -> None:
        """Begin no call any more."""
        self._stopping.set()
        self._hurry.set()
        self._wake.set()

    def join(self, within_s: float) -> bool:
        """Whether the thread has ended; one whose call hangs has not."""
        if self._thread.ident is not None:
            self._thread.join(within_s)
        return not self._thread.is_alive()

    def _call(self, use: Callable[[StorePort], _T]) -> _T:
        """One call of the remote store, timed; none once the end has come."""
        if self._stopping.is_set():
            raise TransientError("htas ends")
        self._calling_since = began = monotonic()
        try:
            store = self._remote.get()
            return use(store)
        finally:
            self._calling_since = None
            self._on_call(monotonic() - began)

    def _run(self) -> None:
        pause_s = self._timing.first_pause_s
        while not self._stopping.is_set():
            self._wake.clear()
            if self.is_idle:
                self._availability.emptied(self._lane)
                self._tell()
                self._wake.wait()
                continue
            try:
                self._ship()
                pause_s = self._timing.first_pause_s
            except Exception as error:
                if self._stopping.is_set():
                    return  # the local file may be closed by now: what has not been acknowledged is still in it
                if not isinstance(error, HTASError):
                    log.exception("shipping failed on a defect of htas, tried again", lane=self._lane)
                self._failed(str(error) or type(error).__name__)
                self._pause(pause_s)
                pause_s = min(2 * pause_s, self._timing.longest_pause_s)

    def _pause(self, pause_s: float) -> None:
        if not self._hurry.wait(pause_s):
            return
        self._stopping.wait(min(pause_s, HURRIED_S))

    def _tell(self) -> None:
        with self._progress:
            self._progress.notify_all()
