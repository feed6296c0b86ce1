"""Accounts: from bills to money, exact to the last billed second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from htas.model.flavours import Billing
from htas.model.money import bill_amount
from htas.model.record import Bill


def held_s(bill: Bill, now: float) -> float:
    """How long a machine has been rented."""
    return (bill.ended_at if bill.ended_at is not None else now) - bill.started_at


def nano_seconds(bill: Bill, billing: Billing, now: float) -> int:
    """Price × billed seconds of one machine so far."""
    return bill.nanos_per_hour * billing.billed_seconds(held_s(bill, now))


def total(bills: Iterable[Bill], billing: Billing, now: float) -> int:
    """The sum of bills (price × billed seconds)."""
    return sum(nano_seconds(bill, billing, now) for bill in bills)


def saved(bills: Iterable[Bill], alternative: Iterable[Bill], billing: Billing, now: float) -> int:
    """What was saved against other machines that could have been rented, billed by the same rules; negative: lost.

    The alternative is stated as the bills it would have had: one fixed cluster of three machines is three bills,
    from its first day and not ended.
    """
    return total(alternative, billing, now) - total(bills, billing, now)


def total_text(bills: Iterable[Bill], billing: Billing, now: float) -> str:
    """The sum of bills as an amount of the currency."""
    return str(bill_amount(total(bills, billing, now)))


def by(key: Callable[[Bill], str], bills: Iterable[Bill], billing: Billing, now: float) -> dict[str, int]:
    """Sums (price × billed seconds) by a key such as the group; they add up to the total exactly."""
    sums: dict[str, int] = {}
    for bill in bills:
        sums[key(bill)] = sums.get(key(bill), 0) + nano_seconds(bill, billing, now)
    return dict(sorted(sums.items()))


def by_day(bills: Iterable[Bill], billing: Billing, now: float) -> dict[str, int]:
    """Sums by day (UTC): a billed second counts for the day in which it begins, counted from the machine's start.

    Seconds that rounding adds follow the last one held: a machine held from 23:59:30 to 23:59:50, billed by the minute,
    costs 30 s of this day and 30 s of the next. So the days add up to the total exactly.
    """
    sums: dict[str, int] = {}
    for bill in bills:
        at = int(bill.started_at)
        end = at + billing.billed_seconds(held_s(bill, now))
        while at < end:
            midnight = (at // 86_400 + 1) * 86_400
            day = datetime.fromtimestamp(at, UTC).date().isoformat()
            sums[day] = sums.get(day, 0) + bill.nanos_per_hour * (min(end, midnight) - at)
            at = midnight
    return dict(sorted(sums.items()))


def nanos_per_hour(bills: Iterable[Bill]) -> int:
    """What the machines that run now cost an hour."""
    return sum(bill.nanos_per_hour for bill in bills if bill.ended_at is None)
