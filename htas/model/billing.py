"""Billing: which seconds of a machine's life are charged, and what they cost. Every bill is worked out here.

A machine is charged by periods of `granularity_s`. They are counted from its start, or are those of the clock
(`Alignment.CLOCK`): by the hour of the clock a machine of 09:40 that goes at 09:57 costs an hour, and two hours if it
goes at 10:03. Counted from its start it costs an hour in both cases.

A price with a cap costs no more than the cap in a calendar month, however many hours that has: at 0.0149 an hour and
10.00 a month, 720 hours of April cost 10.00 and not 10.728. The fee is charged beside the cap.

    bill = Σ over months of  min(cap, (price − fee) × seconds billed in the month) + fee × seconds billed

Amounts are billionths of the currency an hour × seconds: whole numbers, which add up exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec

from htas.model.money import billed_seconds

HOUR_S = 3600
HOURS_A_MONTH = 730
"""As clouds' price lists have it: a twelfth of a year."""


class Alignment(StrEnum):
    """From when billing periods are counted."""

    START = "start"
    """From each machine's start."""
    CLOCK = "clock"
    """From midnight UTC: with a granularity of an hour, the hours of the clock."""


class Cap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most that a calendar month of one machine costs, in billionths of the currency. The fee comes on top."""

    nanos: int
    fee_nanos_per_hour: int = 0


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one machine costs: billionths of the currency an hour, its fee included, up to a cap."""

    nanos_per_hour: int
    cap: Cap | None = None

    @property
    def month_nanos(self) -> int:
        """What one machine costs that is kept for a month of 730 hours."""
        whole = self.nanos_per_hour * HOURS_A_MONTH
        if self.cap is None:
            return whole
        fee = self.cap.fee_nanos_per_hour * HOURS_A_MONTH
        return min(whole, self.cap.nanos + fee)


class Billing(msgspec.Struct, frozen=True):
    """How rental is charged: by whole periods of `granularity_s`, for `minimum_s` at least.

    `time_zone` is that of the months that caps are for.
    """

    granularity_s: int = 60
    minimum_s: int = 60
    alignment: Alignment = Alignment.START
    time_zone: str = "UTC"

    def span(self, start: float, held_s: float) -> tuple[int, int]:
        """The seconds since the epoch that are billed of a machine: the first, and the one after the last."""
        if self.alignment is Alignment.START:
            first = int(start)
            return first, first + billed_seconds(held_s, self.granularity_s, self.minimum_s)
        first = self._period_before(start)
        return first, max(self._period_after(start + max(0.0, held_s)), first + self.minimum_s)

    def seconds(self, start: float, held_s: float) -> int:
        """How many seconds are billed of a machine."""
        first, last = self.span(start, held_s)
        return last - first

    def bill(self, price: Price, start: float, held_s: float) -> int:
        """What a machine costs that has been held for so long since `start`."""
        first, last = self.span(start, held_s)
        return self.cost(price, first, last)

    def cost(self, price: Price, first: int, last: int) -> int:
        """What the billed seconds from `first` to before `last` cost, of a machine that is billed since `first`."""
        cap, billed = price.cap, last - first
        if cap is None:
            return price.nanos_per_hour * billed
        rate, most = price.nanos_per_hour - cap.fee_nanos_per_hour, cap.nanos * HOUR_S
        capped = sum(min(most, rate * (end - start)) for start, end in self._by_month(first, last))
        return cap.fee_nanos_per_hour * billed + capped

    def rates(self, price: Price, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The same as (first second, one after the last, price an hour): constant for whole seconds.

        The second in which a month's cap is reached costs what is left of it, the later ones the fee alone.
        """
        if price.cap is None:
            yield first, last, price.nanos_per_hour
            return
        fee, most = price.cap.fee_nanos_per_hour, price.cap.nanos * HOUR_S
        rate = price.nanos_per_hour - fee
        for start, end in self._by_month(first, last):
            full = min(end, start + most // rate) if rate else end
            yield start, full, rate + fee
            if full < end:
                yield full, full + 1, most % rate + fee
                yield full + 1, end, fee

    def paid_s(self, price: Price, start: float, now: float) -> float:
        """How long from now a machine may be kept before its bill grows.

        40 s into a minute, 20 s. Where the cap is reached, until the period in which the month ends.

        A machine rented later than now tells that our clock is behind the cloud's, or was put back: of its time only
        the place within a period is taken, or with a clock three days behind every machine would be kept for three
        days.
        """
        held = now - start
        if held < 0:
            return -(held if self.alignment is Alignment.START else now) % self.granularity_s
        if self.alignment is Alignment.START:
            paid_s: float = billed_seconds(held, self.granularity_s, self.minimum_s) - held
        else:
            paid_s = self.span(start, held)[1] - now
        return paid_s if price.cap is None else paid_s + self._free_s(price, *self.span(start, held))

    def month_of(self, instant: float) -> tuple[int, int]:
        """The calendar month of an instant: its first second, and that of the next month."""
        return _month_of(instant, self.time_zone)

    def _free_s(self, price: Price, first: int, last: int) -> int:
        """For how long after the seconds that are billed further periods cost nothing: the month's cap is reached."""
        if not price.nanos_per_hour or self.cost(price, first, last + self.granularity_s) > self.cost(
            price, first, last
        ):
            return 0
        left = self.month_of(last)[1] - last
        return left - left % self.granularity_s

    def _by_month(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        while first < last:
            end = min(last, self.month_of(first)[1])
            yield first, end
            first = end

    def _period_before(self, instant: float) -> int:
        return math.floor(instant / self.granularity_s) * self.granularity_s

    def _period_after(self, instant: float) -> int:
        return math.ceil(instant / self.granularity_s) * self.granularity_s


def _month_of(instant: float, time_zone: str) -> tuple[int, int]:
    zone = _zone(time_zone)
    at = datetime.fromtimestamp(instant, zone)
    return _month(at.year, at.month, time_zone)


@lru_cache(maxsize=1000)
def _month(year: int, month: int, time_zone: str) -> tuple[int, int]:
    zone = _zone(time_zone)
    following = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=zone)
    return int(datetime(year, month, 1, tzinfo=zone).timestamp()), int(following.timestamp())


@lru_cache(maxsize=16)
def _zone(name: str) -> tzinfo:
    """Of a name that the configuration has checked; UTC needs no database of time zones."""
    return UTC if name == "UTC" else ZoneInfo(name)
