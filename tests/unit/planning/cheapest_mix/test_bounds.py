"""Bounds of the cheapest mix: the whole one is what trying all mixes finds, and Farley's never more."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.planning.solvers.cheapest_mix.bounds import LARGEST, Cut, farley, whole_bound


def cut(needed: int, *worths: int) -> Cut:
    return Cut(worths, needed, ())


def costs(*each: int) -> Any:
    return np.array(each, dtype=np.int64)


TABLE = [
    pytest.param([cut(3, 2)], (5,), 100, 10, id="machines are bought by the piece: two of 2 for 3"),
    pytest.param([cut(1, 2)], (5,), 100, 5, id="one is needed: a whole machine"),
    pytest.param([cut(3, 1, 2)], (3, 5), 100, 8, id="one of each is cheaper than two of the larger"),
    pytest.param([cut(4, 1, 4), cut(4, 4, 1)], (3, 3), 100, 6, id="CPU on one, memory on the other"),
    pytest.param([cut(3, 2), cut(0, 0)], (5,), 100, 10, id="beside it a resource of which nothing is needed"),
    pytest.param([cut(3, 2), cut(-7, 1)], (5,), 100, 10, id="and one that nodes which are there have more than enough of"),
    pytest.param([cut(3, 2)], (5,), 10, 10, id="a mix at hand costs that already"),
    pytest.param([cut(3, 2, 3)], (400, 600), 9_000, 600, id="prices with a common divisor"),
    pytest.param([cut(0, 2)], (5,), 100, 0, id="nothing is needed at all"),
    pytest.param([], (5,), 100, 0, id="nothing is known"),
    pytest.param([cut(3, 2)], (0,), 100, 0, id="a machine for nothing"),
    pytest.param([cut(3, 2)], (5,), LARGEST, 0, id="numbers beyond CP-SAT's"),
]  # fmt: skip


@pytest.mark.parametrize(("cuts", "prices", "at_most", "want"), TABLE)
def test_the_whole_bound_is(cuts: list[Cut], prices: tuple[int, ...], at_most: int, want: int) -> None:
    assert whole_bound(cuts, costs(*prices), at_most) == want


@pytest.mark.parametrize(
    ("one", "prices", "want"),
    [
        pytest.param(cut(3, 2), (5,), 8, id="one and a half machines, rounded up"),
        pytest.param(cut(4, 1, 4), (3, 3), 3, id="by the machine that gives most for its price"),
        pytest.param(cut(4, 0, 4), (1, 3), 3, id="a machine that is worth nothing helps nobody"),
        pytest.param(cut(0, 2), (5,), 0, id="nothing is needed"),
        pytest.param(cut(3, 0), (5,), 0, id="nobody sells it"),
    ],
)
def test_farleys_bound_is(one: Cut, prices: tuple[int, ...], want: int) -> None:
    assert farley(one, costs(*prices)) == want


@st.composite
def shops(draw: Any) -> tuple[list[Cut], list[int]]:
    columns = draw(st.integers(1, 3))
    prices = draw(st.lists(st.integers(1, 12), min_size=columns, max_size=columns))
    worths = st.lists(st.integers(0, 5), min_size=columns, max_size=columns)
    found = draw(st.lists(st.tuples(worths, st.integers(-2, 9)), min_size=1, max_size=3))
    return [cut(needed, *each) for each, needed in found], prices


@settings(max_examples=150, deadline=None, derandomize=True)
@given(shops())
def test_no_whole_mix_is_cheaper_and_one_costs_as_much(shop: tuple[list[Cut], list[int]]) -> None:
    cuts, prices = shop
    mixes = product(range(10), repeat=len(prices))
    enough = [
        sum(count * price for count, price in zip(mix, prices, strict=True))
        for mix in mixes
        if all(sum(n * w for n, w in zip(mix, each.worths, strict=True)) >= each.needed for each in cuts)
    ]
    if not enough or not min(enough):
        return
    assert whole_bound(cuts, costs(*prices), max(enough)) == min(enough)
    assert all(farley(each, costs(*prices)) <= min(enough) for each in cuts)
