"""The edge as metrics and people see it: who is near, what is left, which target counts, and which label is missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.edge import TIER_LABEL, Tier
from htas.model.nodes import GROUP_LABEL, Node
from htas.model.pods import Owner, Pod
from htas.model.policy import NodeGroup
from htas.model.snapshot import ClusterView
from htas.planning.place.edge_present import edge_nodes, empty_groups, present, services_of
from htas.planning.solvers.edge.state import CLOUD
from tests.builders import NOW, make_job, make_node, make_pod, make_policy, running

GIB = 2**30
POLICY = make_policy([NodeGroup("near", tier=Tier.EDGE, is_elastic=False), NodeGroup("far")])


def near(name: str = "e", **fields: Any) -> Node:
    return make_node(name, "4", "8Gi", labels={TIER_LABEL: "edge"}, **fields)


@pytest.mark.parametrize(
    ("group", "is_elastic", "labels", "is_told"),
    [
        pytest.param("near", False, {}, True, id="nobody belongs to it"),
        pytest.param("near", False, {GROUP_LABEL: "near"}, False, id="a node does"),
        pytest.param("near", False, {GROUP_LABEL: "far"}, True, id="a node of another group"),
        pytest.param("near", True, {}, False, id="its machines are bought"),
    ],
)
def test_a_group_that_nobody_buys_for_and_no_node_belongs_to_is_told(
    group: str, is_elastic: bool, labels: dict[str, str], is_told: bool
) -> None:
    policy = make_policy([NodeGroup(group, tier=Tier.EDGE, is_elastic=is_elastic)])
    told = empty_groups([make_node("n", labels=labels)], policy)
    words = f"group near is of tier edge and no node belongs to it: label nodes {GROUP_LABEL}=near"
    assert told == ([words] if is_told else [])


def test_nodes_are_on_the_edge_by_their_own_label_or_their_group_s() -> None:
    nodes = [
        near("labelled"),
        make_node("grouped", labels={GROUP_LABEL: "near"}),
        make_node("called back", labels={GROUP_LABEL: "near", TIER_LABEL: "cloud"}),
        make_node("far", labels={GROUP_LABEL: "far"}),
        make_node("nobody's"),
    ]
    assert [node.name for node in edge_nodes(nodes, POLICY)] == ["labelled", "grouped"]


@pytest.mark.parametrize(
    ("old", "new", "target"),
    [
        pytest.param((NOW - 9, "a"), (NOW - 3, "b"), 0.9, id="the newest"),
        pytest.param((NOW - 3, "a"), (NOW - 9, "b"), 0.5, id="whichever that is"),
        pytest.param((NOW - 3, "b"), (NOW - 3, "a"), 0.5, id="of equals the last by name"),
    ],
)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_newest_pod_of_a_service_tells_its_target(
    old: tuple[float, str], new: tuple[float, str], target: float, turn: int
) -> None:
    pods = [make_pod(name, created_at=at, qos=qos) for (at, name), qos in ((old, 0.5), (new, 0.9))]
    (service,) = services_of(pods[::turn])
    assert (service.name, service.target) == ("default/ReplicaSet/web", target)


def test_services_are_in_order_of_their_names() -> None:
    pods = [make_pod(name, owner=Owner("ReplicaSet", name)) for name in ("z", "a", "m")]
    assert [service.name[-1] for service in services_of(pods)] == ["a", "m", "z"]


WEB = running(make_pod("web", "1", "2Gi"), "e")


@pytest.mark.parametrize(
    ("pod", "node", "where"),
    [
        pytest.param(WEB, near(), 0, id="Ready on the edge"),
        pytest.param(msgspec.structs.replace(WEB, ready_since=None), near(), CLOUD, id="not Ready"),
        pytest.param(WEB, near(is_ready=False), CLOUD, id="on a node that is not Ready"),
        pytest.param(make_pod("web", "1", "2Gi"), near(), CLOUD, id="waiting"),
        pytest.param(running(make_pod("web", "1", "2Gi"), "c"), near(), CLOUD, id="in the cloud"),
    ],
)
def test_who_is_near_is_who_users_reach(pod: Pod, node: Node, where: int) -> None:
    state = present(ClusterView((node, make_node("c")), (pod,)), POLICY)
    (found,) = state.pods
    assert (found.key, found.service, found.size, found.where) == ("default/web", 0, (1000, 2 * GIB), where)
    assert (found.may_move, found.is_new, found.allowed) == (False, False, frozenset({0}))


def test_what_is_left_of_the_edge_is_beside_all_that_runs_there() -> None:
    pods = [WEB, running(make_job("job", cpu="500m", memory="1Gi"), "e"), running(make_pod("far", "1", "1Gi"), "c")]
    state = present(ClusterView((near(), make_node("c"), near("f")), tuple(pods)), POLICY)
    assert [(node.name, node.total, node.free) for node in state.nodes] == [
        ("e", (4000, 8 * GIB), (2500, 5 * GIB)),
        ("f", (4000, 8 * GIB), (4000, 8 * GIB)),
    ]
    assert {pod.key for pod in state.pods} == {"default/web", "default/far"}, "jobs have no users"
