"""The virtual clock, real time that drives it, and the queue of what happens when."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count


class VirtualClock:
    """Time that moves only when it is told to. `speed` is the pace at which somebody moves it on by real time."""

    def __init__(self, start: float) -> None:
        self._now = start
        self.speed = 1.0

    def now(self) -> float:
        return self._now

    def set(self, instant: float) -> None:
        self._now = max(self._now, instant)


class PacedClock:
    """Time that passes by itself: from `start` on, `speed` seconds of it in each real second."""

    def __init__(self, start: float, speed: float, real: Callable[[], float] = time.monotonic) -> None:
        self._start = start
        self.speed = speed
        self._real = real
        self._began = real()

    def now(self) -> float:
        return self._start + (self._real() - self._began) * self.speed


class EventQueue:
    """What will happen, in order of time; of equal times, in the order in which it was arranged."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()

    def after(self, delay_s: float, happen: Callable[[], None]) -> None:
        self.at(self._clock.now() + delay_s, happen)

    def at(self, instant: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (instant, next(self._sequence), happen))

    def next_at(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def play_until(self, instant: float) -> None:
        """Let everything happen that is due by an instant; the clock ends there."""
        while self._heap and self._heap[0][0] <= instant:
            due, _, happen = heapq.heappop(self._heap)
            self._clock.set(due)
            happen()
        self._clock.set(instant)
