"""How long machines were seen to take: to come, and to be gone."""

from __future__ import annotations

from statistics import median

import msgspec

KEPT = 20
"""So many of the newest are remembered: clouds have good days and bad ones."""
GOING_S = 10.0
"""What a machine may take to go, however quick those were that were seen: one that is late is paid for anew."""
TELLING = 5
"""From so many releases on a single slow one is an outlier. One of two hours, of twenty, had every machine that was
empty given back at once, however long it was paid for."""


class MachineTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Seconds that the newest machines took, the newest last.

    `starts`: from the order to a Ready node. `releases`: from the wish to be rid of one until the cloud listed it no
    more.
    """

    starts: tuple[float, ...] = ()
    releases: tuple[float, ...] = ()

    def started(self, seconds: float) -> MachineTimes:
        """With one more machine that came."""
        return msgspec.structs.replace(self, starts=(*self.starts, seconds)[-KEPT:])

    def released(self, seconds: float) -> MachineTimes:
        """With one more machine that went."""
        return msgspec.structs.replace(self, releases=(*self.releases, seconds)[-KEPT:])

    def start_s(self, default_s: float) -> float:
        """What a machine is expected to take: the median; the default until one has come."""
        return median(self.starts) if self.starts else default_s

    def release_s(self, longest_s: float) -> float:
        """What a machine may take to go: as the second slowest of late, or the slowest of fewer than five.

        No longer than `longest_s`, after which its end is asked for again anyway.
        """
        slowest = sorted(self.releases, reverse=True)[len(self.releases) >= TELLING :]
        return max(GOING_S, min(longest_s, slowest[0])) if slowest else GOING_S
