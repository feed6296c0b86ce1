"""The optimiser's parts, each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from htas.planning.solvers.placement.bounds import most_by_room
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock, Shares
from htas.planning.solvers.placement.filling import can_fill, must_waste
from htas.planning.solvers.placement.patterns import enumerate_patterns


def column(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def test_patterns_are_all_multisets_that_fit_each_once() -> None:
    patterns = enumerate_patterns(column(3, 2), np.array([2, 3]), column(7), 100)
    assert patterns is not None
    assert sorted(map(tuple, patterns.tolist())) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0)]


def test_more_patterns_than_the_limit_are_not_made() -> None:
    assert enumerate_patterns(column(1), np.array([50]), column(50), 10) is None


@pytest.mark.parametrize(
    ("room", "waste", "expected"),
    [(7, 0, True), (8, 0, False), (8, 1, True), (1, 0, False), (10, 0, True)],
)
def test_a_node_can_be_filled_by_some_of_the_pods(room: int, waste: int, expected: bool) -> None:
    filled = can_fill(column(3, 4), np.array([2, 1]), np.array([room]), np.array([waste]), 1000)
    assert filled is expected


def test_pods_whose_sum_fits_may_still_waste_room() -> None:
    allowed = np.ones((1, 2), dtype=np.bool_)
    assert must_waste(column(3), np.array([3]), allowed, column(5, 4), 1000)
    assert not must_waste(column(2), np.array([4]), allowed, column(4, 4), 1000)


def test_the_bound_by_room_takes_the_smallest_first_in_every_mixture_of_resources() -> None:
    requests = np.array([[1, 9], [9, 1], [5, 5]])
    count, fits = np.array([10, 10, 10]), np.ones(3, dtype=np.bool_)
    bound = most_by_room(requests, count, np.zeros(3, dtype=np.bool_), np.array([[10, 10]]), fits)
    assert bound == 2  # by cpu or memory alone ten would fit; by their mean, (1 + 9) ÷ 2 = 5 of 10 each, two do


def test_pods_that_must_be_placed_take_their_room_first() -> None:
    must = np.array([True, False])
    bound = most_by_room(column(6, 2), np.array([1, 5]), must, column(10), np.ones(2, dtype=np.bool_))
    assert bound == 1 + 2


def test_a_stage_that_ends_early_leaves_its_time_to_those_after_it() -> None:
    now = [0.0]
    clock = SearchClock(SearchBudget(10.0, share=0.8), lambda: now[0])
    shares = Shares(clock, 2, 0.25)  # 8 s reserved for two tiers, of each 3 s and 1 s; 2 s for whoever needs them
    assert shares.deadline() == pytest.approx(5.0)
    now[0] = 1.0
    assert shares.deadline() == pytest.approx(6.0)
    now[0] = 7.0
    assert shares.deadline() == pytest.approx(9.0)
    assert shares.deadline() == pytest.approx(10.0)


@pytest.mark.parametrize(("fits", "most"), [([True, True], 3), ([True, False], 1), ([False, False], 0)])
def test_a_kind_that_fits_no_node_counts_for_nothing_in_the_bound(fits: list[bool], most: int) -> None:
    none_must = np.zeros(2, dtype=np.bool_)
    assert most_by_room(column(6, 2), np.array([1, 2]), none_must, column(10), np.array(fits)) == most


def test_kinds_without_pods_are_not_asked_for_waste() -> None:
    """Five larger kinds of which nobody is left: were they asked first, the one that wastes would not be."""
    requests = column(9, 9, 9, 9, 9, 5, 1)
    allowed = np.zeros((7, 6), dtype=np.bool_)
    allowed[5, 5] = allowed[:5, 5] = True
    allowed[6, :5] = True
    rooms = column(2, 2, 2, 2, 2, 9)
    count = np.array([0, 0, 0, 0, 0, 1, 11])
    assert must_waste(requests, count, allowed, rooms, 1000)


def test_pods_that_must_be_placed_are_not_counted_again_among_those_that_may() -> None:
    """Two cores of ten for the one that must: in the other eight there is room for one of six, not for six and two."""
    must = np.array([True, False])
    assert most_by_room(column(2, 6), np.array([1, 5]), must, column(10), np.ones(2, dtype=np.bool_)) == 1 + 1
