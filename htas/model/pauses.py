"""Pauses that double with each failure: how long one is, and whether it is on."""

from __future__ import annotations

MOST_DOUBLINGS = 20
"""A million times the first pause: a count that grows for ever is no number too large."""


def doubled_s(times: int, first_s: float, longest_s: float) -> float:
    """How long the pause is after so many failures in a row: `first_s` after the first, then twice as long each."""
    return min(first_s * 2.0 ** min(max(times - 1, 0), MOST_DOUBLINGS), longest_s)


def is_on(until: float, length_s: float, now: float) -> bool:
    """Whether a pause has begun and is not over: one that would begin later was set by a clock put back since."""
    return now < until <= now + length_s
