"""Searches that a plan can do without: what a failure leaves behind, and what the plan says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from typing import TypeVar

import numpy as np
import pytest

from htas.model.plan_document import plan_document
from htas.model.policy import AutoscalingAlgorithm, NodeGroup
from htas.model.search_failures import OptionalSearch
from htas.planning.cluster.optional_searches import LONGEST_ERROR, MOST_FRAMES, OptionalSearches, failure_of
from htas.planning.planner import plan
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem
from htas.planning.solvers.cheapest_mix.mix import cheapest
from htas.planning.solvers.cheapest_mix.shapes import optimum
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, opened
from tests.laws.test_optional_search_laws import Failing

Found = TypeVar("Found")
MIXING = make_policy(
    [NodeGroup("any", autoscaling=AutoscalingAlgorithm.CHEAPEST_MIX, mix_budget_s=0.05)], max_rental_lengthening=None
)


def test_what_a_failed_search_did_in_the_simulation_is_undone() -> None:
    simulated = opened([make_node("n", cpu="4")], [make_pod("a", cpu="1")], MIXING)
    searches, cls = OptionalSearches(), simulated.book.class_of(simulated.waiting[0])

    def search() -> str:
        simulated.sim.place(cls, 0)
        raise ValueError("no such row")

    free = simulated.sim.table.free.copy()
    assert searches.run(simulated.sim, OptionalSearch.MAKING_ROOM, search, lambda: "greedy") == "greedy"
    assert (simulated.sim.table.free == free).all()
    (failure,) = searches.failures
    assert failure.error == "ValueError: no such row"
    assert failure.where[-1].startswith("tests.unit.planning.test_optional_searches:")
    assert failure.where[-1].endswith(" search")


def test_the_same_failure_is_reported_once_in_a_plan() -> None:
    simulated, searches = opened([], [], MIXING), OptionalSearches(Failing(OptionalSearch.CLEANING))
    for _ in range(3):
        assert searches.run(simulated.sim, OptionalSearch.CLEANING, lambda: 1, lambda: 0) == 0
    assert len(searches.failures) == 1


@pytest.mark.parametrize("kind", [RecursionError, MemoryError])
def test_an_exhausted_stack_or_memory_costs_no_bind_and_few_words(kind: type[Exception]) -> None:
    def deep(left: int) -> int:
        if left == 0:
            raise MemoryError
        return deep(left - 1) + 1

    def run(search: OptionalSearch, do: Callable[[], Found]) -> Found:
        if search is OptionalSearch.CHEAPEST_MIX:
            deep(10**6 if kind is RecursionError else 300)
        return do()

    pods = [make_pod(f"w{i}", cpu="1", memory="2Gi") for i in range(4)]
    made = plan(make_snapshot([make_node("n", cpu="1", memory="4Gi")], pods), MIXING, NOW, runner=run)
    assert (len(made.bind), sum(len(item.pods) for item in made.launch)) == (1, 3)
    (failure,) = made.failures
    assert failure.error.startswith(f"{kind.__name__}:")
    assert len(failure.where) == MOST_FRAMES + 1
    assert any(re.fullmatch(r"… \d+ more", line) for line in failure.where)
    assert failure.where[-1].endswith(" deep")


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(ValueError("x" * 10**6), f"ValueError: {'x' * LONGEST_ERROR}…", id="a million characters"),
        pytest.param(UnreadableError(), "UnreadableError: its message cannot be read", id="no words"),
    ],
)
def test_the_words_of_an_error_are_bounded(error: Exception, words: str) -> None:
    assert failure_of(OptionalSearch.CLEANING, error).error == words


def test_a_defect_whose_words_differ_each_time_is_reported_once_in_a_plan() -> None:
    simulated, searches = opened([], [], MIXING), OptionalSearches()
    for number in range(100):

        def search(number: int = number) -> int:
            raise ValueError(f"no row {number}")

        assert searches.run(simulated.sim, OptionalSearch.MAKING_ROOM, search, lambda: -1) == -1
    assert [failure.error for failure in searches.failures] == ["ValueError: no row 0"]


def test_greedy_launches_where_the_cheapest_mix_fails() -> None:
    pods = [make_pod(f"w{i}", cpu="1", memory="2Gi") for i in range(4)]
    there = make_node("n", cpu="1", memory="4Gi")
    made = plan(make_snapshot([there], pods), MIXING, NOW, runner=Failing(OptionalSearch.CHEAPEST_MIX))
    assert len(made.bind) == 1
    assert sum(len(item.pods) for item in made.launch) == 3
    assert not made.unplaced
    document = plan_document(made)["searchesFailed"]
    assert [(item["search"], item["error"]) for item in document] == [
        ("cheapest-mix", "OverflowError: int too large to convert to float")
    ]
    json.dumps(document)


def test_a_plan_says_nothing_of_searches_that_went_well() -> None:
    assert "searchesFailed" not in plan_document(plan(make_snapshot([], [make_pod("a")]), MIXING, NOW))


@pytest.mark.parametrize("services", [136, 250, 400])
def test_dynamic_programming_declines_more_amounts_than_a_float_can_hold(services: int) -> None:
    """19^250 amounts: counted in whole numbers, and too many to be tried."""
    work = kinds_of_pods(services, each=18)
    assert optimum(work, 0.8, Effort(1000.0)) is None


def test_services_that_wait_after_an_outage_are_bought_for_by_the_mix() -> None:
    """140 kinds of 18 pods each overflowed, and every cycle failed."""
    pods = [make_pod(f"s{i}-{n}", cpu=f"{100 + i}m", memory=f"{200 + i}Mi") for i, n in product(range(140), range(18))]
    made = plan(make_snapshot([], pods), MIXING, NOW)
    assert made.failures == ()
    assert not made.unplaced
    assert sum(len(item.pods) for item in made.launch) == len(pods)


@pytest.mark.parametrize(
    ("memory", "price", "hold"),
    [
        pytest.param(2**50, 10**11, 315_360_000, id="a petabyte, 100 an hour, for ten years"),
        pytest.param(2**60, 10**9, 1, id="an exbibyte"),
        pytest.param(2**33, 10**18, 3600, id="a thousand million an hour"),
    ],
)
def test_a_mix_of_huge_numbers_stays_exact(memory: int, price: int, hold: int) -> None:
    """Twelve pods of which a machine holds three: four machines. 64-bit sums would have wrapped round."""
    work = MixProblem(
        requests=np.array([[1000, memory // 3], [1001, memory // 3]], dtype=np.int64),
        counts=np.array([6, 6], dtype=np.int64),
        levels=np.zeros(2, dtype=np.int64),
        free=np.array([[64_000, memory]], dtype=np.int64),
        prices=np.array([price], dtype=np.int64),
        takes=np.ones((1, 2), dtype=np.bool_),
        holds=(hold,),
    )
    mix = cheapest(work, {}, Effort(500.0))
    assert mix is not None
    assert sum(mix.counts.values()) == 4
    assert all(pattern.cost == price * hold for pattern in mix.counts)


def kinds_of_pods(kinds: int, each: int) -> MixProblem:
    return MixProblem(
        requests=np.array([[100 + i, 200 + i] for i in range(kinds)], dtype=np.int64),
        counts=np.full(kinds, each, dtype=np.int64),
        levels=np.zeros(kinds, dtype=np.int64),
        free=np.array([[16_000, 64_000]], dtype=np.int64),
        prices=np.array([10**9], dtype=np.int64),
        takes=np.ones((1, kinds), dtype=np.bool_),
        holds=(1,),
    )
