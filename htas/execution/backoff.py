"""Backing off flavours that failed.

The wait doubles with each failure that follows the end of the last wait (20 s to 30 min by default; Cluster Autoscaler
has 5 to 30 per node group); failures within a wait do not lengthen it. A machine that becomes Ready ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from htas.model.policy import Timeouts
from htas.model.snapshot import Backoff


@dataclass(slots=True)
class Backoffs:
    """Current waits by flavour and zone; flavour None: by what ails every flavour."""

    timeouts: Timeouts
    _waits: dict[tuple[str | None, str | None], tuple[Backoff, float]] = field(default_factory=dict)

    def failed(self, flavour: str | None, zone: str | None, reason: str, now: float) -> None:
        known = self._waits.get((flavour, zone))
        if known is not None and _is_on(*known, now):
            return
        length = self.timeouts.backoff_initial_s
        if known is not None:
            length = min(2 * known[1], self.timeouts.backoff_max_s)
        self._waits[flavour, zone] = Backoff(flavour, zone, now + length, reason), length

    def worked(self, flavour: str, zone: str | None) -> None:
        for key in ((flavour, zone), (None, None)):
            self._waits.pop(key, None)

    def current(self, now: float) -> tuple[Backoff, ...]:
        return tuple(wait[0] for wait in tuple(self._waits.values()) if _is_on(*wait, now))


def _is_on(backoff: Backoff, length_s: float, now: float) -> bool:
    """Whether the wait has begun and is not over: one that would begin later was set by a clock put back since."""
    return now < backoff.until <= now + length_s
