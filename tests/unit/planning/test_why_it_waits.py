"""What a pod that waits is told: the flavour that comes nearest, the label that is missing, each node that there is."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, Effect, PodAffinityTerm, Taint
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Owner, Pod
from htas.model.policy import CleaningRules, Fallback, FallbackMode, NodeGroup
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    amounts,
    labels_are,
    make_flavour,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    running,
)

GPU = "nvidia.com/gpu"
FLAVOURS = [
    make_flavour("large", "16", "128Gi", "1.0"),
    make_flavour("a10", "8", "32Gi", "1.5", extended={GPU: 1}),
]
TAINT = Taint("team", Effect.NO_SCHEDULE, "red")


def planned(pods: list[Pod], nodes: list[Node] | None = None, group: NodeGroup | None = None) -> Plan:
    fallback = Fallback(mode=FallbackMode.OPTIMIZE, after_s=0.0)
    policy = make_policy([group or NodeGroup("any")], FLAVOURS, fallback=fallback)
    return plan(make_snapshot(nodes or [], pods), policy, NOW)


def told(pod: Pod, **fields: Any) -> str:
    return planned([pod], **fields).unplaced[0].message


@pytest.mark.parametrize(
    ("pod", "fields", "said"),
    [
        pytest.param(
            make_pod("two", requests=amounts("1", "1Gi", 1, **{GPU: 2})), {},
            f"a10 has not enough {GPU} (2 asked, 1 offered)",
            id="two GPUs are asked for: the flavour that has one is named, not the largest without any",
        ),
        pytest.param(
            make_pod("big", "1", "140Gi"), {}, "large has not enough memory (140 GiB asked, 128 GiB offered)",
            id="memory is told in GiB",
        ),
        pytest.param(
            make_pod("fast", constraints=Constraints(node_selector=(("disktype", "nvme"),))), {},
            "(no group's machines bear disktype=nvme: nodeGroups[].labels)",
            id="a label that no group gives is named, and the key that would give it",
        ),
        pytest.param(
            make_pod("red"), {"group": NodeGroup("reds", taints=(TAINT,))},
            "node(s) had untolerated taint(s) (nodeGroups[].taints of reds)",
            id="a taint is told apart from a label, by the group that gives it",
        ),
        pytest.param(
            make_pod("big", "64"), {"nodes": [make_node("up", "1"), make_node("down", is_ready=False)]},
            "0/2 nodes are available: 1 Insufficient cpu, "
            "1 node(s) had untolerated taint(s) {node.kubernetes.io/not-ready}.",
            id="a node that is not Ready is one of the nodes",
        ),
        pytest.param(
            make_pod("big", "64"), {
                "group": NodeGroup("any", cleaning=CleaningRules(repair_s=(("KernelDeadlock", 60.0),))),
                "nodes": [owned_node("up"), owned_node("sick", conditions=(("KernelDeadlock", NOW - 60.0),))],
            },
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unhealthy.",
            id="so is one that is to be repaired",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_waits_is_told_what_is_missing(pod: Pod, fields: dict[str, Any], said: str) -> None:
    assert said in told(pod, **fields)


AGENT = make_pod("agent", "3", "1Gi", owner=Owner("DaemonSet", "agents"))
FRIENDLESS = Constraints(affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="nobody")),))


@pytest.mark.parametrize(
    ("pod", "others"),
    [
        pytest.param(make_pod("lonely", constraints=FRIENDLESS), [], id="it must be near pods that nobody runs"),
        pytest.param(make_pod("large", "20"), [AGENT], id="the node's own daemons leave too little of it"),
        pytest.param(make_pod("large", "20"), [make_pod("web", "7")], id="a service that may not move stays"),
    ],
)
def test_no_search_is_announced_where_no_placement_could_help(pod: Pod, others: list[Pod]) -> None:
    node = make_node("n", "22", "200Gi")
    found = planned([pod, *(running(each, "n") for each in others)], [node])
    assert found.optimize == ()
    assert "searched for" not in found.unplaced[0].message
