"""Whose work a bill was for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.model.resources import Resources, dominant_share
from htas.profiler import accounts
from htas.profiler.shares import IDLE, by_work
from tests.builders import amounts

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


def test_the_pod_with_the_only_gpu_pays_the_greater_part() -> None:
    """For an hour a job has the GPU and one core, a build 6 of 8 cores; then the machine is empty for an hour."""
    machine = amounts("8", "64Gi", nvidia__gpu=1)
    train, build = amounts("1", "4Gi", nvidia__gpu=1), amounts("6", "24Gi")
    work = [
        run("ml", float(dominant_share(train, machine)), 0, HOUR),
        run("ci", float(dominant_share(build, machine)), 0, HOUR),
    ]
    bill = Bill("c", "g", "f", PRICE, 0.0, 2 * HOUR)
    found = by_work(lambda run: run.namespace, [bill], work, Billing(), 2 * HOUR)
    assert found == {
        "ci": int(HOUR * PRICE * 0.75 / 1.75),
        "ml": int(HOUR * PRICE / 1.75),
        IDLE: int(HOUR * PRICE) + 1,  # the hour without work, and what rounding down leaves
    }
    assert [round(100 * found[name] / (HOUR * PRICE)) for name in ("ml", "ci")] == [57, 43]


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        pytest.param(amounts("1", "4Gi", nvidia__gpu=1), 1.0, id="the only GPU is all of the machine"),
        pytest.param(amounts("6", "24Gi"), 0.75, id="cores"),
        pytest.param(amounts("1", "32Gi"), 0.5, id="memory"),
        pytest.param(amounts("0", "0", 1), 0.0, id="nothing: a place among the pods is no resource"),
        pytest.param(amounts("0", "0", amd__gpu=1), 0.0, id="what the machine does not have"),
    ],
)
def test_the_share_of_a_gpu_machine(asked: Resources, share: float) -> None:
    assert dominant_share(asked, amounts("8", "64Gi", 110, nvidia__gpu=1)) == share


def test_a_build_alone_leaves_the_gpu_idle() -> None:
    bill = Bill("c", "g", "f", PRICE, 0.0, HOUR)
    found = by_work(lambda run: run.namespace, [bill], [run("ci", 0.75, 0, HOUR)], Billing(), HOUR)
    assert found == {"ci": 0.75 * HOUR * PRICE, IDLE: 0.25 * HOUR * PRICE}


def test_each_instant_is_shared_by_itself() -> None:
    """Of three hours a whole share has the first two, another the last two: half of the second hour each."""
    bill = Bill("c", "g", "f", PRICE, 0.0, 3 * HOUR)
    work = [run("a", 1.0, 0, 2 * HOUR), run("b", 1.0, HOUR, 3 * HOUR)]
    found = by_work(lambda run: run.namespace, [bill], work, Billing(), 3 * HOUR)
    assert found == {"a": 1.5 * HOUR * PRICE, "b": 1.5 * HOUR * PRICE, IDLE: 0}
