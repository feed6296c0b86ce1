"""What overflow search judges and keeps up step by step, against the same worked out anew from where the pods are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htas.planning.solvers.placement import overflow
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.overflow import OverflowSearch
from htas.planning.solvers.placement.problem import PlacementProblem, SearchStart, load
from tests.laws.test_priority_laws import LAWS


@st.composite
def searches(draw: Any) -> OverflowSearch:
    """Some kinds on a few nodes, placed as they come; a pod of each kind may be frozen where it is."""
    nodes, kinds = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    requests = random.integers(1, 6, (kinds, 2))
    capacity = random.integers(6, 13, (nodes, 2))
    count = random.integers(1, 5, kinds)
    allowed = random.random((kinds, nodes)) < draw(st.sampled_from([0.7, 1.0]))
    allowed[np.arange(kinds), random.integers(0, nodes, kinds)] = True
    x = np.zeros((kinds, nodes), dtype=np.int64)
    for kind, node in [(k, n) for k in range(kinds) for n in range(nodes)]:
        free = capacity[node] - load(x, requests)[node]
        most = int((free // requests[kind]).min()) if allowed[kind, node] else 0
        x[kind, node] = min(count[kind] - x[kind].sum(), most)
    none = np.zeros(kinds, dtype=np.bool_)
    problem = PlacementProblem(
        priorities=(0,),
        capacity=capacity,
        requests=requests,
        tier=np.zeros(kinds, dtype=np.int64),
        is_running=none,
        yields=none,
        budget_of=np.full(kinds, -1),
        budgets=(),
        allowed=allowed,
        home=np.zeros_like(x),
        count=count,
        members=((),) * kinds,
        rows=tuple(range(nodes)),
        settled=((0, 0),),
        undecided=(0,),
    )
    frozen = np.minimum(x, random.integers(0, 2, x.shape))
    may_wait = random.random(kinds) < draw(st.sampled_from([0.5, 1.0]))
    searched = np.ones(kinds, dtype=np.bool_)
    clock = SearchClock(SearchBudget(1.0, is_deterministic=True), lambda: 0.0)
    return OverflowSearch(problem, SearchStart(x, frozen, may_wait, searched, draw(st.integers(0, 9))), clock)


def stepped(search: OverflowSearch, node: int) -> bool:
    """One exchange off a node in every attempt, whether it is over-full or not."""
    return search._exchange(np.full(search._attempts, node % search._nodes))


@LAWS
@given(searches(), st.lists(st.integers(0, 4), max_size=8))
def test_what_is_free_is_what_the_pods_leave(search: OverflowSearch, steps: list[int]) -> None:
    if search.waiting:
        search.add_one()
    for node in steps:
        stepped(search, node)
    for attempt in range(search._attempts):
        free = search._free_at(search._at[attempt]) / search._scale
        assert np.allclose(search._slack[:, attempt, : search._nodes].T, free)
    assert (search._at[:, : search._nodes] == np.arange(search._nodes)).all(), "the empty items stay"


@LAWS
@given(searches(), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_an_exchange_is_worth_the_overflow_that_it_takes_away(search: OverflowSearch, steps: list[int]) -> None:
    """But for what the item's own node overflows by now, which is the same whoever its partner is."""
    if search.waiting:
        search.add_one()
    for node in steps:
        nodes = np.full(search._attempts, node % search._nodes)
        on_node = search._at == nodes[:, None]
        attempt, here = np.nonzero(on_node[:, search._nodes :])
        here = here + search._nodes
        others = search._others()
        judged = search._judge(nodes, on_node[:, others], attempt, here, others)
        for row, (of, item) in enumerate(zip(attempt.tolist(), here.tolist(), strict=True)):
            for column, other in enumerate(others.tolist()):
                expected = worth(search, of, item, other)
                told = float(judged[row, column])
                assert told == expected or abs(told - expected) < 1e-3 + 1e-6 * abs(expected), (of, item, other)
        if not stepped(search, node):
            return


def worth(search: OverflowSearch, attempt: int, item: int, other: int) -> float:
    """From the slack alone, pod by pod; refusals as the search counts them."""
    at, slack, sizes = search._at[attempt], search._slack[:, attempt], search._sizes
    here, there = int(at[item]), int(at[other])
    change = sizes[:, item] - sizes[:, other]
    told = float(np.minimum(slack[:, here] + change, 0.0).sum())
    told += float((np.minimum(slack[:, there] - change, 0.0) - np.minimum(slack[:, there], 0.0)).sum())
    told -= overflow._REFUSED * int(search._tabu[attempt, other, here] > search._step)
    told -= overflow._REFUSED * int(search._tabu[attempt, item, there] > search._step)
    told -= overflow._FORBIDDEN * int(here == there)
    told -= overflow._FORBIDDEN * int(search._stays[item] and there == search._nodes)
    if search._allowed is not None:
        told -= overflow._FORBIDDEN * int(not (search._allowed[item, there] and search._allowed[other, here]))
    return told


@LAWS
@given(searches(), st.integers(1, 12))
def test_what_is_found_places_one_more_and_moves_nobody_where_it_may_not_be(search: OverflowSearch, steps: int) -> None:
    problem, waiting, before = search._problem, search.waiting, search.placement()
    if not waiting:
        return
    search.add_one()
    is_repaired = search.repair(steps, 1e9)
    x = search.placement()
    assert search.waiting == waiting - is_repaired
    assert x.sum() == before.sum() + is_repaired
    assert (load(x, problem.requests) <= problem.capacity).all()
    assert (x >= search._frozen).all() and not x[~problem.allowed].any()
    assert is_repaired or (x == before).all()
    must_stay = np.unique(search._kind[search._stays[search._nodes :]])
    assert (x.sum(axis=1) >= before.sum(axis=1))[must_stay].all()
