"""What the same work would have cost on machines of one flavour."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.pods import WorkKind
from htas.model.record import Run
from htas.profiler.alternatives import TooSmallError, fixed_peak, homogeneous
from tests.builders import make_flavour

SMALL = make_flavour("small", "2", "4Gi", "0.10")
GIB = 2**30


def run(uid: str, came_at: float, ended_at: float, cpu_m: int = 1000, memory: int = GIB) -> Run:
    return Run("ns", uid, uid, "n", WorkKind.BATCH, "Job/a", "", cpu_m, memory, 0, came_at, came_at, ended_at, "c")


Spans = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("runs", "moving", "fixed"),
    [
        pytest.param([], [], [], id="no work, no machine"),
        pytest.param([run("a", 0, 60), run("b", 10, 90)], [(0, 90)], [(0, 90)], id="two that fit together: one machine, until both are gone"),
        pytest.param([run("a", 0, 60), run("b", 0, 60), run("c", 30, 90)], [(0, 60), (30, 90)], [(0, 90), (0, 90)], id="a third needs another, which the peak keeps all the time"),
        pytest.param([run("a", 0, 60), run("b", 60, 90)], [(0, 60), (60, 90)], [(0, 90)], id="one after the other: given back in between, never two at once"),
        pytest.param([run("a", 0, 60, memory=3 * GIB), run("b", 0, 60, memory=3 * GIB)], [(0, 60), (0, 60)], [(0, 60), (0, 60)], id="memory counts as CPU does"),
        pytest.param([run("a", 5, 5)], [], [], id="what took no time took no room"),
    ],
)  # fmt: skip
def test_the_alternatives(runs: list[Run], moving: Spans, fixed: Spans) -> None:
    assert sorted((bill.started_at, bill.ended_at) for bill in homogeneous(runs, SMALL)) == moving
    assert sorted((bill.started_at, bill.ended_at) for bill in fixed_peak(runs, SMALL)) == fixed


def test_work_that_fits_no_machine_of_the_flavour_is_told() -> None:
    with pytest.raises(TooSmallError, match="ns/big does not fit a small; name a larger flavour"):
        homogeneous([run("big", 0, 1, cpu_m=3000)], SMALL)


works = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(1, 2000)), max_size=25)


@settings(max_examples=60, derandomize=True)
@given(works)
def test_machines_come_and_go_for_no_more_than_the_fixed_peak_costs(work: list[tuple[int, int, int]]) -> None:
    runs = [run(str(i), start, start + length, cpu_m) for i, (start, length, cpu_m) in enumerate(work)]
    held, peak = homogeneous(runs, SMALL), fixed_peak(runs, SMALL)
    rented_s = sum((bill.ended_at or 0.0) - bill.started_at for bill in held)
    assert rented_s <= sum((bill.ended_at or 0.0) - bill.started_at for bill in peak)
    assert rented_s * 2000 >= sum(length * cpu_m for _, length, cpu_m in work)
