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


class Turns:
    """Work may take `share` of the time, and `saved_s` seconds at once after a rest; `line` others may wait meanwhile.

    A token bucket (as client-go limits its calls by), filled in seconds of work. Safe from several threads.
    """

    def __init__(
        self, what: str, share: float, saved_s: float, line: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._share, self._saved_s = what, share, saved_s
        self._clock = clock
        self._places = BoundedSemaphore(1 + line)
        self._turn = Lock()
        self._left_s, self._at = saved_s, clock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises TransientError where others are at it, or were for too long."""
        if not self._places.acquire(blocking=False):
            raise TransientError(f"{self._what} is under way for somebody else; ask again in a moment", 1.0)
        try:
            with self._turn:
                began = self._clock()
                self._left_s = min(self._saved_s, self._left_s + (began - self._at) * self._share)
                self._at = began
                if self._left_s <= 0:
                    after_s = math.ceil(-self._left_s / self._share) + 1.0
                    raise TransientError(f"{self._what} took long of late; ask again in {after_s:.0f} s", after_s)
                try:
                    yield
                finally:
                    self._left_s -= self._clock() - began
        finally:
            self._places.release()
