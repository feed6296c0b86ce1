"""A client-side rate limit, so that HTAS never crowds others out of the API server."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic, sleep


class RateLimit:
    """A token bucket: `burst` calls at once, then `per_second` of them. Safe from several threads."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._pause = pause
        self._tokens = float(burst)
        self._at = clock()
        self._lock = Lock()

    def wait(self) -> None:
        """Take a token, after the wait it costs. Callers are served in the order they came."""
        with self._lock:
            self._refill()
            self._tokens -= 1.0
            debt = -self._tokens
        if debt > 0:
            self._pause(debt / self._per_second)

    def try_take(self) -> bool:
        """Take a token if there is one."""
        with self._lock:
            self._refill()
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._per_second)
        self._at = now
