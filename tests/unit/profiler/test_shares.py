"""Whose work a bill was for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.flavours import Billing
from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.profiler import accounts
from htas.profiler.shares import IDLE, by_work

HOUR = 3600.0
PRICE = 3_600
"""A machine at this price costs 3,600 an exact second: sums below are read easily."""


def run(
    namespace: str,
    share: float,
    came_at: float,
    ended_at: float,
    claim: str = "c",
    uid: str = "u",
    owner: str = "Job/a",
) -> Run:
    parts = int(share * 1_000_000)
    return Run(namespace, "p", uid, "n", WorkKind.BATCH, owner, "", 1, 1, parts, came_at, came_at, ended_at, claim)


WHOLE = Bill("c", "g", "f", PRICE, 0.0, 100.0)


@pytest.mark.parametrize(
    ("bill", "runs", "want"),
    [
        pytest.param(WHOLE, [], {IDLE: 120}, id="a machine without work is idle, with what rounding adds"),
        pytest.param(WHOLE, [run("a", 0.5, 0, 100)], {"a": 50, IDLE: 70}, id="half of it for all of its time"),
        pytest.param(WHOLE, [run("a", 0.5, 0, 100), run("b", 0.25, 50, 100)], {"a": 50, "b": 12.5, IDLE: 57.5}, id="two namespaces"),
        pytest.param(WHOLE, [run("a", 1.0, -50, 200)], {"a": 100, IDLE: 20}, id="only while the machine was rented"),
        pytest.param(WHOLE, [run("a", 1.0, 0, 100, claim="other")], {IDLE: 120}, id="work on another machine"),
        pytest.param(WHOLE, [run("a", 1.0, 0, 100), run("b", 1.0, 0, 100)], {"a": 50, "b": 50, IDLE: 20}, id="two whole shares pay half of it each"),
        pytest.param(Bill("c", "g", "f", PRICE, 0.0), [run("a", 0.5, 0, HOUR)], {"a": HOUR / 2, IDLE: HOUR / 2}, id="a machine that still runs"),
    ],
)  # fmt: skip
def test_what_each_namespace_pays(bill: Bill, runs: list[Run], want: dict[str, float]) -> None:
    found = by_work(lambda run: run.namespace, [bill], runs, Billing(), HOUR)
    assert found == {name: amount * PRICE for name, amount in want.items()}


spans = st.tuples(st.floats(0, 1000), st.floats(0, 1000)).map(sorted)


@settings(max_examples=80, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 10**9), spans), max_size=4, unique_by=lambda b: b[0]),
    st.lists(st.tuples(st.sampled_from("xyzw"), st.floats(0, 1), spans, st.sampled_from(["a", "b"])), max_size=12),
)
def test_every_split_sums_to_the_bills(rented: list, work: list) -> None:  # type: ignore[type-arg]
    bills = [Bill(claim, "g", "f", price, start, end) for claim, price, (start, end) in rented]
    runs = [run(space, share, came, went, claim) for claim, share, (came, went), space in work]
    found = by_work(lambda run: run.namespace, bills, runs, Billing(), 2000.0)
    assert sum(found.values()) == accounts.total(bills, Billing(), 2000.0)
    assert all(amount >= 0 for amount in found.values())
