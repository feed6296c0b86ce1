"""What whole machines for so many pods of a kind cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.model.flavours import Flavour
from htas.planning.cluster.simulated import open_simulation
from htas.planning.provision.own_machine import OwnMachine
from tests.builders import NOW, batch_group, make_flavour, make_job, make_policy, make_snapshot

HELD_S = 660
"""A start of a minute and a run of ten, billed by the minute."""


def together(flavours: Sequence[Flavour], count: int) -> float:
    """The price an hour, in the price file's currency, of machines for so many jobs of a core."""
    policy = make_policy([batch_group()], flavours)
    snapshot = make_snapshot([], [make_job("job", 600, cpu="1", memory="1Mi", created_at=NOW)])
    simulated = open_simulation(snapshot, policy, NOW)
    cls = simulated.book.class_of(snapshot.cluster.pods[0])
    return OwnMachine(simulated.sim, snapshot, policy).together(cls, count) / HELD_S / 1e9


def cores(count: int, price: str, stock: int | None = None) -> Flavour:
    return make_flavour(f"c{count}", str(count), "64Gi", price, stock=stock)


@pytest.mark.parametrize(
    ("flavours", "count", "price"),
    [
        pytest.param([cores(3, "0.3")], 1, 0.3, id="one on a machine for three"),
        pytest.param([cores(3, "0.3")], 4, 0.6, id="one more than fills a machine, of one flavour"),
        pytest.param(
            [cores(3, "0.3"), cores(1, "0.11")], 7, 0.71, id="two full ones, and the cheapest for the one left"
        ),
        pytest.param([cores(3, "0.3"), cores(10, "1.2"), cores(1, "0.15")], 9, 0.9, id="three full ones"),
        pytest.param([cores(1, "0.1"), cores(10, "0.3")], 9, 0.3, id="a larger one for all costs less than nine small"),
        pytest.param([cores(3, "0.1", stock=1), cores(1, "0.2")], 7, 0.9, id="of the best there is one"),
        pytest.param([cores(3, "0.1", stock=2)], 7, math.inf, id="there are not enough machines"),
        pytest.param([cores(3, "0.1", stock=2)], 6, 0.2, id="there are just enough"),
        pytest.param([cores(1, "0.1", stock=1), cores(4, "1")], 4, 1.0, id="one for all, though one is cheaper a pod"),
    ],
)
def test_whole_machines_for_so_many_pods(flavours: Sequence[Flavour], count: int, price: float) -> None:
    assert together(flavours, count) == pytest.approx(price)


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 60), st.integers(1, 4)),
        min_size=1,
        max_size=3,
        unique_by=lambda each: each[0],
    ),
    st.integers(1, 12),
)
def test_it_is_never_below_the_least_that_is_possible_nor_far_above(
    offered: list[tuple[int, int, int]], count: int
) -> None:
    """Never more than by the dearest machine; inf where there are too few, and nowhere else."""
    flavours = [cores(size, f"{price / 100:.2f}", stock) for size, price, stock in offered]
    ways = itertools.product(*(range(stock + 1) for _, _, stock in offered))
    least = min(
        (
            sum(number * price for number, (_, price, _) in zip(way, offered, strict=True)) / 100
            for way in ways
            if sum(number * size for number, (size, _, _) in zip(way, offered, strict=True)) >= count
        ),
        default=np.inf,
    )
    found = together(flavours, count)
    assert math.isinf(found) is math.isinf(least)
    assert found >= least - 1e-9
    if not math.isinf(least):
        assert found <= least + max(price for _, price, _ in offered) / 100 + 1e-9
