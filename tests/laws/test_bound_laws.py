"""Laws of the fluid bound and of flavours that others replace, against all pairs of flavours tried one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem
from htas.planning.solvers.cheapest_mix.mix import cheapest
from htas.planning.solvers.fluid import Cover, MachineSupply, bound_by_kinds

Flavours = list[tuple[int, int, int]]
"""(cpu, memory, price)."""


@st.composite
def flavours(draw: Any) -> Flavours:
    one = st.tuples(st.integers(1, 64), st.integers(1, 64), st.integers(1, 10**6))
    return [tuple(each) for each in draw(st.lists(one, min_size=1, max_size=9))]


def best_dual(sold: Flavours, cpu: int, memory: int) -> Fraction:
    """Σ λ · demand at the best of all points where two constraints meet and all hold."""
    lines = [(Fraction(a), Fraction(b), Fraction(p)) for a, b, p in sold] + [
        (Fraction(1), Fraction(0), Fraction(0)),
        (Fraction(0), Fraction(1), Fraction(0)),
    ]
    best = Fraction(0)
    for (a, b, p), (c, d, q) in combinations(lines, 2):
        determinant = a * d - b * c
        if determinant:
            x, y = (p * d - q * b) / determinant, (a * q - c * p) / determinant
            if x >= 0 and y >= 0 and all(x * e + y * f <= r for e, f, r in sold):
                best = max(best, x * cpu + y * memory)
    return best


@settings(max_examples=150, deadline=None, derandomize=True)
@given(flavours(), st.integers(1, 10**4), st.integers(1, 10**4))
def test_the_bound_is_the_best_dual_and_never_more(sold: Flavours, cpu: int, memory: int) -> None:
    best = best_dual(sold, cpu, memory)
    found = lower_bound_nanos((cpu, memory), [each[:2] for each in sold], [each[2] for each in sold])
    assert best * (1 - Fraction(1, 10**6)) <= found <= best + 1


BOX = ((4, 8, 0), 100)
"""Cores and memory; the third resource is GPUs."""


@pytest.mark.parametrize(
    ("beside", "demand", "want"),
    [
        pytest.param([], (8, 16, 0), 200, id="two boxes"),
        pytest.param([((0, 0, 1), 0)], (8, 16, 0), 200, id="GPUs for nothing, of which none are asked for, and nothing else"),
        pytest.param([((0, 0, 1), 50)], (8, 16, 0), 200, id="GPUs for money"),
        pytest.param([((1, 0, 0), 0)], (8, 16, 0), 200, id="cores for nothing: memory costs what it does"),
        pytest.param([((1, 1, 0), 0)], (8, 16, 0), 0, id="all of it for nothing"),
        pytest.param([((8, 4, 0), 100)], (12, 12, 0), 200, id="two kinds of box that together are what is asked for"),
        pytest.param([((8, 4, 0), 1)], (12, 12, 0), 3, id="of the cheaper kind alone"),
        pytest.param([((8, 4, 0), 100), ((0, 0, 2), 0)], (12, 12, 0), 200, id="the two kinds beside a useless gift"),
    ],
)  # fmt: skip
def test_the_bound_beside_what_is_of_no_use_or_for_nothing(
    beside: list[tuple[tuple[int, ...], int]], demand: tuple[int, ...], want: int
) -> None:
    sold = [BOX, *beside]
    assert lower_bound_nanos(demand, [each for each, _ in sold], [price for _, price in sold]) == want


@settings(max_examples=40, deadline=None, derandomize=True)
@given(flavours(), st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=4))
def test_flavours_that_others_replace_cost_nothing_to_leave_out(sold: Flavours, pods: list[tuple[int, int]]) -> None:
    def instance(kinds: Flavours) -> MixProblem:
        return MixProblem(
            requests=np.array(pods, dtype=np.int64),
            counts=np.ones(len(pods), dtype=np.int64),
            levels=np.zeros(len(pods), dtype=np.int64),
            free=np.array([each[:2] for each in kinds], dtype=np.int64),
            prices=np.array([each[2] for each in kinds], dtype=np.int64),
            takes=np.ones((len(kinds), len(pods)), dtype=np.bool_),
            holds=(1,),
        )

    sold = [*sold, (64, 64, 10**6)]
    worse = [(max(1, cpu - 1), memory, price + 1) for cpu, memory, price in sold]
    alone, beside = (cheapest(instance(kinds), {}, Effort(500.0)) for kinds in (sold, [*worse, *sold]))
    assert alone is not None
    assert beside is not None
    assert beside.cost == alone.cost
    assert len(instance([*worse, *sold]).undominated()[1]) <= len(sold)


Rented = tuple[list[list[int]], list[MachineSupply], list[MachineSupply], list[Cover], int]


@st.composite
def rented(draw: Any) -> Rented:
    """Work on machines that take it: demands of kinds, flavours, free rooms, how many machines of some flavours there
    are, and the price of what is rented.
    """
    kinds = draw(st.integers(1, 4))
    sets = st.frozensets(st.integers(0, kinds - 1), min_size=1)
    size = st.tuples(st.integers(0, 64), st.integers(0, 64), st.integers(0, 2))
    sold = [MachineSupply(draw(size), draw(sets), draw(st.integers(0, 10**6))) for _ in range(draw(st.integers(1, 5)))]
    rooms = [MachineSupply(draw(size), draw(sets)) for _ in range(draw(st.integers(0, 2)))]
    demands, paid = [[0, 0, 0] for _ in range(kinds)], 0
    bought = draw(st.lists(st.integers(0, len(sold) - 1), max_size=6))
    places = draw(st.lists(st.frozensets(st.integers(0, len(sold) - 1)), max_size=3))
    covers = [Cover(some, sum(place in some for place in bought)) for some in places]
    for machine in [*rooms, *(sold[place] for place in bought)]:
        left, paid = list(machine.offers), paid + machine.price
        for kind in draw(st.permutations(sorted(machine.takes))):
            used = [draw(st.integers(0, amount)) for amount in left]
            left = [amount - part for amount, part in zip(left, used, strict=True)]
            demands[kind] = [amount + part for amount, part in zip(demands[kind], used, strict=True)]
    return demands, sold, rooms, covers, paid


@settings(max_examples=300, deadline=None, derandomize=True)
@given(rented())
def test_no_machines_that_hold_the_work_cost_less_than_the_bound_by_kinds(
    what: Rented,
) -> None:
    demands, sold, rooms, covers, paid = what
    fluid, numbered = bound_by_kinds(demands, sold, rooms), bound_by_kinds(demands, sold, rooms, covers)
    assert 0 <= fluid <= paid
    assert 0 <= numbered <= paid
    assert numbered >= fluid * (1 - 1e-6) - 1, "what is known besides loosens no bound"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(flavours(), st.integers(1, 10**4), st.integers(1, 10**4))
def test_of_one_kind_the_bound_is_the_fluid_one(sold: Flavours, cpu: int, memory: int) -> None:
    machines = [MachineSupply(each[:2], frozenset({0}), each[2]) for each in sold]
    best = best_dual(sold, cpu, memory)
    assert best * (1 - Fraction(1, 10**5)) <= bound_by_kinds([(cpu, memory)], machines) <= best + 1


def test_work_that_spot_machines_do_not_take_is_priced_on_the_others() -> None:
    """Four cores at 1 on spot machines and at 4 on others: 8 cores that tolerate spot cost 2, and 8 that do not 8."""
    spot, other = MachineSupply((4,), frozenset({0}), 1), MachineSupply((4,), frozenset({0, 1}), 4)
    assert bound_by_kinds([(8,), (8,)], [spot, other]) == 10
    assert bound_by_kinds([(8,), (8,)], [spot, other], [MachineSupply((4,), frozenset({1}))]) == 6


def test_work_that_needs_machines_by_number_is_priced_by_number_and_by_size() -> None:
    """Machines of 4 cores at 1 and of 8 at 3: three that keep apart cost 3, beside 20 cores of others 5, which only
    the small ones take at their price.
    """
    small, large = MachineSupply((4,), frozenset({0, 1}), 1), MachineSupply((8,), frozenset({0, 1}), 3)
    three = Cover(frozenset({0, 1}), 3)
    assert bound_by_kinds([(3,), (0,)], [small, large], [], [three]) == 3
    assert bound_by_kinds([(3,), (17,)], [small, large], [], [three]) == 5
    assert bound_by_kinds([(3,), (17,)], [small, large], [], [Cover(frozenset({1}), 2)]) == 7
    assert bound_by_kinds([(3,)], [small], [], [Cover(frozenset(), 2), Cover(frozenset({0}), -1)]) == 1
