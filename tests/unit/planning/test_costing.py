"""What a plan says its cluster costs, and the least that it could: nodes that stay in any case are on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from htas.documents.least import least_after
from htas.model.constraints import Constraints, Effect, Taint, Toleration
from htas.model.flavours import Flavour
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.stages import Stage
from htas.planning.planner import plan
from htas.planning.what_if.answer import what_if
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


OURS, OTHER = (owned_node(name, flavour="small", cpu="2") for name in ("ours", "other"))


def web(node: str, name: str = "web", **how: Any) -> Pod:
    """One core of a service that may move."""
    owner = Owner("ReplicaSet", name, replicas=2)
    return running(make_pod(name, "1", owner=owner, disruption={MAY_MIGRATE: "true"}, **how), node)


@pytest.mark.parametrize(
    ("nodes", "pods", "costs", "bound"),
    [
        pytest.param([foreign("cp", CONTROL)], [running(make_pod("dns", "1"), "cp")], 100, 100, id="a control plane alone"),
        pytest.param([OURS], [running(make_pod("db", "1"), "ours")], 100, 100, id="a pod that may not move"),
        pytest.param([OURS], [web("ours")], 100, 100, id="one pod needs a machine"),
        pytest.param([OURS, OTHER], [web("ours"), web("other", "shop")], 200, 100, id="two half nodes: one would do"),
        pytest.param([OURS, OTHER], [web("ours"), running(make_pod("db", "2"), "other")], 200, 200, id="no room beside what stays"),
        pytest.param([foreign("cp", CONTROL), OURS], [running(make_pod("dns", "1"), "cp"), web("ours")], 200, 200, id="no work comes to the control plane"),
        pytest.param([foreign("cp", CONTROL), OURS], [web("ours", constraints=MAY_RUN_THERE)], 200, 100, id="but what tolerates it could"),
        pytest.param([foreign("a"), OURS], [web("ours")], 200, 100, id="a foreign node's room does as well"),
        pytest.param([foreign("a", flavour="unheard-of"), OURS], [web("ours")], 100, 100, id="without a price it costs nothing, and takes nothing"),
    ],
)  # fmt: skip
def test_the_bound_is_reachable_and_that_of_simulate(
    nodes: list[Node], pods: list[Pod], costs: int, bound: int
) -> None:
    """A bound that knew of no rules said that a plan was 1500 % above it."""
    claims = [ready_claim(node) for node in nodes if node in (OURS, OTHER)]
    snapshot, policy = make_snapshot(nodes, pods, claims=claims), make_policy(flavours=[SMALL])
    made = plan(snapshot, policy, NOW, frozenset({Stage.AUTOSCALING}))
    assert (made.cost.before_nanos, made.cost.after_nanos) == (costs, costs)
    assert least_after(snapshot.cluster, made, policy).nanos == bound
    assert what_if(snapshot.cluster, policy, NOW, as_annotated=True).bound_nanos == bound


def test_a_bound_counts_what_is_launched() -> None:
    """Two pods of 3 cores need a machine each, and the free room of neither holds a third of 2."""
    flavour = Flavour("four", amounts("4", "16Gi", 110), 100)
    waiting = [make_pod(f"p{i}", "3") for i in range(2)]
    snapshot, policy = make_snapshot([], waiting), make_policy(flavours=[flavour])
    made = plan(snapshot, policy, NOW)
    least = least_after(snapshot.cluster, made, policy)
    assert (made.cost.after_nanos, least.nanos) == (200, 200), "once launched, pods that have not opted in stay"
    assert least.is_reachable_from(400)
    assert not least.is_reachable_from(401)
