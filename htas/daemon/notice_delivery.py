"""Notices on their way: each receiver has a queue on disk and a thread, so that nobody who is away holds up a cycle.

At least once: a notice is written down before it is sent, and goes when the receiver has acknowledged it. One that
cannot be delivered for a day is given up. A receiver is sent a few at once, and then one every ten seconds; what waits
beyond the queue's length goes, the oldest first, and is counted.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread

import msgspec
import structlog

from htas.model.notices import Notice, Occasion
from htas.ports import HTASError, NoticePort, TransientError

log = structlog.get_logger()

MOST_WAITING = 100
GIVEN_UP_S = 86_400.0
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
BURST = 5
APART_S = 10.0
"""Slack takes one a second; a person reads fewer."""
ENDING_S = 5.0
"""How long a daemon that ends waits for what is being sent."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody who is told, of what, and where what waits for them is kept (None: in memory alone)."""

    name: str
    port: NoticePort
    on: frozenset[Occasion]
    spool: Path | None = None


class QueuedNotice(msgspec.Struct, frozen=True):
    """`since` is the wall's time, by which it is given up; a notice's own is the cycles', and in a sandbox another."""

    notice: Notice
    since: float


class NoticeQueue:
    """A queue that outlives the process where it has a file. What cannot be written is in memory, and told once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: deque[QueuedNotice] = deque(self._read())
        self._complained = False

    def __len__(self) -> int:
        return len(self._kept)

    def first(self) -> Notice:
        return self._kept[0].notice

    def since(self, notice: Notice) -> float:
        """When it was put here; infinite where it has gone."""
        return next((each.since for each in self._kept if each.notice == notice), math.inf)

    def put(self, notice: Notice, now: float) -> int:
        """Add one; returns how many went to make room."""
        self._kept.append(QueuedNotice(notice, now))
        gone = 0
        while len(self._kept) > MOST_WAITING:
            self._kept.popleft()
            gone += 1
        self._write()
        return gone

    def remove(self, notice: Notice) -> None:
        """It may have gone already, to make room."""
        for each in self._kept:
            if each.notice == notice:
                self._kept.remove(each)
                self._write()
                break

    def _read(self) -> Sequence[QueuedNotice]:
        if self._path is None:
            return ()
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=tuple[QueuedNotice, ...])[-MOST_WAITING:]
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("queued notices cannot be read, and are lost", error=str(error))
            return ()

    def _write(self) -> None:
        if self._path is None:
            return
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            beside.write_bytes(msgspec.json.encode(tuple(self._kept)))
            beside.replace(self._path)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("queued notices cannot be written down", error=os.strerror(error.errno or 0))
            self._complained = True


@dataclass(slots=True)
class Pace:
    """When the next may be sent: after a failure twice as long as before, and never more than a burst at once."""

    clock: Callable[[], float]
    failures: int = 0
    not_before: float = 0.0
    _sent: deque[float] = field(default_factory=lambda: deque(maxlen=BURST))

    def wait_s(self) -> float:
        now = self.clock()
        spaced = self._sent[0] + BURST * APART_S if len(self._sent) == BURST else now
        return max(0.0, self.not_before - now, spaced - now)

    def sent(self) -> None:
        self.failures, self.not_before = 0, 0.0
        self._sent.append(self.clock())

    def failed(self, retry_after_s: float | None) -> None:
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**self.failures)
        self.failures += 1
        self.not_before = self.clock() + max(wait_s, retry_after_s or 0.0)


class ReceiverQueue:
    """One receiver's queue and thread."""

    def __init__(
        self,
        receiver: Receiver,
        told: Callable[[str], None],
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.receiver = receiver
        self._told = told
        self._now = now
        self._waiting = NoticeQueue(receiver.spool)
        self._pace = Pace(clock)
        self._changed = Condition()
        self._is_closing = False
        self._is_left = False
        """It hangs in a call after its end: whoever follows has the file now, and sends that notice once more."""
        self._thread = Thread(target=self._run, name=f"notices {receiver.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, notice: Notice) -> None:
        with self._changed:
            for _ in range(self._waiting.put(notice, self._now())):
                self._told("dropped")
            self._changed.notify()

    def close(self) -> None:
        """What is being sent is waited for; what waits is on disk."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(ENDING_S)
        with self._changed:
            self._is_left = self._thread.is_alive()

    def _run(self) -> None:
        while (notice := self._next()) is not None:
            self.deliver(notice)

    def _next(self) -> Notice | None:
        """The notice to send now; waits for it. None: it is over."""
        with self._changed:
            while not self._is_closing:
                if not len(self._waiting):
                    self._changed.wait()
                elif (wait_s := self._pace.wait_s()) > 0:
                    self._changed.wait(wait_s)
                else:
                    return self._waiting.first()
            return None

    def deliver(self, notice: Notice) -> None:
        """Send one, and forget it where that went well or never will."""
        name, is_over = self.receiver.name, True
        try:
            self.receiver.port.send(notice)
            self._pace.sent()
            self._told("sent")
        except TransientError as error:
            self._pace.failed(error.retry_after_s)
            with self._changed:
                is_over = self._now() - self._waiting.since(notice) > GIVEN_UP_S
            log.warning("a notice is not delivered yet", receiver=name, title=notice.title, error=str(error))
            if is_over:
                self._told("given-up")
        except HTASError as error:
            self._pace.sent()
            self._told("refused")
            log.warning("a notice is refused, and given up", receiver=name, title=notice.title, error=str(error))
        except Exception:  # a defect of ours: the thread goes on, and the notice is not tried for ever
            self._pace.failed(None)
            self._told("refused")
            log.exception("a notice failed on a defect of htas", receiver=name)
        with self._changed:
            if is_over and not self._is_left:
                self._waiting.remove(notice)


class Notifier:
    """Tells every receiver what they asked for. `tell` returns at once."""

    def __init__(self, receivers: Iterable[Receiver], told: Callable[[str], None] = lambda result: None) -> None:
        self._told = told
        self._desks = [ReceiverQueue(receiver, told) for receiver in receivers]

    def start(self) -> None:
        for desk in self._desks:
            desk.start()

    def tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            log.info("notice", occasion=notice.occasion.value, title=notice.title, text=notice.text, times=notice.times)
            for desk in self._desks:
                if notice.occasion in desk.receiver.on:
                    desk.put(notice)

    def adopt(self, receivers: Iterable[Receiver]) -> None:
        """Others from now on; what waits for one of the same name goes on waiting, by its file."""
        old, self._desks = self._desks, []
        for desk in old:
            desk.close()
        self._desks = [ReceiverQueue(receiver, self._told) for receiver in receivers]
        self.start()

    def close(self) -> None:
        for desk in self._desks:
            desk.close()
