"""Nodes of today that do for machines bought anew stay, and only what really changes is told."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView
from htas.planning.what_if.answer import WhatIfAnswer, what_if
from tests.builders import NOW, labels_are, make_flavour, make_node, make_pod, make_policy, running

ZONES = ("a", "b")
POLICY = make_policy(
    flavours=[
        make_flavour("large", "4", "8Gi", "0.40", zones=ZONES),
        make_flavour("small", "2", "4Gi", "0.15", zones=ZONES),
        make_flavour("fat", "4", "32Gi", "0.60", zones=ZONES),
    ]
)
SIZES = {"large": ("4", "8Gi"), "small": ("2", "4Gi"), "fat": ("4", "32Gi")}


def machine(name: str, flavour: str, zone: str = "a", **fields: Any) -> Node:
    labels = {INSTANCE_TYPE_LABEL: flavour, HOSTNAME_LABEL: name, ZONE_LABEL: zone}
    return make_node(name, *SIZES[flavour], labels=labels, **fields)


def service(name: str, node: str, cpu: str, memory: str, **fields: Any) -> Pod:
    return running(make_pod(name, cpu, memory, labels={"app": name.partition("-")[0]}, **fields), node)


def asked(nodes: list[Node], pods: list[Pod]) -> WhatIfAnswer:
    return what_if(ClusterView(tuple(nodes), tuple(pods)), POLICY, NOW)


def test_the_nodes_of_a_flavour_that_the_table_keeps_are_not_among_those_replaced() -> None:
    """Two databases fill a fat node each, and need such ones again. With these offered empty beside what may be bought
    a web pod of more importance took room on one: all nodes were told to be replaced by their like.
    """
    nodes = [machine("f1", "fat"), machine("f2", "fat", "b"), machine("l1", "large")]
    pods = [
        service("db-1", "f1", "3", "30Gi"),
        service("db-2", "f2", "3", "30Gi"),
        service("web-1", "l1", "1500m", "3Gi", priority=1000),
    ]
    answer = asked(nodes, pods)
    assert answer.anew.flavours == {"fat": 2, "small": 1}
    assert (answer.told.emptied, answer.told.annotated) == (("l1",), ("default/web-1",))
    assert (answer.anew.moved, answer.anew.bought) == ({"default/web-1"}, 1)
    assert answer.free.moved == {"default/web-1"}


def test_pods_that_are_alike_take_each_other_s_place() -> None:
    """Three of six replicas share each machine of the mix, whichever they are: those that are there stay."""
    nodes = [
        machine("l1", "large"),
        machine("s1", "small", "b"),
        machine("s2", "small", "b"),
        machine("l2", "large", "b"),
    ]
    at = ("l1", "s1", "s1", "s2", "s2", "l2")
    answer = asked(nodes, [service(f"web-{number}", node, "600m", "512Mi") for number, node in enumerate(at)])
    assert answer.anew.flavours == {"small": 2}
    assert (answer.told.emptied, answer.anew.moved) == (("l1", "l2"), {"default/web-0", "default/web-5"})


SPREAD = Constraints(spread=(SpreadConstraint(ZONE_LABEL, 1, labels_are(app="web")),))
APART = Constraints(anti_affinity=(PodAffinityTerm(ZONE_LABEL, labels_are(app="web")),))


@pytest.mark.parametrize(
    ("wanted", "zones", "emptied"),
    [
        pytest.param(Constraints(), ("b", "b"), ("l1", "l2"), id="work that goes by no zone stays in whichever it is"),
        pytest.param(SPREAD, ("a", "b"), ("l1", "l2"), id="a service over two zones has a node in each"),
        pytest.param(APART, ("a", "b"), ("l1", "l2"), id="so do pods that shun each other's zones"),
        pytest.param(
            APART, ("b", "b"), ("l1", "l2", "s2"), id="one of two nodes in one zone does, and the other does not"
        ),
    ],
)
def test_a_node_in_another_zone_does_where_all_may_be_there(
    wanted: Constraints, zones: tuple[str, str], emptied: tuple[str, ...]
) -> None:
    nodes = [machine("l1", "large"), machine("l2", "large", "b")]
    nodes += [machine(f"s{number}", "small", zone) for number, zone in enumerate(zones, 1)]
    pods = [service(f"web-{node}", node, "1500m", "512Mi", constraints=wanted) for node in ("l1", "l2")]
    answer = asked(nodes, pods)
    assert answer.anew.flavours == {"small": 2}
    told = (*answer.told.emptied, *answer.told.empty)
    assert tuple(sorted(told)) == emptied
    assert len(answer.anew.moved) == 2


def test_a_closed_node_does_for_no_machine() -> None:
    nodes = [machine("s1", "small", is_unschedulable=True), machine("l1", "large")]
    answer = asked(nodes, [service("web-1", "l1", "1500m", "512Mi")])
    assert (answer.anew.flavours, answer.told.emptied, answer.told.empty) == ({"small": 1}, ("l1",), ("s1",))
