"""Waiting for other threads: for a condition and never for a time, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_S = 10.0


def until(look: Callable[[], object], within_s: float = LONGEST_S) -> None:
    """Returns as soon as `look` is true; fails after ten seconds, or as many as told."""
    deadline = time.monotonic() + within_s
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.005)
