"""The bound and the optimum by node patterns, on programs so small that every placement can be tried."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.master import Master
from htas.planning.solvers.placement.problem import Floor, Measure, Program
from tests.laws.test_priority_laws import LAWS

FOR_EVER, ALL = 1000.0, 10_000


@st.composite
def programs(draw: Any) -> Program:
    """Up to three kinds of two pods on up to three nodes, some of them at home; a floor on some measure."""
    kinds, nodes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    requests, room = random.integers(1, 4, (kinds, 2)), random.integers(2, 7, (nodes, 2))
    count, allowed = random.integers(1, 3, kinds), random.random((kinds, nodes)) < 0.85
    home = np.zeros((kinds, nodes), dtype=np.int64)
    for kind in range(kinds):
        for _ in range(int(count[kind])):
            home[kind, random.integers(nodes)] += random.random() < 0.6 and allowed[kind].all()

    def measure() -> Measure:
        return Measure(random.integers(0, 3, kinds), random.integers(0, 2, kinds))

    floors = tuple(Floor(measure(), int(random.integers(0, 4))) for _ in range(draw(st.integers(0, 2))))
    yields, tier = random.random(kinds) < 0.3, random.integers(0, 2, kinds)
    return Program(requests, count, room, allowed, home, tier, yields, measure(), floors)


def placements(program: Program) -> list[Ints]:
    """Every placement that keeps the rules."""
    rows = [
        [row for row in product(range(int(most) + 1), repeat=len(program.room)) if sum(row) <= most]
        for most in program.count
    ]
    return [x for chosen in product(*rows) if is_valid(program, x := np.array(chosen, dtype=np.int64))]


def is_valid(program: Program, x: Ints) -> bool:
    free = program.room - x.T @ program.requests
    floors = all(floor.measure.of(x, program.home) >= floor.least for floor in program.floors)
    return bool((free >= 0).all()) and not x[~program.allowed].any() and floors and not in_vain(program, x)


def in_vain(program: Program, x: Ints) -> bool:
    """Whether a pod that only yields has left a node where none of a more important kind has come."""
    for kind, node in zip(*np.nonzero((x < program.home) & program.yields[:, None]), strict=True):
        above = program.tier < program.tier[kind]
        if not (x[above, node] > program.home[above, node]).any():
            return True
    return False


@LAWS
@given(programs(), st.randoms(use_true_random=False))
def test_the_bound_is_no_less_than_the_best_and_the_best_is_found_and_proven(program: Program, random: Any) -> None:
    every = placements(program)
    if not every:
        return
    best = max(program.objective.of(x, program.home) for x in every)
    clock = SearchClock(SearchBudget(60.0, workers=1, is_deterministic=True), lambda: 0.0)
    master = Master.of(program, ALL, clock)
    assert master is not None
    begun = random.choice(every)
    assert master.tighten(begun, FOR_EVER, -1) >= best
    found = master.solve(begun, best, FOR_EVER, ALL)
    assert found.bound == best
    assert found.x is not None
    assert is_valid(program, found.x)
    assert program.objective.of(found.x, program.home) == best
    more = master.solve(begun, best + 1, FOR_EVER, ALL)
    assert (more.bound, more.x) == (best, None)


@LAWS
@given(programs(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_with_too_few_columns_or_steps_nothing_wrong_is_said(program: Program, columns: int, random: Any) -> None:
    every = placements(program)
    if not every:
        return
    best = max(program.objective.of(x, program.home) for x in every)
    clock = SearchClock(SearchBudget(60.0, workers=1, is_deterministic=True), lambda: 0.0)
    master = Master.of(program, ALL, clock)
    assert master is not None
    begun = random.choice(every)
    assert master.tighten(begun, 0.0, -1) >= best
    found = master.solve(begun, program.objective.of(begun, program.home) + 1, FOR_EVER, columns)
    assert found.bound >= best
    assert found.x is None or is_valid(program, found.x)
