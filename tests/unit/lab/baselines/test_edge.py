"""Where each of the edge's baselines puts a pod."""

from __future__ import annotations

from collections import Counter

import pytest

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.stages import ALL_STAGES
from htas.planning.planner import Planner
from tests.builders import NOW, make_pod, make_snapshot, running
from tools.lab.baselines import edge
from tools.lab.edge.contenders import settings
from tools.lab.edge.scenarios import nodes


def small(name: str, **fields: object) -> Pod:
    return make_pod(name, "1", "950Mi", **fields)


def planned(planner: Planner, *pods: Pod) -> Plan:
    return planner(make_snapshot(nodes(), pods), settings("test"), NOW, ALL_STAGES)


def nodes_of(planner: Planner, *pods: Pod) -> list[str]:
    """Where waiting pods go, in the order of their names."""
    return [bind.node for bind in sorted(planned(planner, *pods).bind, key=lambda bind: bind.pod)]


@pytest.mark.parametrize(
    ("planner", "expected"),
    [
        pytest.param(edge.biggest_first, ["n4"] * 5 + ["n2"] * 5 + ["n3"] * 4 + ["n5"] * 2, id="BEF"),
        pytest.param(edge.smallest_first, ["n3"] * 4 + ["n2"] * 5 + ["n4"] * 5 + ["n5"] * 2, id="SEF"),
        pytest.param(edge.cloud_first, ["n5"] * 16, id="CF"),
    ],
)
def test_nodes_are_filled_one_after_the_other(planner: Planner, expected: list[str]) -> None:
    waiting = [small(f"pod-{i:02d}") for i in range(16)]
    assert nodes_of(planner, *waiting) == expected


def test_kubernetes_takes_the_edge_node_with_the_most_left_and_the_cloud_last() -> None:
    placed = nodes_of(edge.kube_scheduler, *(small(f"pod-{i:02d}") for i in range(16)))
    assert set(placed[:3]) == {"n2", "n3", "n4"}
    assert Counter(placed) == {"n2": 5, "n3": 4, "n4": 5, "n5": 2}
    assert placed[-2:] == ["n5", "n5"]


def test_cloud_first_overflows_onto_the_edge() -> None:
    there = [running(small(f"old-{i}"), "n5") for i in range(17)]
    assert set(nodes_of(edge.cloud_first, *there, small("new"))) <= {"n2", "n3", "n4"}


def test_lots_fall_on_every_node_and_the_same_cluster_draws_the_same() -> None:
    waiting = [small(f"pod-{i:02d}") for i in range(16)]
    first, again = (nodes_of(edge.by_lot, *waiting) for _ in range(2))
    assert first == again
    assert set(first) == {"n2", "n3", "n4", "n5"}


@pytest.mark.parametrize("planner", [edge.biggest_first, edge.by_lot, edge.kube_scheduler])
def test_nothing_is_over_committed_and_what_finds_no_room_waits(planner: Planner) -> None:
    plan = planned(planner, *(small(f"pod-{i:02d}") for i in range(35)))
    assert Counter(bind.node for bind in plan.bind) == {"n2": 5, "n3": 4, "n4": 5, "n5": 17}
    assert len(plan.unplaced) == 4
