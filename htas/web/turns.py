"""One piece of heavy work at a time, and no more of a processor than a share: cycles run in the same process.

48 what-ifs at once, each with another change, stopped scheduling for 23 s; one after the other they would take it too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from htas.ports import TransientError


class BusyError(TransientError):
    """It is others' turn: nothing is wrong with what was asked, nor with what it is told from."""


class Share:
    """All heavy work together may take `share` of the time, and `saved_s` seconds at once after a rest, one at a time.

    A token bucket (as client-go limits its calls by), filled in seconds of work. Safe from several threads.
    """

    def __init__(self, share: float, saved_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._saved_s = share, saved_s
        self._clock = clock
        self._turn = Lock()
        self._left_s, self._at = saved_s, clock()

    @contextmanager
    def taken(self, what: str, reserve_s: float = 0.0) -> Iterator[None]:
        """Waits for the one that is at it; raises BusyError where no more than a reserve is left for such work."""
        with self._turn:
            began = self._clock()
            self._left_s = min(self._saved_s, self._left_s + (began - self._at) * self._share)
            self._at = began
            if self._left_s <= reserve_s:
                after_s = math.ceil((reserve_s - self._left_s) / self._share) + 1.0
                raise BusyError(f"{what} took long recently; try again in {after_s:.0f} s", after_s)
            try:
                yield
            finally:
                self._left_s -= self._clock() - began


class Turns:
    """One kind of such work: of it `line` others may wait for the one that is at it, so that few threads do.

    It leaves `reserve_s` to other kinds: who plans again each second would have it all, and no page a turn.
    """

    def __init__(self, what: str, share: Share, line: int = 0, reserve_s: float = 0.0) -> None:
        self._what, self._share, self._reserve_s = what, share, reserve_s
        self._places = BoundedSemaphore(1 + line)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises BusyError where others are at it, or were for too long."""
        if not self._places.acquire(blocking=False):
            raise BusyError(f"{self._what} is under way for another user; try again in a moment", 1.0)
        try:
            with self._share.taken(self._what, self._reserve_s):
                yield
        finally:
            self._places.release()
