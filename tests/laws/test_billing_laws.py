"""Laws of billing: parts add up, no hour is billed that is paid already, and all who ask are told the same."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Alignment, Billing, Cap, Price
from htas.model.record import Bill
from htas.planning.rental.bills import Rentals, RunningBill
from htas.profiler import accounts
from htas.profiler.accounts import Window
from htas.sandbox.ledger import Ledger, Rental

Law = settings(max_examples=150, deadline=None, derandomize=True)
BILLINGS = st.builds(
    Billing,
    st.sampled_from([1, 60, 600, 3600, 86_400]),
    st.sampled_from([0, 60, 3600]),
    st.sampled_from(Alignment),
    st.sampled_from(["UTC", "Europe/Amsterdam", "Asia/Kolkata"]),
)
BEGIN = 1_790_000_000
INSTANTS = st.floats(BEGIN, BEGIN + 100 * 86_400.0)
NANOS = st.integers(0, 10**9)


@st.composite
def prices(draw: st.DrawFn) -> Price:
    fee, rate = draw(NANOS), draw(NANOS)
    cap = st.builds(Cap, st.integers(0, 300 * 10**9), st.just(fee))
    return Price(rate + fee, draw(st.none() | cap))


def bill_of(price: Price, start: float, end: float | None) -> Bill:
    return Bill("c", "g", "f", price.nanos_per_hour, start, end, cap=price.cap)


@Law
@given(BILLINGS, prices(), st.lists(INSTANTS, min_size=2, max_size=6))
def test_windows_that_follow_one_another_add_up_to_the_bill(
    billing: Billing, price: Price, instants: list[float]
) -> None:
    start, *cuts, end = sorted(instants)
    bill = bill_of(price, start, end)
    whole = accounts.nano_seconds(bill, billing, end)
    assert (
        whole
        == billing.bill(price, start, end - start)
        == Ledger(rentals=[Rental("vm", "c", "f", price.nanos_per_hour, start, end, price.cap)]).nano_seconds(
            billing, end
        )
    )
    windows = [Window(since, until) for since, until in pairwise([0.0, *cuts, math.inf])]
    assert sum(accounts.nano_seconds(bill, billing, end, window) for window in windows) == whole
    assert sum(accounts.by_day([bill], billing, end).values()) == whole
    for window in (*windows, accounts.ALWAYS):
        steps = accounts.rates(bill, billing, end, window)
        assert sum((until - since) * nanos for since, until, nanos in steps) == accounts.nano_seconds(
            bill, billing, end, window
        )


@Law
@given(BILLINGS, prices(), INSTANTS, INSTANTS)
def test_a_machine_costs_no_more_until_it_is_paid_for_no_longer(
    billing: Billing, price: Price, one: float, other: float
) -> None:
    start, now = math.floor(min(one, other)), math.ceil(max(one, other))
    paid_s = billing.paid_s(price, start, now)
    now_costs = billing.bill(price, start, now - start)
    assert billing.bill(price, start, now + paid_s - start) == now_costs
    if price.nanos_per_hour and (price.cap is None or price.cap.nanos >= 10**9):
        assert billing.bill(price, start, now + paid_s + 1 - start) > now_costs


@Law
@given(BILLINGS, prices(), st.lists(INSTANTS, min_size=2, max_size=6))
def test_a_bill_only_grows_and_a_cap_never_raises_it(billing: Billing, price: Price, instants: list[float]) -> None:
    start, *ends = sorted(instants)
    bills = [billing.bill(price, start, end - start) for end in ends]
    assert bills == sorted(bills)
    uncapped = [billing.bill(Price(price.nanos_per_hour), start, end - start) for end in ends]
    assert all(with_cap <= without for with_cap, without in zip(bills, uncapped, strict=True))


@Law
@given(BILLINGS, prices(), INSTANTS, INSTANTS, INSTANTS)
def test_planning_reckons_with_the_bill_that_is_sent(
    billing: Billing, price: Price, one: float, other: float, third: float
) -> None:
    start, until, later = sorted((one, other, third))
    running = RunningBill(price.nanos_per_hour, start, billing, price.cap)
    more = billing.bill(price, start, later - start) - billing.bill(price, start, until - start)
    assert running.longer(until, later) == more
    caps = {0: price.cap} if price.cap is not None else {}
    rentals = Rentals(np.array([float(price.nanos_per_hour)]), np.array([start]), billing, caps)
    row = np.array([0])
    longer_s = rentals.longer_s(row, np.array([until]), np.array([later]))
    assert math.isclose(longer_s[0] * price.nanos_per_hour, more, rel_tol=1e-12)
