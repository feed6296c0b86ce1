"""What waiting for company is worth: less rental for who is bought for together, less what the waiting is worth.

A job alone pays for the whole of a machine, and often for the dearest for its size; whole machines for it and those who
come meanwhile cost each of them less. Of 0.3 cores and 0.9 GiB, 360 s of rental with the start: alone 0.0198 an hour,
two on a machine of 2 GiB 0.0172 each, so that 0.0026 · 360 may be saved. 40 s of its waiting, worth as much as an hour
of its own machine an hour, are 0.0198 · 40: less, so it waits where company is all but sure, and not in a trickle of
such jobs. A job of an hour waits for less likely company, for it would share the machine for longer. Thirty that came
at once, and fill machines by themselves, wait for nobody.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from htas.model.policy import Value
from htas.planning.cluster.classes import PodClass


class Prices(Protocol):
    """Who knows what machines for a class cost (`OwnMachine`): price × billed seconds, inf where none may be bought."""

    def together(self, cls: PodClass, count: int) -> float:
        """Of the cheapest whole machines for so many pods."""
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


def company(prices: Prices, cls: PodClass, value: Value, *, count: int, coming: float, for_s: float) -> Company:
    """Of each of so many pods that would wait for `for_s`, in which so many others are expected.

    Where nothing may be bought nothing is known to be lost: it saves infinitely much by waiting.
    """
    alone, now = prices.together(cls, 1), prices.together(cls, count) / count
    if math.isinf(alone):
        return Company(math.inf, 0.0)
    hour, more = value.waiting_nanos_per_hour, max(1, round(coming))
    worth = alone / prices.held_s(cls) if hour is None else hour
    together = prices.together(cls, count + more) / (count + more)
    saves = max(0.0, now - together) * min(1.0, coming) if together < math.inf else 0.0
    return Company(saves, worth * for_s)
