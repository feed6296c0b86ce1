"""Accounts: from bills to money, exact to the last billed second."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from htas.model.flavours import Billing
from htas.model.record import Bill


class Window(NamedTuple):
    """A time that is accounted for: from an instant on, until before another."""

    since: float = 0.0
    until: float = math.inf


ALWAYS = Window()


def held_s(bill: Bill, now: float) -> float:
    """How long a machine has been rented."""
    return (bill.ended_at if bill.ended_at is not None else now) - bill.started_at


def billed_span(bill: Bill, billing: Billing, now: float, window: Window = ALWAYS) -> tuple[int, int]:
    """The seconds of a window that a bill is for: the first, and the one after the last.

    They are counted from the machine's start; those that rounding adds follow the last one held. A machine held from
    23:59:30 to 23:59:50, billed by the minute, costs 30 s of this day and 30 s of the next: so windows that follow one
    another add up to the whole bill.
    """
    start = int(bill.started_at)
    end = start + billing.billed_seconds(held_s(bill, now))
    first = max(start, math.ceil(window.since))
    return first, max(first, end if math.isinf(window.until) else min(end, math.ceil(window.until)))


def nano_seconds(bill: Bill, billing: Billing, now: float, window: Window = ALWAYS) -> int:
    """Price × billed seconds of one machine so far."""
    start, end = billed_span(bill, billing, now, window)
    return bill.nanos_per_hour * (end - start)


def total(bills: Iterable[Bill], billing: Billing, now: float, window: Window = ALWAYS) -> int:
    """The sum of bills (price × billed seconds)."""
    return sum(nano_seconds(bill, billing, now, window) for bill in bills)


def by(
    key: Callable[[Bill], str], bills: Iterable[Bill], billing: Billing, now: float, window: Window = ALWAYS
) -> dict[str, int]:
    """Sums (price × billed seconds) by a key such as the group; they add up to the total exactly."""
    sums: dict[str, int] = {}
    for bill in bills:
        amount = nano_seconds(bill, billing, now, window)
        if amount or window == ALWAYS:
            sums[key(bill)] = sums.get(key(bill), 0) + amount
    return dict(sorted(sums.items()))


def by_day(bills: Iterable[Bill], billing: Billing, now: float, window: Window = ALWAYS) -> dict[str, int]:
    """Sums by day (UTC): a billed second counts for the day in which it begins, so that days add up to the total."""
    sums: dict[str, int] = {}
    for bill in bills:
        at, end = billed_span(bill, billing, now, window)
        while at < end:
            midnight = (at // 86_400 + 1) * 86_400
            day = datetime.fromtimestamp(at, UTC).date().isoformat()
            sums[day] = sums.get(day, 0) + bill.nanos_per_hour * (min(end, midnight) - at)
            at = midnight
    return dict(sorted(sums.items()))


def nanos_per_hour(bills: Iterable[Bill]) -> int:
    """What the machines that run now cost an hour."""
    return sum(bill.nanos_per_hour for bill in bills if bill.ended_at is None)
