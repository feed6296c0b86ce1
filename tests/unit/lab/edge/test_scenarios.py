"""The edge experiment's scenarios: whose pods a load makes, and how many of them the edge can hold."""

from __future__ import annotations

from statistics import fmean

import pytest

from htas.model.edge import TIER_LABEL
from htas.sandbox.world import World
from tests.builders import make_node
from tools.bench import edge_division
from tools.lab.edge.results import best_mean_ratio, best_ratio, fillings
from tools.lab.edge.scenarios import (
    CYCLE_S,
    CYCLES,
    MEANS,
    RATED,
    SCENARIOS,
    SERVICES,
    SWEEPS,
    TARGET,
    Scenario,
    loads,
    nodes,
    pods_for,
    workload,
)


@pytest.mark.parametrize(
    ("load", "pods"),
    [
        pytest.param(0.0, (1, 1, 1, 1), id="one pod of each is always there"),
        pytest.param(1.0, (3, 1, 3, 1), id="a quarter of 14 GB holds three and a half of the small ones"),
        pytest.param(8 / 7, (4, 2, 4, 2), id="four small or two large ones"),
        pytest.param(2.0, (7, 3, 7, 3), id="twice the edge"),
    ],
)
def test_a_load_is_divided_equally_among_the_services(load: float, pods: tuple[int, ...]) -> None:
    assert tuple(pods_for(load).values()) == pods


def test_loads_have_the_scenarios_mean_and_the_same_seed_the_same_loads() -> None:
    scenario = Scenario(1.5, 0.1)
    drawn = [load for seed in range(1, 51) for load in loads(scenario, seed)]
    assert fmean(drawn) == pytest.approx(1.5, abs=0.02)
    assert loads(scenario, 7) == loads(scenario, 7) != loads(scenario, 8)
    assert len(loads(scenario, 7)) == CYCLES


def test_the_two_sweeps_share_one_scenario() -> None:
    assert len(SCENARIOS) == 10
    assert [each.name for each in MEANS] == ["1.1_0.4", "1.2_0.4", "1.3_0.4", "1.4_0.4", "1.5_0.4", "1.6_0.4"]
    assert SCENARIOS["1.5_0.4"] in SWEEPS["mean"] and SCENARIOS["1.5_0.4"] in SWEEPS["deviation"]


def test_scalers_make_the_pods_that_a_cycles_load_asks_for() -> None:
    """On one node that holds everything, at the end of each cycle."""
    scenario = SCENARIOS["1.3_0.4"]
    world = World(start=0.0)
    world.add_nodes([make_node("big", "64", "64Gi")])
    world.load(workload(scenario, 3))
    for cycle, load in enumerate(loads(scenario, 3), 1):
        while world.clock.now() < cycle * CYCLE_S - 1:
            world.advance_to(world.clock.now() + 1)
            for pod in world.cluster.observe().pods:
                if pod.node is None:
                    world.cluster.bind(pod, "big")
        there = [pod.owner.name for pod in world.cluster.observe().pods if pod.owner is not None]
        assert {name: there.count(name) for name in SERVICES} == pods_for(load)


def test_the_edge_is_table_4s() -> None:
    tiers = {node.name: node.labels[TIER_LABEL] for node in nodes()}
    assert tiers == {"n2": "edge", "n3": "edge", "n4": "edge", "n5": "cloud"}


def test_fillings_use_the_edge_up() -> None:
    """Fourteen small pods fill it; of large ones there are six, since two nodes hold an odd number of small ones."""
    found = {tuple(each) for each in fillings().tolist()}
    assert (7, 0, 7, 0) in found
    assert max(b + d for _, b, _, d in found) == 6
    assert all(a + 2 * b + c + 2 * d <= 14 for a, b, c, d in found)


@pytest.mark.parametrize(
    ("pods", "of_all", "of_services"),
    [
        pytest.param((1, 1, 1, 1), 1.0, 1.0, id="all fit"),
        pytest.param((7, 7, 0, 0), 10 / 14, (1 + 3 / 7) / 4, id="seven small ones, then three large ones"),
        pytest.param((20, 0, 20, 0), 14 / 40, 14 / 80, id="fourteen of forty"),
        pytest.param((2, 1, 20, 1), 14 / 24, (1 + 1 + 8 / 20 + 1) / 4, id="services of few pods are worth more"),
    ],
)
def test_what_no_scheduler_can_exceed(pods: tuple[int, ...], of_all: float, of_services: float) -> None:
    assert best_ratio(pods) == pytest.approx(of_all)
    assert best_mean_ratio(pods) == pytest.approx(of_services)


@pytest.mark.parametrize(
    ("division", "want"),
    [
        pytest.param("same-pods", {"a": 3, "b": 3, "c": 3, "d": 3}, id="as many pods of each service"),
        pytest.param("same-cores", {"a": 6, "b": 6, "c": 6, "d": 3}, id="as many cores in sum"),
    ],
)
def test_the_load_may_be_divided_otherwise(division: str, want: dict[str, int]) -> None:
    divided = edge_division.DIVISIONS[division]
    assert divided(1.5) == want
    asked = workload(SCENARIOS["1.5_0.1"], 1, divided).loads[: len(want)]
    first = loads(SCENARIOS["1.5_0.1"], 1)[0]
    assert [load.requests_per_s / (RATED * TARGET) for load in asked] == list(divided(first).values())
