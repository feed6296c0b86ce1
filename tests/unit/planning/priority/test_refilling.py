"""Nodes filled anew, each to the brim, and what of a room pods can use at all."""

from __future__ import annotations

import numpy as np
import pytest

from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.filling import usable
from htas.planning.solvers.placement.problem import PlacementProblem, SearchStart
from htas.planning.solvers.placement.refilling import Refilling


def problem(requests: np.ndarray, count: list[int], capacity: np.ndarray, home: np.ndarray) -> PlacementProblem:
    kinds, nodes = home.shape
    return PlacementProblem(
        priorities=(0,),
        capacity=capacity,
        requests=requests,
        tier=np.zeros(kinds, dtype=np.int64),
        is_running=np.asarray(home.any(axis=1)),
        yields=np.zeros(kinds, dtype=np.bool_),
        budget_of=np.full(kinds, -1),
        budgets=(),
        allowed=np.ones((kinds, nodes), dtype=np.bool_),
        home=home,
        count=np.array(count),
        members=tuple(() for _ in range(kinds)),
        rows=tuple(range(nodes)),
        settled=((0, 0),),
        undecided=(0,),
    )


def refilling(case: PlacementProblem, frozen: np.ndarray | None = None) -> Refilling:
    everyone = np.ones(case.kinds, dtype=np.bool_)
    still = np.zeros_like(case.home) if frozen is None else frozen
    start = SearchStart(case.home.copy(), still, everyone, everyone, 0)
    return Refilling(case, start, SearchClock(SearchBudget(1.0), lambda: 0.0))


def eight_pods_that_fill_two_nodes() -> PlacementProblem:
    """7 + 3 and 6 + 4 twice on two nodes of 20; placed 7, 6, 4 and 7, 6, 3, so that 4 and 3 wait with 3 and 4 free."""
    requests = np.array([[7], [6], [4], [3]])
    home = np.array([[1, 1], [1, 1], [1, 0], [0, 1]])
    return problem(requests, [2, 2, 2, 2], np.array([[20], [20]]), home)


def test_nodes_are_filled_to_the_brim_where_every_pod_has_to_fit() -> None:
    search = refilling(eight_pods_that_fill_two_nodes())
    while search.waiting:
        assert search.one_more(1.0)
    assert search.x.sum() == 8
    assert not search._problem.free(search.x).any()


def test_it_gives_up_where_no_more_can_fit() -> None:
    """Three pods of 3 need 9 of 10, but a node of 5 takes one."""
    case = problem(np.array([[3]]), [3], np.array([[5], [5]]), np.array([[1, 1]]))
    search = refilling(case)
    assert not search.one_more(1.0)
    assert (search.x == case.home).all()


def test_frozen_pods_stay_where_they_are() -> None:
    case = eight_pods_that_fill_two_nodes()
    frozen = np.zeros_like(case.home)
    frozen[0] = 1
    search = refilling(case, frozen)
    while search.waiting:
        assert search.one_more(1.0)
    assert (search.x[0] == 1).all()


def test_as_many_as_can_are_at_home_afterwards() -> None:
    """Two large pods and two small ones at home; the one that comes takes the place of nobody."""
    requests = np.array([[6], [3], [1]])
    home = np.array([[1, 0], [0, 2], [0, 0]])
    search = refilling(problem(requests, [1, 2, 1], np.array([[7], [7]]), home))
    assert search.one_more(1.0)
    assert np.minimum(search.x, home).sum() == 3


@pytest.mark.parametrize(
    ("room", "takes"),
    [([1, 90], [0, 0]), ([50, 50], [40, 40]), ([45, 25], [40, 20])],
    ids=["nothing fits, and both are lost", "two pods of 20 each", "the most of each, by different pods"],
)
def test_of_a_room_pods_can_use_what_some_set_of_them_asks_for(room: list[int], takes: list[int]) -> None:
    requests = np.array([[20, 20], [40, 10]])
    found = usable(requests, np.array([2, 1]), np.ones((2, 1), dtype=np.bool_), np.array([room]))
    assert found.tolist() == [takes]


def test_a_room_with_too_many_sets_of_pods_is_left_as_it_is() -> None:
    requests = np.arange(1, 21).reshape(-1, 1)
    found = usable(requests, np.ones(20, dtype=np.int64), np.ones((20, 1), dtype=np.bool_), np.array([[300]]))
    assert found.tolist() == [[300]]
