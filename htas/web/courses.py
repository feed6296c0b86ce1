"""Both courses over time, as pages draw them: what machines cost an hour, really and with HTAS."""

from __future__ import annotations

from threading import Lock

from htas.documents.recommendation import CoursePoint
from htas.model.money import NANOS
from htas.model.savings import Savings

MOST = 288
"""Points at most; then every second one is left out, and the next come half as often."""
FIRST_APART_S = 60.0


class Courses:
    """Told of each cycle by the thread that runs them, read by others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._points: list[CoursePoint] = []
        self._apart_s = FIRST_APART_S

    def observe(self, savings: Savings) -> None:
        with self._lock:
            points = self._points
            if points and savings.at - points[-1].at < self._apart_s:
                return
            if len(points) >= MOST:
                del points[1::2]
                self._apart_s *= 2
            points.append(
                CoursePoint(savings.at, savings.real.nanos_per_hour / NANOS, savings.with_htas.nanos_per_hour / NANOS)
            )

    def points(self) -> list[CoursePoint]:
        """Oldest first."""
        with self._lock:
            return list(self._points)
