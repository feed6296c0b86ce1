"""The optimiser's problem in integers: what a placement is worth, and which constraint a wrong one breaks."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from htas.model.policy import Engine
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock, Shares
from htas.planning.solvers.placement.engines import ENGINES
from htas.planning.solvers.placement.greedy import best_fit, by_importance, settle
from htas.planning.solvers.placement.problem import PlacementProblem, load

ALL, NONE = np.True_, np.False_


def problem(**fields: Any) -> PlacementProblem:
    """Two nodes of 4 and 6 cores. Kinds: two of 2 cores at home on node 0, one of 3 on node 1, less important; two of
    3 that wait, the least important.
    """
    made: dict[str, Any] = {
        "priorities": (10, 5, 0),
        "capacity": np.array([[4], [6]]),
        "requests": np.array([[2], [3], [3]]),
        "tier": np.array([0, 1, 2]),
        "is_running": np.array([True, True, False]),
        "yields": np.array([False, False, False]),
        "budget_of": np.array([-1, -1, -1]),
        "budgets": (),
        "allowed": np.ones((3, 2), dtype=np.bool_),
        "home": np.array([[2, 0], [0, 1], [0, 0]]),
        "count": np.array([2, 1, 2]),
        "members": ((), (), ()),
        "rows": (0, 1),
        "settled": ((0, 0), (0, 0), (0, 0)),
        "undecided": (0, 0, 0),
    }
    return PlacementProblem(**(made | fields))


def x(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


AT_HOME = x((2, 0), (0, 1), (0, 0))
ONE_MORE = x((2, 0), (0, 1), (0, 1))
ONE_MOVED = x((1, 1), (0, 1), (1, 0))
ONE_GONE = x((2, 0), (0, 0), (0, 2))


@pytest.mark.parametrize(
    ("placement", "placed", "stays", "score"),
    [
        pytest.param(AT_HOME, (2, 3, 3), (4, 6, 6), (2, 4, 3, 6, 3, 6), id="as it is"),
        pytest.param(ONE_MORE, (2, 3, 4), (4, 6, 6), (2, 4, 3, 6, 4, 6), id="one that waits comes"),
        pytest.param(ONE_MOVED, (2, 3, 4), (3, 5, 5), (2, 3, 3, 5, 4, 5), id="one moves"),
        pytest.param(ONE_GONE, (2, 2, 4), (4, 4, 4), (2, 4, 2, 4, 4, 4), id="one is evicted for two"),
    ],
)
def test_what_a_placement_is_worth(
    placement: np.ndarray, placed: tuple[int, ...], stays: tuple[int, ...], score: tuple[int, ...]
) -> None:
    it = problem()
    assert tuple(it.placed(placement, tier) for tier in range(3)) == placed
    assert tuple(it.stays(placement, tier) for tier in range(3)) == stays
    assert it.score(placement) == score
    assert [it.most_stays(tier) for tier in range(3)] == [4, 6, 6]
    assert [it.wanted(tier) for tier in range(3)] == [2, 3, 5]
    assert [it.upto(tier).tolist() for tier in range(2)] == [[True, False, False], [True, True, False]]


def test_what_pods_ask_for_is_taken_off_their_nodes() -> None:
    it = problem()
    assert load(ONE_MOVED, it.requests).tolist() == [[5], [5]]
    assert it.free(ONE_MORE).tolist() == [[0], [0]]
    assert it.free(AT_HOME).tolist() == [[0], [3]]


FORBIDDEN = np.array([[True, False], [True, True], [True, True]])


@pytest.mark.parametrize(
    ("placement", "fields", "is_valid"),
    [
        pytest.param(ONE_MORE, {}, True, id="whatever fits"),
        pytest.param(x((2, 0), (0, 1), (0, 2)), {}, False, id="a core too much on a node"),
        pytest.param(
            x((3, 0), (0, 1), (0, 0)), {"capacity": np.array([[9], [9]])}, False, id="a pod more than there is"
        ),
        pytest.param(x((2, 0), (0, 1), (-1, 0)), {}, False, id="less than none"),
        pytest.param(x((1, 1), (0, 1), (0, 0)), {"allowed": FORBIDDEN}, False, id="where its filters refuse it"),
        pytest.param(AT_HOME, {"allowed": FORBIDDEN}, True, id="where its filters accept it"),
    ],
)
def test_which_placements_are_valid(placement: np.ndarray, fields: dict[str, Any], is_valid: bool) -> None:
    assert problem(**fields).is_valid(placement) == is_valid


COVERED = {"budget_of": np.array([0, 1, -1])}


@pytest.mark.parametrize(
    ("placement", "disturbed"),
    [
        pytest.param(AT_HOME, [0, 0], id="nobody"),
        pytest.param(x((1, 1), (0, 1), (0, 0)), [1, 0], id="one that moves"),
        pytest.param(x((0, 2), (0, 0), (0, 0)), [2, 1], id="two that move and one that is evicted"),
        pytest.param(ONE_MORE, [0, 0], id="who comes disturbs nobody"),
    ],
)
def test_budgets_lose_those_that_leave_their_node(placement: np.ndarray, disturbed: list[int]) -> None:
    for allowed in ((0, 0), (1, 1), (2, 1)):
        it = problem(**COVERED, budgets=allowed)
        assert it.disturbed(placement) == disturbed
        is_kept = all(many <= most for many, most in zip(disturbed, allowed, strict=True))
        assert it.is_valid(placement) == is_kept


@pytest.mark.parametrize(
    ("placement", "yields", "in_vain"),
    [
        pytest.param(ONE_GONE, (False, True, False), [False, True], id="it left for less important work"),
        pytest.param(x((1, 1), (0, 0), (0, 0)), (False, True, False), [False, False], id="it left for more important work"),
        pytest.param(x((2, 0), (1, 0), (0, 0)), (False, True, False), [False, True], id="it moved for nobody"),
        pytest.param(x((1, 0), (0, 1), (0, 0)), (True, True, False), [True, False], id="nothing is more important than it"),
        pytest.param(ONE_GONE, (True, False, False), [False, False], id="it need not be asked for"),
        pytest.param(AT_HOME, (True, True, True), [False, False], id="it stayed"),
    ],
)  # fmt: skip
def test_who_yields_leaves_only_where_more_important_work_arrives(
    placement: np.ndarray, yields: tuple[bool, ...], in_vain: list[bool]
) -> None:
    assert problem(yields=np.array(yields)).yielded_in_vain(placement).tolist() == in_vain


def test_the_present_placement_is_filled_up_where_least_is_left() -> None:
    it = problem(capacity=np.array([[7], [6]]))
    found = AT_HOME.copy()
    best_fit(it, found, [2])
    assert found.tolist() == [[2, 0], [0, 1], [1, 1]]
    tight = problem(capacity=np.array([[9], [6]]), count=np.array([2, 1, 1]))
    found = AT_HOME.copy()
    best_fit(tight, found, [2])
    assert found.tolist() == [[2, 0], [0, 1], [0, 1]], "three cores are left there, and five on the other"


def test_nothing_is_filled_in_where_filters_refuse_or_the_node_holds_too_much() -> None:
    found = AT_HOME.copy()
    best_fit(problem(capacity=np.array([[3], [6]]), allowed=FORBIDDEN & [[1, 1], [1, 1], [1, 0]] > 0), found, [2])
    assert found.tolist() == AT_HOME.tolist()


def test_more_important_kinds_come_first_and_of_equals_the_larger() -> None:
    it = problem(tier=np.array([1, 1, 0]))
    assert by_importance(it, np.array([True, True, True])) == [2, 1, 0]
    assert by_importance(it, np.array([True, False, True])) == [2, 0]


def test_less_important_pods_keep_their_nodes_beside_a_new_placement_where_they_can() -> None:
    moved = x((1, 1), (0, 0), (0, 0))
    assert settle(problem(), moved, AT_HOME, 0).tolist() == [[1, 1], [0, 1], [0, 0]]
    crowded = x((0, 2), (0, 0), (0, 0))
    assert settle(problem(), crowded, AT_HOME, 0).tolist() == [[0, 2], [1, 0], [0, 0]]


def test_pods_under_a_budget_are_where_a_placement_has_them() -> None:
    it = problem(budget_of=np.array([-1, 0, -1]), budgets=(1,))
    assert settle(it, x((1, 1), (1, 0), (0, 0)), AT_HOME, 0).tolist() == [[1, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("fields", "is_sound"),
    [
        ({"seconds": 0.0}, True),
        ({"seconds": -0.1}, False),
        ({"workers": 1}, True),
        ({"workers": 0}, False),
        ({"share": 0.0}, True),
        ({"share": 1.0}, True),
        ({"share": 1.1}, False),
        ({"share": -0.1}, False),
    ],
    ids=str,
)
def test_budgets_that_make_no_sense_are_refused(fields: dict[str, Any], is_sound: bool) -> None:
    if is_sound:
        assert msgspec.structs.asdict(SearchBudget(**fields)).items() >= fields.items()
    else:
        with pytest.raises(ValueError, match="correct the configuration's section `fallback`"):
            SearchBudget(**fields)


def test_work_is_counted_instead_of_seconds_where_the_answer_is_to_be_the_same() -> None:
    told, counted = (
        SearchClock(SearchBudget(10.0), lambda: 3.0),
        SearchClock(SearchBudget(10.0, is_deterministic=True), lambda: 3.0),
    )
    for clock in (told, counted):
        clock.work(1.0)
        clock.work(0.5)
    assert (told.now(), counted.now()) == (3.0, 1.5)
    assert (told.left(5.0), told.left(2.0), counted.left(5.0)) == (2.0, 0.0, 3.5)
    assert (told.stopwatch_left(5.0), counted.stopwatch_left(5.0)) == (2.0, None)
    assert [told.is_over(at) for at in (2.9, 3.0, 3.1)] == [True, True, False]


def test_building_the_problem_is_taken_off_what_a_search_may_use() -> None:
    now = [2.0]
    shares = Shares(SearchClock(SearchBudget(10.0, share=0.5), lambda: now[0]), 1, 0.4)
    assert shares.deadline() == pytest.approx(8.0 - 2.0), "two of five seconds are kept for the second stage"
    now[0] = 9.0
    assert shares.deadline() == 9.0, "never in the past"


@pytest.mark.parametrize(
    ("engine", "deadlines"),
    [
        pytest.param(Engine.CP_SAT, [4.0, 6.0, 8.0, 10.0], id="cp-sat: halves, as the document has it"),
        pytest.param(Engine.DECOMPOSITION, [5.0, 6.0, 9.0, 10.0], id="decomposition: three quarters for placing"),
        pytest.param(Engine.PORTFOLIO, [5.0, 6.0, 9.0, 10.0], id="portfolio: as decomposition"),
    ],
)
def test_of_a_tiers_time_each_engine_keeps_a_part_for_either_stage(
    engine: Engine, deadlines: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tiers of 10 s, of which 8 s are kept: 4 s for each tier, and 2 s for whoever needs them first."""
    told: list[float] = []
    two_tiers = problem(priorities=(10, 0), tier=np.array([0, 1, 1]))
    search = ENGINES[engine](two_tiers, SearchClock(SearchBudget(10.0, share=0.8), lambda: 0.0))
    for stage in ("place", "stay"):
        monkeypatch.setattr(search, stage, lambda _stage, _reached, deadline: told.append(deadline))
    search.run()
    assert told == pytest.approx(deadlines)
