"""Backing off what failed: a call, a bind, a flavour.

The wait of a flavour doubles with each failure that follows the end of the last wait (20 s to 30 min by default;
Cluster Autoscaler has 5 to 30 per node group); failures within a wait do not lengthen it. A machine that becomes Ready
ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from htas.model.pauses import is_on
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
        if known is not None and is_on(known[0].until, known[1], now):
            return
        length = self.timeouts.backoff_initial_s
        if known is not None:
            length = min(2 * known[1], self.timeouts.backoff_max_s)
        self._waits[flavour, zone] = Backoff(flavour, zone, now + length, reason), length

    def worked(self, flavour: str, zone: str | None) -> None:
        for key in ((flavour, zone), (None, None)):
            self._waits.pop(key, None)

    def current(self, now: float) -> tuple[Backoff, ...]:
        return tuple(each for each, length_s in tuple(self._waits.values()) if is_on(each.until, length_s, now))
