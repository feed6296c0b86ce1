"""Waiting for other threads: for a condition and never for a time, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_S = 10.0


def until(look: Callable[[], object]) -> None:
    """Returns as soon as `look` is true; fails after ten seconds."""
    deadline = time.monotonic() + LONGEST_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.005)
