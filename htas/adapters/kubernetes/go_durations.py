"""Durations as Go's time.ParseDuration reads them, which annotations of Cluster Autoscaler are written for."""

from __future__ import annotations

import re

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(_UNITS_S)})", re.ASCII)
_MOST_S = (2**63 - 1) / 1e9
"""A duration is an int64 of nanoseconds: some 292 years."""
_LONGEST = 64
"""Characters of a duration that anybody would write; an annotation may have 256 KiB."""


def go_duration_s(text: str) -> float | None:
    """Seconds of "30s", "1.5h", "1h15m30.918s" or "0"; None for what Go refuses and for a negative duration."""
    text = text[1:] if text.startswith("+") else text
    if text == "0":
        return 0.0
    if not text or len(text) > _LONGEST:
        return None
    seconds, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        seconds += float(part[1]) * _UNITS_S[part[2]]
        at = part.end()
    return seconds if seconds <= _MOST_S else None
