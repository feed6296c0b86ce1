"""What waiting for company is worth: less rental for who is bought for together, less what the waiting is worth.

Alone a job pays for the whole of a machine, and often for the dearest for its size; in company it pays at best for the
share that it uses of the machine that is best for it. The difference is what company may save it. Of 0.3 cores and
0.9 GiB, 360 s of rental with the start: alone 0.0198 an hour, at best 0.45 of 0.0344, so that 0.0043 · 360 may be
saved. 40 s of its waiting, worth as much as an hour of its own machine an hour, are 0.0198 · 40: half of that. So it
waits where company is expected in that time at least every second time, and not in a trickle of such jobs. A job of an
hour waits for less likely company, for it would share the machine for longer.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from htas.model.policy import Value
from htas.planning.cluster.classes import PodClass


class Prices(Protocol):
    """Who knows what machines for a class cost (`OwnMachine`): price × billed seconds, inf where none may be bought."""

    def cheapest(self, cls: PodClass, count: int) -> tuple[float, str]:
        """Of machines for so many pods alone, and their flavour."""
        ...

    def share(self, cls: PodClass) -> float:
        """Of the share that one pod uses of the machine where that costs least."""
        ...

    def held_s(self, cls: PodClass) -> int:
        """The seconds of such a rental."""
        ...


class Company(NamedTuple):
    """What company is expected to save a pod, and what its waiting for that is worth (price × seconds)."""

    saves: float
    waiting: float

    @property
    def pays(self) -> bool:
        return self.saves > self.waiting


def company(prices: Prices, cls: PodClass, value: Value, *, coming: float, for_s: float) -> Company:
    """Of a pod that would wait for `for_s`, in which so many others are expected.

    Where nothing may be bought nothing is known to be lost: it saves infinitely much by waiting.
    """
    alone = prices.cheapest(cls, 1)[0]
    if math.isinf(alone):
        return Company(math.inf, 0.0)
    hour = value.waiting_nanos_per_hour
    worth = alone / prices.held_s(cls) if hour is None else hour
    return Company((alone - prices.share(cls)) * min(1.0, coming), worth * for_s)
