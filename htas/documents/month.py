"""The month of an instant: what it has cost so far, and what all of it will."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from htas.model.billing import Billing
from htas.model.record import Bill
from htas.profiler import accounts
from htas.profiler.accounts import Window

DAY_S = 86_400.0


class Month(msgspec.Struct, frozen=True):
    """Amounts in price × billed seconds, as accounts add up; `mean` is the price an hour of the last day (or of as long
    as there are bills), in billionths.
    """

    name: str
    so_far: int
    mean: float
    left_s: float

    @property
    def forecast(self) -> int:
        """What is spent, and the rest of the month at the mean of the last day."""
        return self.so_far + round(self.mean * self.left_s)


def window_of(now: float) -> Window:
    """The month (UTC) of an instant."""
    first = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return Window(first.timestamp(), following.timestamp())


def looked_at(now: float) -> float:
    """Since when bills matter: the month, and the last day where that began before it."""
    return min(window_of(now).since, now - DAY_S)


def month_of(bills: Iterable[Bill], billing: Billing, now: float) -> Month:
    """Of bills that were open at `looked_at(now)` or later."""
    known, window = list(bills), window_of(now)
    begun = min((bill.started_at for bill in known), default=now)
    last = Window(max(now - DAY_S, begun), now)
    lasted = last.until - last.since
    return Month(
        name=datetime.fromtimestamp(window.since, UTC).strftime("%Y-%m"),
        so_far=accounts.total(known, billing, now, window),
        mean=accounts.total(known, billing, now, last) / lasted if lasted > 0 else 0.0,
        left_s=max(0.0, window.until - now),
    )
