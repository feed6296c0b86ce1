"""Fragmentation and the matching of Algorithm 8 by hand and by brute force."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from htas.planning.solvers.edge.matching import match, match_one_by_one, seat_all, table_is_small
from htas.planning.solvers.edge.search import Fragmentation, SearchEffort, node_fragmentation
from htas.planning.solvers.edge.state import CLOUD, EdgeState, Layout, fits, kinds_of
from tests.unit.planning.edge.states import state

PAIR = {"small": (1, 1, 1.0), "large": (2, 2, 1.0)}


def test_room_that_no_pod_can_use_is_fragmentation():
    # Both nodes have one core and one GiB of four left: of use to half of the pods, so an eighth is lost.
    it = state([(4, 4), (4, 4)], PAIR, {"small": [0, 1], "large": [0, 1]}, {})
    assert node_fragmentation(it) == pytest.approx([0.125, 0.125])


def test_one_node_with_all_the_room_is_less_fragmented_than_two_with_halves():
    apart = state([(4, 4), (4, 4)], PAIR, {"small": [0, 1], "large": [0, 1]})
    together = state([(4, 4), (4, 4)], PAIR, {"small": [0, 0], "large": [0, 1]})
    assert sum(node_fragmentation(together)) < sum(node_fragmentation(apart))


def test_memory_left_beside_no_cpu_is_fragmentation():
    it = state([(4, 8)], {"a": (2, 2, 1.0)}, {"a": [0, 0]})
    assert node_fragmentation(it) == pytest.approx([0.25])  # half of its memory, none of its cpu


def test_a_full_and_an_empty_node_have_none():
    it = state([(2, 2), (2, 2)], {"a": (1, 1, 1.0)}, {"a": [0, 0]})
    assert node_fragmentation(it) == pytest.approx([0.0, 0.0])


def everyone(it: EdgeState) -> list[list[int]]:
    return kinds_of(it, [number for number, pod in enumerate(it.pods) if pod.where == CLOUD])


def test_pods_are_matched_so_that_no_room_is_left_in_pieces():
    # The pair of cores goes to the node with two left, the single one to the node with one.
    it = state([(4, 4), (3, 3)], {"wide": (2, 2, 1.0), "thin": (1, 1, 1.0)}, {"wide": [0, 1]}, {"wide": 1, "thin": 1})
    found = match(Layout(it), everyone(it), Fragmentation(it))
    assert {it.pods[pod].service: node for pod, node in found.targets.items()} == {0: 0, 1: 1}
    assert found.left == ()


def test_what_finds_no_node_is_left():
    it = state([(2, 2)], {"a": (1, 1, 1.0)}, {"a": [0]}, {"a": 3})
    found = match(Layout(it), everyone(it), Fragmentation(it))
    assert len(found.targets) == 1
    assert len(found.left) == 2


def random_state(seed: int) -> EdgeState:
    rng = Random(seed)
    services = {name: (rng.choice([1, 2, 3]), rng.choice([1, 2, 4]), 1.0) for name in "abc"}
    nodes = [(rng.randrange(1, 6), rng.randrange(1, 8)) for _ in range(3)]
    return state(nodes, services, far={name: rng.randrange(3) for name in "abc"})


@pytest.mark.parametrize("seed", range(40))
def test_the_table_matches_as_many_as_brute_force_and_as_little_fragmentation(seed):
    it = random_state(seed)
    layout, fragmentation = Layout(it), Fragmentation(it)
    found = match(layout, everyone(it), fragmentation)
    reached = Layout(it)
    for pod, node in found.targets.items():
        assert reached.takes(node, pod)
        reached.put(pod, node)
    most, least = best_by_brute_force(it, fragmentation)
    assert len(found.targets) == most
    assert fragmentation.total(reached) == pytest.approx(least)


def best_by_brute_force(it: EdgeState, fragmentation: Fragmentation) -> tuple[int, float]:
    results = []
    for places in product([CLOUD, 0, 1, 2], repeat=len(it.pods)):
        layout = Layout(it)
        for pod, place in enumerate(places):
            layout.put(pod, place)
        if all(min(free) >= 0 for free in layout.free):
            results.append((sum(place != CLOUD for place in places), -fragmentation.total(layout)))
    most, least = max(results)
    return most, -least


@pytest.mark.parametrize("seed", range(40))
def test_all_pods_are_seated_by_trying_where_the_table_seats_them_all(seed):
    it = random_state(seed)
    pods = [number for number, _ in enumerate(it.pods)]
    by_table = match(Layout(it), everyone(it), Fragmentation(it))
    by_trying = seat_all(Layout(it), pods, SearchEffort(10**9), most_steps=10_000)
    assert (by_trying is not None) == (not by_table.left)
    layout = Layout(it)
    for pod, node in (by_trying or {}).items():
        assert fits(it.pods[pod].size, layout.free[node])
        layout.put(pod, node)


def test_more_pods_than_a_table_holds_are_matched_one_by_one():
    it = state([(8, 16)] * 3, dict.fromkeys("abcdefgh", (1, 1, 1.0)), far=dict.fromkeys("abcdefgh", 6))
    kinds = everyone(it)
    assert not table_is_small(3, kinds)
    found = match(Layout(it), kinds, Fragmentation(it))
    assert len(found.targets) == 24
    assert len(found.targets) + len(found.left) == 48
    assert found == match_one_by_one(Layout(it), kinds, Fragmentation(it))
