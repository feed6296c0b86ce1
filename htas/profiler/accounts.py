"""Accounts: from bills to money, exact to the last billed second."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from htas.model.billing import Billing
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

    They are counted as the billing is aligned; those that rounding adds follow the last one held. A machine held from
    23:59:30 to 23:59:50, billed by the minute, costs 30 s of this day and 30 s of the next: so windows that follow one
    another add up to the whole bill.
    """
    start, end = billing.span(bill.started_at, held_s(bill, now))
    first = max(start, math.ceil(window.since))
    return first, max(first, end if math.isinf(window.until) else min(end, math.ceil(window.until)))


def nano_seconds(bill: Bill, billing: Billing, now: float, window: Window = ALWAYS) -> int:
    """Price × billed seconds of one machine so far.

    A month's cap is reached by the seconds that come first: the later ones of a month are those that cost nothing.
    """
    return between(bill, billing, *billed_span(bill, billing, now, window))


def between(bill: Bill, billing: Billing, start: int, end: int) -> int:
    """The same of the billed seconds from `start` to before `end`."""
    if bill.cap is None:
        return bill.nanos_per_hour * (end - start)
    first, _ = billing.span(bill.started_at, 0.0)
    return billing.cost(bill.price, first, end) - billing.cost(bill.price, first, start)


def rates(bill: Bill, billing: Billing, now: float, window: Window = ALWAYS) -> Iterator[tuple[int, int, int]]:
    """The seconds that a bill is for as (first, one after the last, price an hour), in order of time."""
    start, end = billed_span(bill, billing, now, window)
    first, _ = billing.span(bill.started_at, 0.0)
    for since, until, nanos in billing.rates(bill.price, first, end):
        if until > start:
            yield max(since, start), until, nanos


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
            sums[day] = sums.get(day, 0) + between(bill, billing, at, min(end, midnight))
            at = midnight
    return dict(sorted(sums.items()))


def nanos_per_hour(bills: Iterable[Bill]) -> int:
    """What the machines that run now cost an hour."""
    return sum(bill.nanos_per_hour for bill in bills if bill.ended_at is None)
