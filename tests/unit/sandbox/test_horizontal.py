"""The sandbox's HorizontalPodAutoscaler, and which pods a ReplicaSet gives up when it shrinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from htas.ports import PermanentError
from htas.sandbox.workload import ControllerKind, HorizontalScaler, Load, Rescale, Workload
from htas.sandbox.world import World
from tests.builders import make_node
from tests.unit.sandbox.situations import bind_all, pods, wait, web, world_of


def scaled(*loads: tuple[float, float], replicas: int = 1, **scaler: Any) -> World:
    """web, whose pods are rated for 10 requests a second, under loads of (seconds, requests a second)."""
    known = {"requests_per_pod": 10.0, "target_utilization": 0.5, "shrink_window_s": 60.0, **scaler}
    world = world_of(web(replicas, ControllerKind.REPLICA_SET), nodes=[make_node("a", "16", "32Gi")], start=0.0)
    world.load(
        Workload(
            "load",
            (),
            scalers=(HorizontalScaler("default", "web", **known),),
            loads=tuple(Load(at_s, "default", "web", rate) for at_s, rate in loads),
        )
    )
    return bind_all(world)


def replicas_over(world: World, *instants: float) -> list[int]:
    """How many pods there are at instants; those that wait are bound then."""
    found = list[int]()
    for at_s in instants:
        world.advance_to(at_s)
        found.append(len(pods(world)))
        bind_all(world)
    return found


@pytest.mark.parametrize(
    ("scaler", "rate", "expected"),
    [
        pytest.param({}, 15.0, [3, 3], id="15 requests a second are three pods' at half use"),
        pytest.param({}, 200.0, [5, 10], id="growth is of four pods, or twofold, and ends at the most allowed"),
        pytest.param({"max_replicas": 4}, 200.0, [4, 4], id="no more than allowed"),
        pytest.param({}, 5.4, [1, 1], id="8 % above the target is within the tolerance"),
        pytest.param({}, 0.0, [1, 1], id="one pod is left without any requests"),
        pytest.param({"is_saturating": True}, 200.0, [2, 4], id="use is seen up to 1: each step doubles"),
    ],
)
def test_pods_follow_the_requests(scaler: dict[str, Any], rate: float, expected: list[int]) -> None:
    world = scaled((10.0, rate), **scaler)
    assert replicas_over(world, 14.9, 15.0, 30.0) == [1, *expected]


def test_a_service_shrinks_once_no_sync_in_the_window_wanted_more() -> None:
    world = scaled((0.0, 25.0), (20.0, 5.0))
    assert replicas_over(world, 14.9, 15.0, 30.0, 74.9, 90.0) == [1, 5, 5, 5, 1]


def test_pods_that_do_not_run_yet_are_waited_for() -> None:
    """Four more that are not bound count as idle: with them three would be enough, but nothing shrinks for that."""
    world = scaled((0.0, 40.0), (20.0, 15.0), shrink_window_s=0.0)
    wait(world, 100)
    assert len(pods(world)) == 5


def test_nothing_is_done_while_no_pod_is_measured() -> None:
    world = world_of(web(2, ControllerKind.REPLICA_SET))
    scaler = HorizontalScaler("default", "web", 10.0)
    world.load(Workload("load", (), scalers=(scaler,), loads=(Load(0.0, "default", "web", 500.0),)))
    wait(world, 100)
    assert len(pods(world)) == 2


def test_requests_to_nobody_are_a_mistake() -> None:
    with pytest.raises(PermanentError, match="default/nobody gets requests and has no scaler"):
        World().load(Workload("w", (), loads=(Load(0.0, "default", "nobody", 1.0),)))


def left_as_it_shrinks(world: World) -> Iterator[list[str]]:
    """The pods of web that are left with four replicas, and one fewer each time."""
    for replicas in (4, 3, 2, 1):
        world.cluster.rescale(Rescale(0, "default", "web", replicas))
        yield sorted(pods(world))


def test_a_replicaset_gives_up_pods_without_a_node_then_crowded_ones_then_younger_ones() -> None:
    world = world_of(web(5, ControllerKind.REPLICA_SET))
    known = pods(world)
    for name, node in {"web-1": "a", "web-2": "b", "web-3": "b", "web-4": "a"}.items():
        world.cluster.bind(known[name], node)
        wait(world, 5)
    assert list(left_as_it_shrinks(world)) == [
        ["web-1", "web-2", "web-3", "web-4"],
        ["web-1", "web-2", "web-3"],
        ["web-1", "web-2"],
        ["web-1"],
    ]


def test_a_replicaset_gives_up_the_pods_of_the_lowest_deletion_cost_before_crowded_ones() -> None:
    """One alone on its node, and the oldest; an unstated cost is 0. A pod without a node goes before all of them."""
    world = world_of(web(5, ControllerKind.REPLICA_SET))
    known = pods(world)
    for name, (node, cost) in {
        "web-1": ("b", -20),
        "web-2": ("a", -10),
        "web-3": ("a", None),
        "web-4": ("a", 7),
    }.items():
        world.cluster.bind(known[name], node, cost)
        wait(world, 5)
    assert list(left_as_it_shrinks(world)) == [
        ["web-1", "web-2", "web-3", "web-4"],
        ["web-2", "web-3", "web-4"],
        ["web-3", "web-4"],
        ["web-4"],
    ]


def test_of_pods_about_as_old_a_replicaset_gives_up_any() -> None:
    """Half of ten that started together go: neither the first nor the last of them."""
    world = world_of(web(10), nodes=[make_node(f"n{i}", "2", "4Gi") for i in range(10)])
    for i, pod in enumerate(pods(world).values()):
        world.cluster.bind(pod, f"n{i}")
    wait(world, 100)
    world.cluster.rescale(Rescale(0, "default", "web", 5))
    numbers = {int(name.rpartition("-")[2]) for name in pods(world)}
    assert len(numbers) == 5
    assert numbers not in ({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10})
