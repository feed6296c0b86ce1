"""Backing off what failed: a call, a bind, a flavour.

The wait of a flavour doubles with each failure that follows the end of the last wait (20 s to 30 min by default;
Cluster Autoscaler has 5 to 30 per node group); failures within a wait do not lengthen it. A machine that becomes Ready
ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from htas.model.policy import Timeouts
from htas.model.snapshot import Backoff


class Pause(NamedTuple):
    """Until when something is not tried again; `length_s` is how long that is in all."""

    until: float
    length_s: float

    def after(self, now: float, first_s: float, longest_s: float) -> Pause:
        """The next one, twice as long, once it has failed again."""
        length_s = min(max(first_s, 2 * self.length_s), longest_s)
        return Pause(now + length_s, length_s)


NO_PAUSE = Pause(0.0, 0.0)


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
