"""Who must leave a node. The facts of most cases are those of kube-scheduler's tables (default_preemption_test.go)."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import HostPort, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import ZONE_LABEL, Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement
from tests.builders import NOW, constrained, no_schedule
from tests.unit.planning.preemption.world import HIGH, LOW, MIDDLE, budget, chosen, ending, incoming, machine, on

HOSTNAME = "kubernetes.io/hostname"
FOO = LabelSelector((Requirement("foo", Operator.EXISTS, ()),))


def names(*pods: str) -> set[str]:
    return set(pods)


ONE_NODE = [
    pytest.param("4", [on("n", "a")], names("a"), id="all of the node is needed: its only pod leaves"),
    pytest.param("1", [on("n", "a")], names("a"), id="a pod larger than what is needed leaves wholly"),
    pytest.param(
        "3",
        [on("n", "small", "1", LOW), on("n", "large", "3", MIDDLE)],
        names("large"),
        id="the less important one is small, so that it may stay beside the newcomer",
    ),
    pytest.param(
        "1",
        [on("n", "a", "2", MIDDLE), on("n", "b", "2", LOW)],
        names("b"),
        id="either would do: the less important leaves",
    ),
    pytest.param(
        "2",
        [on("n", f"p{i}", "1", LOW, since_s=10.0 * (i + 1)) for i in range(4)],
        names("p0", "p1"),
        id="among equals those that started last leave",
    ),
    pytest.param(
        "2",
        [on("n", "m1", "1", MIDDLE), on("n", "low", "1"), on("n", "m2", "1", MIDDLE), on("n", "high", "1", HIGH)],
        names("low", "m2"),
        id="of mixed priorities the least important leaves, then the next",
    ),
    pytest.param(
        "2",
        [
            on("n", "late", "1", since_s=5),
            on("n", "early", "1", since_s=50),
            on("n", "mid", "1", MIDDLE),
            on("n", "high", "1", HIGH),
        ],
        names("late", "early"),
        id="middle priority is let back before any of low priority",
    ),
    pytest.param(
        "3",
        [
            on("n", "p1.1", "1", LOW, since_s=1),
            on("n", "p1.2", "1", LOW, since_s=2),
            on("n", "p1.3", "2", MIDDLE, since_s=3),
        ],
        names("p1.1", "p1.3"),
        id="reprieve is greedy: an important pod that does not fit beside the newcomer leaves, a lesser one that does stays",
    ),
    pytest.param(
        "2",
        [on("n", "over", "3", LOW, since_s=5), on("n", "under", "1", LOW, since_s=9)],
        names("over"),
        id="the older of two is let back where it fits",
    ),
]


@pytest.mark.parametrize(("cpu", "pods", "victims"), ONE_NODE)
def test_victims_on_a_node(cpu: str, pods: list[Pod], victims: set[str]) -> None:
    assert chosen(incoming(cpu), [machine("n")], pods) == ("n", victims)


def repelling(pod: Pod) -> Pod:
    constraints = constrained(anti_affinity=(PodAffinityTerm(HOSTNAME, FOO),))
    return msgspec.structs.replace(pod, constraints=constraints)


PORT = constrained(host_ports=(HostPort(80),))
SPREAD = (SpreadConstraint(ZONE_LABEL, 1, FOO), SpreadConstraint(HOSTNAME, 1, FOO))
TOGETHER = constrained(affinity=(PodAffinityTerm(HOSTNAME, FOO),))


def in_zone(name: str, zone: str) -> Node:
    return machine(name, labels={ZONE_LABEL: zone})


def spread_out() -> list[Pod]:
    return [
        on("a", "a1", "1", MIDDLE, labels={"foo": ""}),
        on("a", "a2", "1", LOW, labels={"foo": ""}),
        on("b", "b1", "1", LOW, labels={"foo": ""}, since_s=90),
        on("x", "x1", "1", HIGH, labels={"foo": ""}),
        on("x", "x2", "1", HIGH, labels={"foo": ""}),
    ]


OTHER_FILTERS = [
    pytest.param(
        incoming("1", labels={"foo": ""}),
        [machine("n"), machine("o")],
        [
            repelling(on("n", "unwilling", "1", LOW, labels={"foo": ""})),
            on("n", "mid", "1", MIDDLE),
            on("o", "full", "4", HIGH),
        ],
        ("n", {"unwilling"}),
        id="a pod that repels the newcomer leaves, others stay",
    ),
    pytest.param(
        repelling(incoming("1")),
        [machine("n")],
        [on("n", "unwanted", "1", LOW, labels={"foo": ""}), on("n", "other", "1", LOW)],
        ("n", {"unwanted"}),
        id="a pod that the newcomer repels leaves",
    ),
    pytest.param(
        incoming("1", constraints=PORT),
        [machine("n")],
        [on("n", "web", "1", MIDDLE, constraints=PORT), on("n", "other", "1", LOW)],
        ("n", {"web"}),
        id="who has the host port leaves",
    ),
    pytest.param(
        incoming("1", labels={"foo": ""}, constraints=constrained(spread=SPREAD)),
        [in_zone("a", "1"), in_zone("b", "1"), in_zone("x", "2")],
        spread_out(),
        ("a", {"a2"}),
        id="skew is mended by one pod less in the fuller zone",
    ),
    pytest.param(
        incoming("100m"),
        [machine("n", pods=2)],
        [on("n", "late", "100m", since_s=1), on("n", "early", "100m", since_s=2)],
        ("n", {"late"}),
        id="places for pods run out as cpu does",
    ),
    pytest.param(
        incoming("2"),
        [machine("n")],
        [
            on("n", "database", "2", LOW, labels={"foo": ""}, since_s=1),
            on("n", "server", "1", MIDDLE, constraints=TOGETHER),
            on("n", "cache", "1", LOW, constraints=TOGETHER, since_s=90),
        ],
        ("n", {"database"}),
        id="who runs beside a victim because of its affinity stays, as with kube-scheduler: filters are asked for the newcomer alone",
    ),
]


@pytest.mark.parametrize(("pod", "nodes", "pods", "expected"), OTHER_FILTERS)
def test_every_filter_is_asked(pod: Pod, nodes: list[Node], pods: list[Pod], expected: object) -> None:
    assert chosen(pod, nodes, pods) == expected


NO_WAY = [
    pytest.param(incoming("4", LOW), [machine("n")], [on("n", "a", "4", LOW)], id="equal priority preempts nobody"),
    pytest.param(incoming("4", LOW), [machine("n")], [on("n", "a", "4", MIDDLE)], id="higher priority stays"),
    pytest.param(incoming("5"), [machine("n")], [on("n", "a", "4")], id="the node is too small, were it empty"),
    pytest.param(
        incoming("4"),
        [machine("n")],
        [on("n", "a", "2"), on("n", "b", "2", HIGH)],
        id="what would be left is not enough",
    ),
    pytest.param(
        incoming("4", constraints=constrained(node_selector=(("disk", "ssd"),))),
        [machine("n")],
        [on("n", "a")],
        id="the node's labels do not change when pods leave",
    ),
    pytest.param(
        incoming("4"),
        [machine("n", taints=(no_schedule("dedicated"),))],
        [on("n", "a")],
        id="a taint does not go with the pods",
    ),
    pytest.param(incoming("4"), [machine("n", is_unschedulable=True)], [on("n", "a")], id="a cordoned node"),
    pytest.param(incoming("4"), [machine("n", is_ready=False)], [on("n", "a")], id="a node that is not Ready"),
    pytest.param(
        incoming("4", constraints=TOGETHER, labels={"foo": ""}),
        [machine("n"), machine("o")],
        [on("n", "a"), on("o", "friend", "4", HIGH, labels={"foo": ""})],
        id="no friend is found by removing pods",
    ),
    pytest.param(
        incoming("4", constraints=TOGETHER),
        [machine("n")],
        [on("n", "friend", "4", LOW, labels={"foo": ""})],
        id="the friend itself would have to leave",
    ),
    pytest.param(
        incoming("1", labels={"foo": ""}, constraints=constrained(spread=(SpreadConstraint("rack", 1, FOO),))),
        [machine("n")],
        [on("n", "a", "1")],
        id="the node lacks a label that the newcomer spreads by",
    ),
]


@pytest.mark.parametrize(("pod", "nodes", "pods"), NO_WAY)
def test_where_removal_does_not_help(pod: Pod, nodes: list[Node], pods: list[Pod]) -> None:
    assert "nodes are available" in chosen(pod, nodes, pods)


def test_a_pod_that_may_not_preempt_does_not() -> None:
    found = chosen(incoming("4", preempts=False), [machine("n")], [on("n", "a")])
    assert found == "preemption: not eligible due to preemptionPolicy=Never."


def test_the_refusal_counts_nodes_as_kube_scheduler_does() -> None:
    nodes = [machine("a", "2"), machine("b"), machine("c")]
    pods = [on("a", "p1", "2"), on("b", "p2", "4", HIGH), on("c", "p3", "4", HIGH)]
    assert chosen(incoming("4"), nodes, pods) == (
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


def budgeted(*priorities: int) -> list[Pod]:
    return [on("n", f"p{i}", "2", p, labels={"app": "foo"}, since_s=50 - i) for i, p in enumerate(priorities)]


BUDGETS = [
    pytest.param("4", budgeted(0, 0), [budget(1)], {"p0", "p1"}, id="where all must leave, a budget is broken"),
    pytest.param("4", budgeted(0, 0), [budget(2)], {"p0", "p1"}, id="a budget for two lets two go"),
    pytest.param(
        "2",
        [on("n", "kept", "2", LOW, labels={"app": "foo"}), on("n", "free", "2", MIDDLE)],
        [budget(0)],
        {"free"},
        id="a more important pod without a budget leaves before one whose budget would be broken",
    ),
    pytest.param("2", budgeted(0, 0), [budget(1)], {"p0"}, id="of two that share a budget for one, that one leaves"),
    pytest.param(
        "2",
        [
            on("n", "both", "2", LOW, labels={"app": "foo", "tier": "web"}),
            on("n", "one", "2", MIDDLE, labels={"tier": "web"}),
        ],
        [budget(1), budget(0, name="other")],
        {"one"},
        id="a pod that one of two budgets forbids is spared",
    ),
    pytest.param(
        "2",
        [on("n", "other-namespace", "2", LOW, labels={"app": "foo"}, namespace="x"), on("n", "b", "2", MIDDLE)],
        [budget(0)],
        {"other-namespace"},
        id="a budget covers its own namespace alone",
    ),
]


@pytest.mark.parametrize(("cpu", "pods", "budgets", "victims"), BUDGETS)
def test_budgets_are_kept_where_there_is_a_choice(
    cpu: str, pods: list[Pod], budgets: list[DisruptionBudget], victims: set[str]
) -> None:
    assert chosen(incoming(cpu), [machine("n")], pods, budgets) == ("n", victims)


ENDING = [
    pytest.param([ending(on("n", "a"))], set(), id="what ends already is waited for"),
    pytest.param([ending(on("n", "a", priority=HIGH))], set(), id="whatever its priority"),
    pytest.param(
        [ending(on("n", "a", "2")), on("n", "b", "2")], {"b"}, id="and where it is not enough, the others leave"
    ),
]


@pytest.mark.parametrize(("pods", "victims"), ENDING)
def test_pods_that_end_are_no_victims(pods: list[Pod], victims: set[str]) -> None:
    assert chosen(incoming("4"), [machine("n")], pods) == ("n", victims)


@pytest.mark.parametrize("grace_s", [601.0, 8.6e9])
def test_a_pod_that_may_take_for_ever_to_end_is_not_waited_for(grace_s: float) -> None:
    """A tenant's pod that has centuries to end must not keep more important work from a victim elsewhere."""
    slow = msgspec.structs.replace(ending(on("n", "slow")), grace_s=grace_s, deleted_at=NOW + grace_s)
    assert chosen(incoming("4"), [machine("n"), machine("m")], [slow, on("m", "victim")]) == ("m", {"victim"})


def test_a_pod_whose_kubelet_is_silent_frees_no_room() -> None:
    assert "nodes are available" in chosen(incoming("4"), [machine("n")], [ending(on("n", "stuck"), since_s=900)])
