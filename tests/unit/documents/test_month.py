"""A month's cost so far, and its forecast."""

from __future__ import annotations

from htas.documents.month import looked_at, month_of
from htas.model.billing import Billing
from htas.model.record import Bill

USD = 10**9
HOUR_S, DAY_S = 3600.0, 86_400.0
NOVEMBER = 1_793_491_200.0  # 2026-11-01T00:00:00Z


def test_a_month_is_what_was_spent_and_the_rest_of_it_at_the_last_days_mean() -> None:
    now = NOVEMBER + 10 * DAY_S
    bill = Bill("c", "batch", "m1", 2 * USD, started_at=NOVEMBER - DAY_S, ended_at=None)
    gone = Bill("d", "batch", "m1", 5 * USD, started_at=NOVEMBER + DAY_S, ended_at=NOVEMBER + 2 * DAY_S)
    month = month_of([bill, gone], Billing(), now)
    assert (month.name, looked_at(now)) == ("2026-11", NOVEMBER)
    assert month.so_far == (2 * 10 + 5) * 24 * 3600 * USD
    assert month.mean == 2 * USD
    assert month.forecast == month.so_far + 2 * USD * 20 * 24 * 3600
    assert looked_at(NOVEMBER + HOUR_S) == NOVEMBER - 23 * HOUR_S
