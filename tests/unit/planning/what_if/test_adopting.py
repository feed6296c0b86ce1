"""A cluster taken for HTAS's own: which nodes stay whatever is planned, who may move, what a new machine would look like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from htas.model.constraints import Constraints, Effect, Taint
from htas.model.edge import TIER_LABEL
from htas.model.nodes import (
    CLAIM_LABEL,
    CLUSTER_LABEL,
    DO_NOT_DISRUPT,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    SCALE_DOWN_DISABLED,
    ZONE_LABEL,
    Node,
)
from htas.model.pods import MAY_MIGRATE, Owner, Phase, Pod
from htas.model.policy import CleaningRules, EmptyRelease, NodeGroup
from htas.model.snapshot import ClusterView
from htas.planning.what_if.adopting import ADOPTED, AdoptedCluster, adopt, uncalmed
from tests.builders import NOW, make_flavour, make_job, make_node, make_pod, make_policy, running

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
FLAVOURS = [make_flavour("large", "4", "8Gi", "0.40"), make_flavour("small", "2", "4Gi", "0.15", zones=("east",))]
POLICY = make_policy(flavours=FLAVOURS)


def machine(name: str, flavour: str = "large", **fields: Any) -> Node:
    labels = {INSTANCE_TYPE_LABEL: flavour, HOSTNAME_LABEL: name, **fields.pop("labels", {})}
    return make_node(name, labels=labels, **fields)


def adopted(nodes: Iterable[Node], pods: Iterable[Pod] = (), as_annotated: bool = False, **view: Any) -> AdoptedCluster:
    return adopt(ClusterView(tuple(nodes), tuple(pods), **view), POLICY, NOW, as_annotated=as_annotated)


@pytest.mark.parametrize(
    ("node", "rule", "words"),
    [
        pytest.param(machine("n", "odd"), "NoPrice", "its instance type odd has no price", id="of a type without a price"),
        pytest.param(make_node("n"), "NoPrice", "its instance type (no label) has no price", id="of no type"),
        pytest.param(machine("n", labels={CONTROL_PLANE: ""}), "ControlPlane", "it is of the control plane", id="labelled so"),
        pytest.param(
            machine("n", taints=(Taint(CONTROL_PLANE, Effect.NO_SCHEDULE, ""),)),
            "ControlPlane",
            "it is of the control plane",
            id="tainted so",
        ),
        pytest.param(
            machine("n", labels={TIER_LABEL: "edge"}),
            "NodeGroupNotElastic",
            "it is on the edge, where HTAS launches and deletes nothing",
            id="on the edge",
        ),
        pytest.param(machine("n", is_ready=False), "NotReady", "it is not Ready", id="not Ready"),
    ],
)  # fmt: skip
def test_which_nodes_stay_and_why(node: Node, rule: str, words: str) -> None:
    stays = adopted([node, machine("other")]).fixed
    assert list(stays) == ["n"]
    assert (str(stays["n"].rule), stays["n"].message) == (rule, words)


@pytest.mark.parametrize(
    ("key", "rule"), [(DO_NOT_DISRUPT, "DoNotDisrupt"), (SCALE_DOWN_DISABLED, "ScaleDownDisabledAnnotation")]
)
def test_an_annotated_node_stays_for_as_long_as_it_is_annotated(key: str, rule: str) -> None:
    present = adopted([machine("n", annotations={key: "true", "other": "true"}), machine("other")])
    assert not present.fixed
    assert {name: (str(stays.rule), stays.message) for name, stays in present.calm.items()} == {
        "n": (rule, f"annotated {key}=true")
    }
    lifted = uncalmed(present, (rule,))
    assert not lifted.calm
    assert {node.name: (node.group, node.held_by) for node in lifted.snapshot.cluster.nodes} == {
        "n": (ADOPTED, None),
        "other": (ADOPTED, None),
    }
    assert {claim.node for claim in lifted.snapshot.claims} == {"n", "other"}


def test_a_node_with_two_annotations_stays_by_the_other() -> None:
    present = adopted([machine("n", annotations={DO_NOT_DISRUPT: "true", SCALE_DOWN_DISABLED: "true"})])
    lifted = uncalmed(present, ("ScaleDownDisabledAnnotation",))
    [node] = lifted.snapshot.cluster.nodes
    assert (list(lifted.calm), node.held_by, node.group) == (["n"], DO_NOT_DISRUPT, None)


def test_a_node_with_a_pod_that_is_not_understood_stays() -> None:
    (stays,) = adopted([machine("n")], unread={"n": "shop/odd"}).fixed.values()
    assert (str(stays.rule), "shop/odd" in stays.message) == ("UnreadablePod", True)


@pytest.mark.parametrize(
    ("labels", "is_foreign"),
    [
        ({}, True),
        ({CLUSTER_LABEL: "test", CLAIM_LABEL: "n"}, False),
        ({CLUSTER_LABEL: "other", CLAIM_LABEL: "n"}, True),
        ({CLUSTER_LABEL: "test"}, True),
    ],
    ids=["nobody's", "ours", "of another cluster", "without a claim"],
)
def test_nodes_that_htas_has_not_bought_are_told_apart(labels: dict[str, str], is_foreign: bool) -> None:
    assert adopted([machine("n", labels=labels)]).foreign == (frozenset({"n"}) if is_foreign else frozenset())


def test_nodes_that_stay_are_nobody_s_and_the_others_are_in_the_group_of_the_present() -> None:
    present = adopted(
        [machine("stays", is_ready=False, labels={CLUSTER_LABEL: "test", CLAIM_LABEL: "x"}), machine("n")]
    )
    groups = {node.name: (node.cluster, node.claim, node.group) for node in present.snapshot.cluster.nodes}
    assert groups == {"stays": (None, None, None), "n": ("test", "n", ADOPTED)}
    assert [(claim.id, claim.node, claim.nanos_per_hour) for claim in present.snapshot.claims] == [
        ("n", "n", 400_000_000)
    ]


@pytest.mark.parametrize(
    ("node", "is_closed"),
    [
        pytest.param(machine("n", "odd"), True, id="whose price is not known"),
        pytest.param(machine("n", labels={TIER_LABEL: "edge"}), True, id="of the edge"),
        pytest.param(machine("n", annotations={DO_NOT_DISRUPT: "true"}), False, id="that is only kept calm"),
        pytest.param(machine("n", annotations={DO_NOT_DISRUPT: "true"}, is_unschedulable=True), True, id="that was closed"),
    ],
)  # fmt: skip
def test_no_work_is_moved_to_a_node_that_stays(node: Node, is_closed: bool) -> None:
    (found,) = adopted([node]).snapshot.cluster.nodes
    assert found.is_unschedulable == is_closed


def test_types_without_a_price_are_counted() -> None:
    present = adopted([machine("a", "odd"), machine("b", "odd"), make_node("c"), machine("d")])
    assert present.unpriced == {"": 1, "odd": 2}
    assert [present.price(node) for node in present.snapshot.cluster.nodes] == [0, 0, 0, 400_000_000]
    assert [present.is_priced(node) for node in present.snapshot.cluster.nodes] == [False, False, False, True]


ANSWERING = running(make_pod("web"), "n")


@pytest.mark.parametrize(
    ("pod", "is_there", "waiting"),
    [
        pytest.param(ANSWERING, True, 0, id="one that runs"),
        pytest.param(make_pod("web"), False, 1, id="one that waits"),
        pytest.param(make_pod("web", deleted_at=NOW - 1), False, 0, id="one that waited, and goes"),
        pytest.param(make_pod("log", owner=Owner("DaemonSet", "log")), True, 0, id="a DaemonSet's that waits"),
        pytest.param(msgspec.structs.replace(ANSWERING, deleted_at=NOW - 1), False, 0, id="one that ends"),
        pytest.param(running(make_pod("web"), "gone"), False, 0, id="one on a node that is not there"),
    ],
)
def test_which_pods_are_asked_about(pod: Pod, is_there: bool, waiting: int) -> None:
    present = adopted([machine("n")], [pod])
    assert (len(present.snapshot.cluster.pods), present.waiting) == (int(is_there), waiting)


@pytest.mark.parametrize(
    ("pod", "may"),
    [
        pytest.param(ANSWERING, "true", id="a service that says nothing"),
        pytest.param(msgspec.structs.replace(ANSWERING, disruption={MAY_MIGRATE: "false"}), "false", id="one that forbids it"),
        pytest.param(running(make_job("j"), "n"), None, id="batch work"),
        pytest.param(running(make_pod("log", owner=Owner("DaemonSet", "log")), "n"), None, id="a DaemonSet's"),
    ],
)  # fmt: skip
def test_services_are_taken_to_have_opted_in_unless_asked_as_annotated(pod: Pod, may: str | None) -> None:
    (found,) = adopted([machine("n")], [pod]).snapshot.cluster.pods
    assert found.disruption.get(MAY_MIGRATE) == may
    assert found.scheduler == POLICY.scheduler_name
    annotated = adopted([machine("n")], [pod], as_annotated=True)
    assert annotated.snapshot.cluster.pods[0].disruption == pod.disruption
    assert not annotated.opted_in
    assert adopted([machine("n")], [pod]).opted_in == ({pod.key} if may == "true" else set())


def static(node: str, base: str = "proxy") -> Pod:
    return running(make_pod(f"{base}-{node}", is_mirror=True, owner=Owner("Node", node), namespace="kube-system"), node)


@pytest.mark.parametrize(
    ("pods", "daemons", "fixed"),
    [
        pytest.param([static("a"), static("b")], 2, [], id="on every worker"),
        pytest.param([static("a")], 0, ["a"], id="on one of two"),
        pytest.param([static("a"), static("b", "agent")], 0, ["a", "b"], id="of two kinds"),
    ],
)
def test_static_pods_that_every_worker_has_would_be_on_a_new_one(
    pods: list[Pod], daemons: int, fixed: list[str]
) -> None:
    """The control plane has its own, and is not asked."""
    master = machine("m", labels={CONTROL_PLANE: ""})
    present = adopted([master, machine("a"), machine("b")], pods, daemons=())
    assert sum(pod.is_daemon for pod in present.snapshot.cluster.pods) == daemons
    assert [name for name in present.fixed if name != "m"] == fixed
    assert len(present.snapshot.cluster.daemons or ()) == min(1, daemons)


def test_present_nodes_are_cleaned_by_the_first_group_s_rules_without_their_waits() -> None:
    rules = CleaningRules(underutilized_for_s=1.0, empty_for_s=900.0, delay_after_launch_s=900.0, max_nodes_at_once=3)
    rules = msgspec.structs.replace(rules, max_node_age_s=1.0, min_kubelet_version="v1.34", repair_s=(("D", 1.0),))
    policy = make_policy([NodeGroup("first", cleaning=rules), NodeGroup("second")], FLAVOURS)
    present = adopt(ClusterView((machine("a"), machine("b"))), policy, NOW)
    found = present.rules
    assert [group.name for group in present.policy.groups] == ["first", "second", ADOPTED]
    assert (found.empty_release, found.empty_for_s, found.delay_after_launch_s) == (EmptyRelease.AT_ONCE, 0.0, 0.0)
    assert (found.underutilized_for_s, found.max_nodes_at_once, found.max_node_age_s) == (1.0, 2, None)
    assert (found.min_kubelet_version, found.repair_s) == (None, ())
    assert present.policy.groups[-1].flavours == ()
    assert adopt(ClusterView(()), policy, NOW).rules.max_nodes_at_once == 1


BY_ZONE = running(make_pod("zonal", constraints=Constraints(node_selector=((ZONE_LABEL, "east"),))), "a")


@pytest.mark.parametrize(
    ("zone", "pods", "zoneless", "zones"),
    [
        pytest.param("east", [BY_ZONE], ("large",), ("east",), id="work goes by zones"),
        pytest.param("east", [ANSWERING], (), (), id="no work does"),
        pytest.param(None, [BY_ZONE], (), (), id="the cluster has none"),
        pytest.param(
            "east", [msgspec.structs.replace(BY_ZONE, owner=Owner("DaemonSet", "log"))], (), (), id="a DaemonSet does"
        ),
    ],
)
def test_flavours_that_name_no_zones_are_told_where_work_goes_by_them(
    zone: str | None, pods: list[Pod], zoneless: tuple[str, ...], zones: tuple[str, ...]
) -> None:
    labels = {ZONE_LABEL: zone} if zone else {}
    present = adopted([machine("a", labels=labels), machine("n", labels=labels)], pods)
    assert (present.zoneless, present.zones) == (zoneless, zones)


def test_what_a_flavour_offers_is_what_its_first_ready_node_offers() -> None:
    nodes = [machine("b", cpu="3"), machine("a", cpu="2", is_ready=False), machine("c", cpu="1"), machine("d", "odd")]
    learned = adopted(nodes).snapshot.learned
    assert {name: size.cpu_m for name, size in learned.items()} == {"large": 3000}


def test_a_pod_that_is_pending_on_a_node_counts_for_it() -> None:
    pod = msgspec.structs.replace(ANSWERING, phase=Phase.PENDING)
    assert adopted([machine("n")], [pod]).snapshot.cluster.pods[0].node == "n"
