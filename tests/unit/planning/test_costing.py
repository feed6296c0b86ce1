"""What a plan says its cluster costs, and the least that it could: nodes that stay in any case are on both sides."""

from __future__ import annotations

import pytest

from htas.model.constraints import Constraints, Effect, Taint, Toleration
from htas.model.flavours import Flavour
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.pods import Pod
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    amounts,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

SMALL = Flavour("small", amounts("2", "8Gi", 110), 100)
"""A core costs 50 at least."""
CONTROL = Taint("node-role.kubernetes.io/control-plane", Effect.NO_SCHEDULE)
MAY_RUN_THERE = Constraints(tolerations=(Toleration(operator="Exists"),))


def foreign(name: str, *taints: Taint, flavour: str = "small") -> Node:
    return make_node(name, "2", labels={INSTANCE_TYPE_LABEL: flavour}, taints=taints)


OURS = owned_node("ours", flavour="small", cpu="2")


@pytest.mark.parametrize(
    ("nodes", "pods", "costs", "bound"),
    [
        pytest.param([foreign("cp", CONTROL)], [running(make_pod("dns", "1"), "cp")], 100, 100, id="a control plane alone"),
        pytest.param([foreign("a")], [running(make_pod("web", "1"), "a")], 100, 100, id="a node that HTAS did not buy"),
        pytest.param([OURS], [running(make_pod("web", "1"), "ours")], 100, 50, id="one that it did: half would do"),
        pytest.param([foreign("cp", CONTROL), OURS], [running(make_pod("dns", "1"), "cp"), running(make_pod("web", "1"), "ours")], 200, 150, id="no work comes to the control plane"),
        pytest.param([foreign("cp", CONTROL), OURS], [running(make_pod("web", "1", constraints=MAY_RUN_THERE), "ours")], 200, 100, id="but what tolerates it could"),
        pytest.param([foreign("a"), OURS], [running(make_pod("web", "1"), "ours")], 200, 100, id="a foreign node's room is free"),
        pytest.param([foreign("a", flavour="unheard-of"), OURS], [running(make_pod("web", "1"), "ours")], 100, 0, id="without a price it costs nothing on either side"),
    ],
)  # fmt: skip
def test_the_bound_has_what_stays_in_any_case(nodes: list[Node], pods: list[Pod], costs: int, bound: int) -> None:
    snapshot = make_snapshot(nodes, pods, claims=[ready_claim(OURS)] if OURS in nodes else [])
    cost = plan(snapshot, make_policy(flavours=[SMALL]), NOW).cost
    assert (cost.before_nanos, cost.after_nanos, cost.bound_nanos) == (costs, costs, bound)
