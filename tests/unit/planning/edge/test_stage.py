"""The edge in a plan: where waiting pods of services go, and which running ones are to move."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from htas.documents.least import least_after
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import Drain
from htas.model.edge import EdgePolicy, Tier
from htas.model.moves import MoveReason
from htas.model.nodes import GROUP_LABEL, INSTANCE_TYPE_LABEL, Node
from htas.model.plan import Plan
from htas.model.plan_document import plan_document
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import Limits, NodeGroup, Policy, Workload
from htas.model.reservations import Reservation
from htas.model.snapshot import Memory, OptimizerState
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.place.edge_present import present
from htas.planning.planner import plan
from htas.planning.solvers.edge.search import edge_ratios
from htas.planning.solvers.edge.state import EdgeService
from tests.builders import (
    NECTAR,
    NOW,
    amounts,
    budget,
    constrained,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    running,
)

EDGE = NodeGroup("near", tier=Tier.EDGE, is_elastic=False)


def policy(**fields: Any) -> Policy:
    return make_policy([EDGE, NodeGroup("cloud", limits=Limits(max_nodes=0))], **fields)


def near(name: str, cpu: str = "2", **fields: Any) -> Node:
    return make_node(name, cpu, labels={GROUP_LABEL: "near"}, **fields)


def of(service: str, name: str, **fields: Any) -> Pod:
    """A pod of a core that may be moved."""
    owner = Owner("ReplicaSet", service, f"{service}-uid", 3)
    fields = {"owner": owner, "labels": {"app": service}, "disruption": {MAY_MIGRATE: "true"}, **fields}
    return make_pod(f"{service}-{name}", "1", **fields)


def settled(pod: Pod, node: str, since_s: float = 3600.0) -> Pod:
    return running(pod, node, since_s)


def planned(nodes: list[Node], pods: list[Pod], the_policy: Policy | None = None, **snapshot: Any) -> Plan:
    stages = snapshot.pop("stages", ALL_STAGES)
    return plan(make_snapshot(nodes, pods, **snapshot), the_policy or policy(), NOW, stages)


def binds(made: Plan) -> dict[str, str]:
    return {bind.pod.partition("/")[2]: bind.node for bind in made.bind}


def suggested(made: Plan) -> dict[str, str | None]:
    return {shift.pod.partition("/")[2]: shift.target for shift in made.suggest}


def test_pods_that_are_alike_are_told_apart_by_their_service() -> None:
    """Same shape, same constraints: one class for every other decision. The edge has room for both of `full`."""
    pods = [of("half", "1", qos=0.0), of("full", "1"), of("half", "2", qos=0.0), of("full", "2")]
    made = planned([near("e"), make_node("far")], pods)
    assert binds(made) == {"full-1": "e", "full-2": "e", "half-1": "far", "half-2": "far"}


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        pytest.param(of("web", "1"), "e", id="a service's"),
        pytest.param(make_pod("alone", "1", owner=None), "e", id="a service's without a controller"),
        pytest.param(make_job("batch", cpu="1"), "far", id="batch work, which the cloud has room for"),
        pytest.param(of("web", "1", constraints=constrained(node_selector=(("zone", "b"),))), "far", id="one bound to the cloud"),
    ],
)  # fmt: skip
def test_who_goes_to_the_edge(pod: Pod, node: str) -> None:
    assert set(binds(planned([near("e"), make_node("far", labels={"zone": "b"})], [pod])).values()) == {node}


def test_batch_work_gets_what_is_left_of_the_edge_before_anything_is_bought() -> None:
    the_policy = make_policy([EDGE, NodeGroup("cloud")])
    assert binds(planned([near("e")], [make_job("batch", cpu="1")], the_policy)) == {"batch": "e"}
    services = msgspec.structs.replace(EDGE, workload=Workload.SERVICE)
    made = planned([near("e")], [make_job("batch", cpu="1")], make_policy([services, NodeGroup("cloud")]))
    assert (binds(made), len(made.launch)) == ({}, 1)


@pytest.mark.parametrize(
    ("other", "first"),
    [
        pytest.param(make_job("other", cpu="1", priority=1000), "other", id="a job that is more important"),
        pytest.param(make_pod("other", "1", owner=None, priority=1000), "other", id="a pod without a controller"),
        pytest.param(make_pod("other", "1", owner=None), "web-1", id="of the same priority the service's"),
        pytest.param(make_pod("other", "1", owner=None, priority=-1), "web-1", id="what is less important"),
        pytest.param(of("other", "1", priority=7), "other-1", id="a service that is more important"),
    ],
)
@pytest.mark.parametrize(
    "reserved", [{}, {"default/absent": Reservation("c1", NOW)}], ids=["", "with machines launched for others"]
)
def test_the_last_room_of_the_edge_goes_by_priority(other: Pod, first: str, reserved: dict[str, Reservation]) -> None:
    made = planned([near("e", "1")], [of("web", "1"), other], memory=Memory(reservations=reserved))
    assert binds(made) == {first: "e"}


def test_pods_of_one_class_go_to_the_edge_and_to_the_machine_they_were_bought_for() -> None:
    """The job of priority 5 is the first to be placed; two of four services then fit the edge, the others the node."""
    pods = [of("web", str(i), created_at=NOW - i) for i in range(4)] + [make_job("batch", cpu="1", priority=5)]
    made = planned([near("e"), make_node("far", "3")], pods)
    assert Counter(binds(made).values()) == {"e": 2, "far": 3}
    assert binds(made)["batch"] == "far"
    assert not made.unplaced


def coming(group: str) -> NodeClaim:
    return NodeClaim("c1", group, NECTAR[0].name, ClaimState.REQUESTED, created_at=NOW - 5, since=NOW - 5)


@pytest.mark.parametrize(
    ("node", "group", "pod"),
    [
        pytest.param(make_node("there", labels={GROUP_LABEL: "cloud"}), "near", of("web", "1"), id="for an edge machine"),
        pytest.param(near("there"), "cloud", make_job("batch", cpu="500m"), id="for a machine of the cloud"),
    ],
)  # fmt: skip
def test_nobody_waits_for_a_machine_while_a_node_of_the_other_tier_has_room(node: Node, group: str, pod: Pod) -> None:
    pod = msgspec.structs.replace(pod, requests=amounts("500m", "64Mi", 1))
    elastic = make_policy([NodeGroup("near", tier=Tier.EDGE), NodeGroup("cloud")])
    assert list(binds(planned([node], [pod], elastic, claims=(coming(group),))).values()) == ["there"]


def test_taints_and_room_hold_on_the_edge() -> None:
    tainted = near("e", taints=(no_schedule("site", "shop"),))
    assert binds(planned([tainted, make_node("far")], [of("web", "1")])) == {"web-1": "far"}
    assert binds(planned([near("e", "1"), make_node("far")], [of("web", "1"), of("web", "2")])) == {
        "web-1": "e",
        "web-2": "far",
    }


FREED = [near("e"), make_node("far")]


def test_a_pod_in_the_cloud_is_to_move_when_the_edge_has_room() -> None:
    made = planned(FREED, [settled(of("web", "1"), "far")])
    assert suggested(made) == {"web-1": "e"}
    [shift] = made.suggest
    assert (shift.source, shift.method, shift.reason) == ("far", "evict", MoveReason.NEARER_TO_USERS)
    assert plan_document(made)["rearrange"]["suggest"] == [
        {"pod": "default/web-1", "from": "far", "to": "e", "method": "evict"}
    ]
    assert not made.is_empty


@pytest.mark.parametrize(
    ("pod", "snapshot", "fields"),
    [
        pytest.param(of("web", "1"), {"stages": frozenset({Stage.CLEANING})}, {}, id="it is not due"),
        pytest.param(of("web", "1"), {"search": OptimizerState(is_under_way=True)}, {}, id="room is searched for"),
        pytest.param(of("web", "1"), {"drains": (Drain("far", "c", "Empty", NOW),)}, {}, id="its node is emptied"),
        pytest.param(of("web", "1", disruption={}), {}, {}, id="it has not opted in"),
        pytest.param(of("web", "1", scheduler="other"), {}, {}, id="another scheduler's"),
        pytest.param(of("web", "1"), {"budgets": [budget(0, {"app": "web"})]}, {}, id="its budget is spent"),
        pytest.param(of("web", "1"), {}, {"edge": EdgePolicy(cloud_to_edge_moves=0)}, id="none may be moved"),
        pytest.param(of("web", "1", constraints=constrained(node_selector=(("zone", "b"),))), {}, {}, id="not allowed there"),
    ],
)  # fmt: skip
def test_what_stays_in_the_cloud(pod: Pod, snapshot: dict[str, Any], fields: dict[str, Any]) -> None:
    nodes = [near("e"), make_node("far", labels={"zone": "b"})]
    assert suggested(planned(nodes, [settled(pod, "far")], policy(**fields), **snapshot)) == {}


def test_a_pod_that_waits_and_fits_has_the_room_before_one_that_moves() -> None:
    made = planned([near("e", "1"), make_node("far")], [settled(of("web", "1"), "far"), of("api", "1")])
    assert (binds(made), suggested(made)) == ({"api-1": "e"}, {})


def test_a_pod_leaves_the_edge_where_the_cloud_has_room_for_it() -> None:
    pods = [settled(of("some", str(i), qos=0.5), "e") for i in (1, 2)] + [settled(of("all", "1"), "far")]
    for cloud in (make_node("far", "4"), make_node("far", "1")):  # in the second they change places
        moves = suggested(planned([near("e"), cloud], pods))
        assert (moves.pop("all-1"), list(moves.values())) == ("e", ["far"])
    others = [settled(make_pod("fixed", "1", owner=None), "far")]
    small = of("all", "1", requests=amounts("500m", "64Mi", 1))
    pods = [*pods[:2], settled(small, "far"), *others]
    assert suggested(planned([near("e"), make_node("far", "1500m")], pods)) == {}, "half a core is not enough"


@pytest.mark.parametrize(("priority", "many"), [(-1, 2), (0, 2), (1, 0)])
def test_nobody_leaves_the_edge_for_less_important_work(priority: int, many: int) -> None:
    pods = [settled(of("some", str(i), qos=0.5, priority=priority), "e") for i in (1, 2)]
    made = planned([near("e"), make_node("far", "4")], [*pods, settled(of("all", "1"), "far")])
    assert len(suggested(made)) == many


@pytest.mark.parametrize("many", [2, 5, 8, 40])
def test_what_stands_in_the_way_of_one_suggestion_does_not_stop_another(many: int) -> None:
    """One of `some` would have to leave for `all`, and the cloud has half a core: whichever of them it is. `next` fits
    without that."""
    pods = [settled(of("some", str(i), qos=0.0), "e") for i in range(many)]
    pods.append(settled(of("all", "1", requests=amounts("500m", "64Mi", 1)), "far"))
    pods.append(settled(of("next", "1", requests=amounts("250m", "64Mi", 1), qos=0.5), "far"))
    nodes = [near("e", f"{many * 1000 + 250}m"), make_node("far", "750m")]
    assert suggested(planned(nodes, pods)) == {"next-1": "e"}


def test_who_is_like_one_in_the_way_is_not_asked_next() -> None:
    """None of the eight finds room in the cloud, where `all` leaves half a core; `tiny` may change places with `next`."""
    pods = [settled(of("some", str(i), qos=0.0), "e") for i in range(8)]
    quarter = {"requests": amounts("250m", "64Mi", 1)}
    pods += [settled(of("tiny", "1", qos=0.0, **quarter), "e"), settled(of("next", "1", **quarter), "far")]
    pods.append(settled(of("all", "1", requests=amounts("500m", "64Mi", 1)), "far"))
    made = planned([near("e", "8250m"), make_node("far", "750m")], pods)
    assert suggested(made) == {"next-1": "e", "tiny-1": "far"}


def test_of_more_kinds_in_the_way_than_there_are_looks_none_leaves_in_the_last() -> None:
    pods = [settled(of(f"some{i}", "1", qos=0.0, requests=amounts(f"{900 + i}m", "64Mi", 1)), "e") for i in range(9)]
    pods.append(settled(of("all", "1", requests=amounts("500m", "64Mi", 1)), "far"))
    pods.append(settled(of("next", "1", requests=amounts("250m", "64Mi", 1), qos=0.5), "far"))
    nodes = [near("e", f"{sum(900 + i for i in range(9)) + 250}m"), make_node("far", "750m")]
    assert suggested(planned(nodes, pods)) == {"next-1": "e"}


def test_of_pods_that_are_alike_as_many_move_as_a_budget_allows() -> None:
    pods = [settled(of("web", str(i)), "far") for i in range(4)]
    made = planned([near("e", "8"), make_node("far", "8")], pods, budgets=[budget(1, {"app": "web"})])
    assert list(suggested(made).values()) == ["e"]


def test_what_is_to_move_keeps_its_nodes_from_the_cleaner() -> None:
    made = planned(FREED, [settled(of("web", "1"), "far")])
    assert not made.remove


def test_without_a_node_of_the_edge_a_plan_is_as_it_ever_was() -> None:
    nodes, pods = (
        [make_node("a", "2"), make_node("b", "2")],
        [of("web", "1"), of("api", "1"), make_job("batch", cpu="1")],
    )
    with_section = planned(nodes, pods, make_policy(edge=EdgePolicy(alpha=2.0, gamma=50.0)))
    assert msgspec.json.encode(with_section) == msgspec.json.encode(planned(nodes, pods, make_policy()))
    assert b"suggest" not in msgspec.json.encode(with_section)


@pytest.mark.parametrize(
    ("price", "costs"),
    [
        pytest.param(None, 137_100_000, id="the catalogue's: it stays, so nothing costs less"),
        pytest.param(0, 0, id="paid for anyway: its work costs nothing, and cannot cost less"),
        pytest.param(5_000_000, 5_000_000, id="a price no flavour has: on both sides"),
    ],
)
def test_the_edge_may_have_a_price_of_its_own(price: int | None, costs: int) -> None:
    node = make_node("e", "4", labels={GROUP_LABEL: "near", INSTANCE_TYPE_LABEL: "m1.medium"})
    pods, by = [settled(of("web", "1"), "e")], policy(edge=EdgePolicy(nanos_per_hour=price))
    made = planned([node], pods, by)
    least = least_after(make_snapshot([node], pods).cluster, made, by)
    assert (made.cost.before_nanos, least.nanos) == (costs, costs)


def test_the_newest_pod_states_the_target() -> None:
    old, new = of("web", "1", qos=0.2), of("web", "2", qos=0.7, created_at=NOW)
    state = present(make_snapshot([near("e")], [settled(old, "e"), new]).cluster, policy())
    assert (state.services, edge_ratios(state)) == ((EdgeService("default/ReplicaSet/web", 0.7),), [0.5])
