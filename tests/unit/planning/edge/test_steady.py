"""What keeps a suggestion from taking a shop down: Ready pods and nodes, a few at once, budgets spent once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import NodeClaim
from htas.model.edge import EdgePolicy, Tier
from htas.model.moves import MigrationMethod
from htas.model.nodes import GROUP_LABEL, Node
from htas.model.pods import MAY_MIGRATE, Owner, Phase, Pod
from htas.model.policy import CleaningRules, Limits, NodeGroup, Policy
from htas.model.rearrangement import NOBODY, OpenRearrangement, Slot
from htas.model.reasons import OutcomeReason
from htas.model.snapshot import Memory
from htas.planning.place.edge_present import present
from htas.planning.planner import plan
from htas.planning.solvers.edge.search import edge_ratios
from tests.builders import (
    NOW,
    amounts,
    budget,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

AN_HOUR = 3600.0
EDGE = NodeGroup("near", tier=Tier.EDGE, is_elastic=False)
FAR = make_node("far", "16", "64Gi")


def policy(cloud: NodeGroup | None = None, **fields: Any) -> Policy:
    return make_policy([EDGE, cloud or NodeGroup("cloud", limits=Limits(max_nodes=0))], **fields)


def near(name: str = "e", cpu: str = "8", **fields: Any) -> Node:
    return make_node(name, cpu, "64Gi", labels={GROUP_LABEL: "near"}, **fields)


def of(service: str, count: int, node: str | None = "far", since_s: float = AN_HOUR, **fields: Any) -> list[Pod]:
    """Pods of a service, of a core each, that may be moved; they run, unless they have no node."""
    owner = Owner("ReplicaSet", service, f"{service}-uid", count)
    fields = {"owner": owner, "labels": {"app": service}, "disruption": {MAY_MIGRATE: "true"}, **fields}
    pods = [make_pod(f"{service}-{node}-{i}", "1", **fields) for i in range(count)]
    return pods if node is None else [running(pod, node, since_s) for pod in pods]


def not_ready(pod: Pod, since_s: float = 0.0, phase: Phase = Phase.RUNNING) -> Pod:
    return msgspec.structs.replace(pod, ready_since=None, phase=phase, started_at=NOW - since_s)


def moved(nodes: list[Node], pods: list[Pod], how: Policy | None = None, **snapshot: Any) -> list[str]:
    """The services of the pods that a plan suggests to move."""
    made = plan(make_snapshot(nodes, pods, **snapshot), how or policy(), NOW)
    return sorted(shift.pod.partition("/")[2].partition("-")[0] for shift in made.suggest)


@pytest.mark.parametrize(("count", "at_once"), [(1, 1), (2, 1), (4, 1), (7, 1), (8, 2), (12, 3), (20, 5)])
def test_a_quarter_of_a_service_moves_at_once_and_one_at_least(count: int, at_once: int) -> None:
    assert moved([near(cpu="20"), make_node("far", "32", "64Gi")], of("web", count)) == ["web"] * at_once


def test_a_budget_says_how_many_in_the_place_of_the_quarter() -> None:
    for allowed, at_once in ((1, 1), (3, 3), (4, 4)):
        assert moved([near(), FAR], of("web", 4), budgets=[budget(allowed, {"app": "web"})]) == ["web"] * at_once


def test_pods_of_several_services_fill_what_one_may_not_use() -> None:
    pods = [pod for name in "abcdefg" for pod in of(name, 4)]
    nodes = [near(cpu="28"), make_node("far", "32", "64Gi")]
    assert len(set(moved(nodes, pods))) == EdgePolicy().cloud_to_edge_moves


@pytest.mark.parametrize("services", [1, 3, 7])
def test_many_services_give_way_a_few_pods_each(services: int) -> None:
    """Each has ten pods near and wants none there: two of each may leave at once. Others of four lack them all."""
    full = [pod for i in range(services) for pod in of(f"far{i}", 10, "e", qos=0.0)]
    lack = [pod for i in range(6) for pod in of(f"near{i}", 4)]
    leave = moved([near(cpu=str(10 * services)), make_node("far", "60", "256Gi")], [*full, *lack])
    gone = [name for name in leave if name.startswith("far")]
    assert len(leave) == 2 * len(gone)
    assert 1 <= len(gone) <= EdgePolicy().cloud_to_edge_moves
    assert all(gone.count(name) <= 2 for name in gone)


def test_pods_that_wait_are_missed_already() -> None:
    waiting = of("web", 1, None, scheduler="other")
    assert moved([near(), FAR], [*of("web", 4), *waiting]) == []
    assert moved([near(), FAR], [*of("web", 7), *waiting]) == ["web"], "of eight two may be missed"


def test_what_keeps_its_progress_is_not_missed() -> None:
    """Its twin runs before it ends: as many move as a period allows."""
    runtime = {"runtime": "containerd://2.3.7"}
    cloud = NodeGroup("cloud", cleaning=CleaningRules(migration=MigrationMethod.CHECKPOINT), limits=Limits(max_nodes=0))
    nodes = [near(**runtime), make_node("far", "16", "64Gi", labels={GROUP_LABEL: "cloud"}, **runtime)]
    assert moved(nodes, of("web", 4), policy(cloud)) == ["web"] * 4


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([*of("web", 1), *of("web", 1, "e")], ["web"], id="all are Ready"),
        pytest.param([*of("web", 1), not_ready(*of("web", 1, "e"))], [], id="one of the service is not Ready"),
        pytest.param([*of("web", 1), not_ready(*of("api", 1, "e"))], ["web"], id="one of another service is not Ready"),
        pytest.param([*of("web", 1), not_ready(*of("api", 1, "e"), since_s=59, phase=Phase.PENDING)], ["web"], id="one may take a minute to start"),
        pytest.param([*of("web", 1), not_ready(*of("api", 1, "e"), since_s=60, phase=Phase.PENDING)], [], id="one does not start there"),
        pytest.param([*of("web", 1), not_ready(*of("api", 1, "far"), since_s=60, phase=Phase.PENDING)], ["web"], id="one does not start elsewhere"),
        pytest.param(of("web", 1, since_s=299), [], id="it is young"),
        pytest.param(of("web", 1, since_s=300), ["web"], id="it is old enough"),
    ],
)  # fmt: skip
def test_moves_wait_for_pods_that_are_ready(pods: list[Pod], expected: list[str]) -> None:
    assert moved([near(), FAR], pods) == expected


@pytest.mark.parametrize(
    ("since_s", "edge", "expected"),
    [
        pytest.param(299, EdgePolicy(), [], id="it may be gone again in a moment"),
        pytest.param(300, EdgePolicy(), ["web"], id="it has been Ready for five minutes"),
        pytest.param(59, EdgePolicy(settle_s=60), [], id="as long as configured"),
        pytest.param(0, EdgePolicy(settle_s=0), ["web"], id="not at all"),
    ],
)
def test_moves_wait_for_nodes_that_have_settled(since_s: float, edge: EdgePolicy, expected: list[str]) -> None:
    nodes = [near(ready_since=NOW - since_s, created_at=NOW - AN_HOUR), FAR]
    assert moved(nodes, of("web", 1), policy(edge=edge)) == expected


def test_nobody_leaves_the_edge_for_a_young_node_of_the_cloud() -> None:
    """`some` has one more near than it wants; half a core of it is what `all` lacks. Only `young` could take it in."""
    small = of("all", 1, "old", requests=amounts("500m", "1Gi", 1))
    for since_s, expected in ((299.0, []), (300.0, ["all", "some"])):
        nodes = [near(cpu="2"), make_node("old", "900m"), make_node("young", "4", ready_since=NOW - since_s)]
        assert moved(nodes, [*of("some", 2, "e", qos=0.5), *small]) == expected


def test_new_pods_go_to_a_node_that_has_not_settled_all_the_same() -> None:
    made = plan(make_snapshot([near(ready_since=NOW - 1), FAR], of("web", 1, None)), policy(), NOW)
    assert [bind.node for bind in made.bind] == ["e"]


def test_a_budget_is_spent_once_for_a_suggestion_and_the_cleaner() -> None:
    """`x` is to be emptied: its pod of `web` would be the second to leave for a budget of one."""
    rules = CleaningRules(underutilized_for_s=60.0, queue_empty_for_s=0.0)
    nodes = [near(cpu="1"), owned_node("x", "cloud", "m1.large"), owned_node("y", "cloud", "m1.large")]
    pods = [*of("web", 1, "x", qos=1.0), *of("web", 1, "y")]
    fields: dict[str, Any] = {
        "claims": claims(nodes[1:]),
        "memory": Memory({"x": NOW - AN_HOUR, "y": NOW - AN_HOUR}, {}, NOW - AN_HOUR),
    }
    how = policy(NodeGroup("cloud", cleaning=rules))
    for allowed, leave in ((1, 1), (2, 2)):
        made = plan(make_snapshot(nodes, pods, budgets=[budget(allowed, {"app": "web"})], **fields), how, NOW)
        assert len(made.suggest) == 1
        assert len(made.suggest) + len(made.migrate) == leave


def claims(nodes: list[Node]) -> tuple[NodeClaim, ...]:
    return tuple(ready_claim(node) for node in nodes)


def under_way(*pods: Pod, target: str = "e", **fields: Any) -> OpenRearrangement:
    slots = tuple(Slot(pod, target, pod.node, MigrationMethod.EVICT, is_aim=True) for pod in pods)
    return OpenRearrangement(NOW - 10, NOBODY, slots, is_suggestion=True, **fields)


def test_the_next_pod_of_a_service_leaves_when_the_last_one_is_ready() -> None:
    [pod], [other] = of("web", 1), of("web", 1, "e")
    for there, steps in ((not_ready(other), 0), (other, 1)):
        snapshot = make_snapshot([near(), FAR], [pod, there], rearrangement=under_way(pod))
        assert len(plan(snapshot, policy(), NOW).carry.steps) == steps


def test_a_target_that_is_on_the_edge_no_more_ends_the_suggestion() -> None:
    [pod] = of("web", 1)
    for tier, cancelled in (("edge", None), ("cloud", OutcomeReason.NODE_CLOSED)):
        node = make_node("e", labels={GROUP_LABEL: "near", "htas.io/tier": tier})
        snapshot = make_snapshot([node, FAR], [pod], rearrangement=under_way(pod))
        assert plan(snapshot, policy(), NOW).carry.cancel is cancelled


def test_a_pod_that_does_not_become_ready_ends_the_suggestion_in_time() -> None:
    [pod] = of("web", 1, "e")
    current = msgspec.structs.replace(under_way(), starting=(pod.uid,))
    assert not current.is_complete
    for age_s, cancelled in ((599.0, None), (600.0, OutcomeReason.NOT_READY)):
        aged = msgspec.structs.replace(current, started_at=NOW - age_s)
        carry = plan(make_snapshot([near(), FAR], [not_ready(pod)], rearrangement=aged), policy(), NOW).carry
        assert carry.cancel is cancelled
    assert carry.message == "after 600 s not Ready: default/web-e-0 on e"


def test_a_suggestion_makes_way_for_work_that_nothing_can_be_bought_for() -> None:
    """All that was to move stays, and the room is searched for once the slots are nobody's any more."""
    [pod] = of("web", 1)
    urgent = make_job("urgent", cpu="16", priority=10)
    for waiting, cancelled in (([], None), ([urgent], OutcomeReason.PODS_PENDING)):
        made = plan(make_snapshot([near(), FAR], [pod, *waiting], rearrangement=under_way(pod)), policy(), NOW)
        assert (made.carry.cancel, len(made.carry.steps)) == (cancelled, 0 if waiting else 1)
        assert (made.optimize, made.preempt) == ((), ())
    assert "moves for the edge's sake are given up for it" in made.unplaced[0].message
    made = plan(make_snapshot([near(), FAR], [pod, urgent]), policy(), NOW)
    assert (made.optimize, made.suggest) == (("default/urgent",), ())


def test_a_suggestion_goes_on_beside_work_that_nothing_helps() -> None:
    [pod] = of("web", 1)
    giant = make_job("giant", cpu="64", priority=10)
    made = plan(make_snapshot([near(), FAR], [pod, giant], rearrangement=under_way(pod)), policy(), NOW)
    assert (made.carry.cancel, len(made.carry.steps)) == (None, 1)


def test_near_are_ready_pods_on_ready_nodes_and_all_are_counted() -> None:
    ready, starting, waiting = of("web", 2, "e"), not_ready(*of("web", 1, "f")), of("web", 1, None)
    pods = [*ready, starting, *waiting]
    state = present(make_snapshot([near("e"), near("f"), FAR], pods).cluster, policy())
    assert edge_ratios(state) == [0.5]
    silent = make_snapshot([near("e", is_ready=False), near("f"), FAR], pods)
    assert edge_ratios(present(silent.cluster, policy())) == [0.0]


@pytest.mark.parametrize(("age_s", "comes"), [(59.0, ["web"]), (60.0, [])])
def test_a_copy_that_does_not_start_keeps_others_from_its_node(age_s: float, comes: list[str]) -> None:
    """It belongs to nobody until it is Ready, and so to no service."""
    copy = running(make_pod("api-m0", "1", owner=None, twin_of="api-uid"), "e")
    hangs = not_ready(copy, since_s=age_s, phase=Phase.PENDING)
    assert moved([near(), FAR], [*of("web", 1), hangs]) == comes


@pytest.mark.parametrize(
    ("near_method", "cloud_method", "gains"),
    [
        pytest.param(MigrationMethod.REPLACE, MigrationMethod.REPLACE, [], id="none of them may be down"),
        pytest.param(MigrationMethod.EVICT, MigrationMethod.REPLACE, ["all", "some"], id="one is evicted anyhow"),
        pytest.param(MigrationMethod.REPLACE, MigrationMethod.EVICT, ["all", "some"], id="the other is"),
    ],
)
def test_pods_that_would_change_places_stay_if_none_may_be_down_for_it(
    near_method: MigrationMethod, cloud_method: MigrationMethod, gains: list[str]
) -> None:
    """Neither node has room for both pods; a third pod comes to the edge all the same, where it finds room."""
    groups = [
        NodeGroup("near", tier=Tier.EDGE, is_elastic=False, cleaning=CleaningRules(migration=near_method)),
        NodeGroup("cloud", limits=Limits(max_nodes=0), cleaning=CleaningRules(migration=cloud_method)),
    ]
    far, other = (make_node(name, "1", "64Gi", labels={GROUP_LABEL: "cloud"}) for name in ("far", "other"))
    pods = [*of("some", 1, "e", qos=0.0), *of("all", 1, "far")]
    assert moved([near(cpu="1"), far], pods, make_policy(groups)) == gains
    small = of("small", 1, "other", requests=amounts("500m", "64Mi", 1))
    assert "small" in moved([near(cpu="1500m"), far, other], [*pods, *small], make_policy(groups))
