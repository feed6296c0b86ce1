"""Billing: which seconds are charged, what a month costs at most, and how long a machine is paid for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from htas.model.billing import Alignment, Billing, Cap, Price
from htas.model.money import bill_amount, parse_price

HOUR = 3600
CLOCK = Billing(HOUR, HOUR, Alignment.CLOCK)
BY_THE_HOUR = Billing(HOUR, HOUR)


def at(text: str) -> float:
    return datetime.fromisoformat(f"2026-11-{text}").replace(tzinfo=UTC).timestamp()


def price(hour: str, month: str | None = None, fee: str = "0") -> Price:
    extra = parse_price(fee)
    return Price(parse_price(hour) + extra, Cap(parse_price(month), extra) if month is not None else None)


@pytest.mark.parametrize(
    ("billing", "start", "end", "hours"),
    [
        pytest.param(BY_THE_HOUR, "28T09:40", "28T09:57", 1, id="from its start: one hour begun"),
        pytest.param(BY_THE_HOUR, "28T09:40", "28T10:40", 1, id="from its start: 09:40 to 10:40 is one hour"),
        pytest.param(CLOCK, "28T09:40", "28T09:57", 1, id="by the clock: nine to ten"),
        pytest.param(CLOCK, "28T09:40", "28T10:00", 1, id="by the clock: gone as the hour is full"),
        pytest.param(CLOCK, "28T09:40", "28T10:00:01", 2, id="by the clock: a second too late"),
        pytest.param(CLOCK, "28T09:40", "28T10:40", 2, id="by the clock: an hour over two of its hours"),
        pytest.param(CLOCK, "28T10:00", "28T11:00", 1, id="by the clock: made as the hour begins"),
        pytest.param(CLOCK, "28T10:00", "28T10:00", 1, id="by the clock: the minimum"),
        pytest.param(Billing(HOUR, 0, Alignment.CLOCK), "28T10:00", "28T10:00", 0, id="by the clock: no minimum"),
        pytest.param(
            Billing(HOUR, 3 * HOUR, Alignment.CLOCK), "28T09:40", "28T10:40", 3, id="a minimum of three hours"
        ),
        pytest.param(Billing(86_400, 0, Alignment.CLOCK), "27T23:59", "28T00:01", 48, id="by the days of UTC"),
    ],
)
def test_hours_that_are_billed(billing: Billing, start: str, end: str, hours: int) -> None:
    assert billing.seconds(at(start), at(end) - at(start)) == hours * HOUR


def test_by_the_clock_the_first_hour_is_billed_from_its_beginning() -> None:
    assert CLOCK.span(at("28T09:40"), 17 * 60.0) == (at("28T09:00"), at("28T10:00"))


@pytest.mark.parametrize(
    ("start", "end", "hour", "month", "fee", "want"),
    [
        pytest.param("01T00:00", "03T00:00", "0.0149", "10.00", "0", "0.7152", id="two days: by the hour"),
        pytest.param("01T00:00", "30T23:30", "0.0149", "10.00", "0", "10", id="a whole month: no more than its cap"),
        pytest.param("01T00:00", "29T00:00", "0.029761905", "20.00", "0", "20", id="672 hours of a rate by the month"),
        pytest.param("30T12:00", "30T18:00", "0.0149", "10.00", "0", "0.0894", id="hours at a month's end"),
        pytest.param("01T00:00", "30T23:30", "0.0149", "10.00", "0.004", "12.88", id="the fee comes beside the cap"),
        pytest.param("01T00:00", "02T00:00", "0.0149", "0", "0", "0", id="a cap of nothing"),
    ],
)
def test_what_a_machine_costs_up_to_its_monthly_cap(
    start: str, end: str, hour: str, month: str, fee: str, want: str
) -> None:
    billed = BY_THE_HOUR.bill(price(hour, month, fee), at(start), at(end) - at(start))
    assert bill_amount(billed) == bill_amount(parse_price(want) * HOUR)


def test_each_month_has_its_own_cap() -> None:
    """From the middle of November to that of January: 360 hours, a month at its most, and 360 hours."""
    start, end = at("16T00:00"), datetime(2027, 1, 16, tzinfo=UTC).timestamp()
    billed = BY_THE_HOUR.bill(price("0.0149", "10.00"), start, end - start)
    assert bill_amount(billed) == bill_amount((2 * 360 * parse_price("0.0149") + parse_price("10")) * HOUR)


def test_a_month_is_that_of_the_time_zone() -> None:
    """In Amsterdam December begins an hour earlier than in UTC: an hour that is free in one month costs in the next."""
    there = Billing(HOUR, HOUR, time_zone="Europe/Amsterdam")
    first, following = there.month_of(at("15T00:00"))
    assert (first, following) == (at("01T00:00") - HOUR, at("30T23:00"))
    one = price("1", "10")
    assert there.bill(one, at("01T00:00"), 30 * 24 * HOUR) - BY_THE_HOUR.bill(one, at("01T00:00"), 30 * 24 * HOUR) == (
        parse_price("1") * HOUR
    )


@pytest.mark.parametrize(
    ("billing", "cost", "start", "now", "paid_s"),
    [
        pytest.param(BY_THE_HOUR, price("1"), "28T09:40", "28T09:57", 43 * 60, id="from its start until 10:40"),
        pytest.param(CLOCK, price("1"), "28T09:40", "28T09:57", 3 * 60, id="by the clock until ten"),
        pytest.param(CLOCK, price("1"), "28T09:40", "28T10:00", 0, id="the hour is full"),
        pytest.param(CLOCK, price("1"), "28T09:40", "28T09:20", 40 * 60, id="a clock behind the cloud's: within the hour"),
        pytest.param(BY_THE_HOUR, price("1"), "28T09:40", "28T09:20", 20 * 60, id="from its start: likewise"),
        pytest.param(BY_THE_HOUR, price("1", "100"), "01T00:00", "03T00:30", 30 * 60, id="the cap is not reached"),
        pytest.param(BY_THE_HOUR, price("1", "10"), "01T00:00", "03T00:30", 28 * 86_400 - 30 * 60,
                     id="the cap is reached: until the month ends"),
        pytest.param(BY_THE_HOUR, price("1", "10"), "01T00:20", "03T00:20", 28 * 86_400 - HOUR,
                     id="until the period in which the month ends, which costs again"),
        pytest.param(BY_THE_HOUR, price("1", "10", "0.1"), "01T00:00", "03T00:30", 30 * 60, id="the fee goes on"),
        pytest.param(BY_THE_HOUR, price("0", "0"), "01T00:00", "03T00:30", 30 * 60, id="a machine that costs nothing"),
    ],
)  # fmt: skip
def test_how_long_a_machine_is_paid_for(billing: Billing, cost: Price, start: str, now: str, paid_s: int) -> None:
    assert billing.paid_s(cost, at(start), at(now)) == paid_s
