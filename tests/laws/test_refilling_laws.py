"""Whatever nodes are filled anew, the placement stays whole; and no set of pods uses more of a room than is said."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.filling import usable
from htas.planning.solvers.placement.greedy import best_fit
from htas.planning.solvers.placement.problem import SearchStart
from htas.planning.solvers.placement.refilling import Refilling
from tests.unit.planning.priority.test_refilling import problem

LAWS = settings(max_examples=80, deadline=None, derandomize=True)
SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=6)


@LAWS
@given(SIZES, st.integers(2, 5), st.integers(9, 20), st.integers(9, 20), st.randoms(use_true_random=False))
def test_one_more_pod_is_placed_and_nobody_loses_its_place(
    sizes: list[tuple[int, int]], nodes: int, cpu: int, memory: int, random: object
) -> None:
    requests = np.array(sizes)
    count = [random.randint(1, 4) for _ in sizes]  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    capacity = np.tile([cpu, memory], (nodes, 1))
    empty = problem(requests, count, capacity, np.zeros((len(sizes), nodes), dtype=np.int64))
    home = empty.home.copy()
    best_fit(empty, home, range(len(sizes)))
    case = problem(requests, count, capacity, home)
    frozen = home * np.array([random.randint(0, 1) for _ in sizes])[:, None]  # type: ignore[attr-defined]
    everyone = np.ones(len(sizes), dtype=np.bool_)
    counted = SearchClock(SearchBudget(1.0, is_deterministic=True), lambda: 0.0)
    search = Refilling(case, SearchStart(home.copy(), frozen, everyone, everyone, 0), counted)
    if search.waiting and search.one_more(0.1):
        assert search.x.sum() == home.sum() + 1
        assert (search.x >= frozen).all()
        assert case.is_valid(search.x)
    else:
        assert (search.x == home).all()


@LAWS
@given(SIZES, st.integers(1, 20), st.integers(1, 20))
def test_no_set_of_pods_that_fits_uses_more_of_a_room(sizes: list[tuple[int, int]], cpu: int, memory: int) -> None:
    requests, room = np.array(sizes), np.array([[cpu, memory]])
    loads = [np.array(taken) @ requests for taken in product(range(3), repeat=len(sizes))]
    most = np.max([load for load in loads if (load <= room[0]).all()], axis=0)
    found = usable(requests, np.full(len(sizes), 2), np.ones((len(sizes), 1), dtype=np.bool_), room)[0]
    assert (found >= most).all()
    assert (found <= room[0]).all()
