"""PodTopologySpread, after kube-scheduler's plugins/podtopologyspread/filtering_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import SpreadConstraint
from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.model.policy import NodeGroup, Workload
from htas.model.selectors import LabelSelector, Operator
from htas.planning.cluster.feasibility import topology_spread
from tests.builders import batch_group, make_node, make_policy, no_schedule, owned_node
from tests.unit.planning.feasibility.situations import (
    BAR,
    FOO,
    HOST,
    ZONE,
    all_of,
    crowd,
    expressions,
    on,
    pod,
    refusals,
    requires,
    spread,
    two_zones,
    zoned,
)

SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"


def judge(nodes: list[Node], incoming: Pod, placed: list[Pod], **world: Any) -> dict[str, str]:
    return dict(refusals(topology_spread.refuse, nodes, incoming, placed, **world))


@pytest.mark.parametrize(
    ("constraint", "labels", "placed", "refused"),
    [
        pytest.param(spread(), ["foo"], "", {}, id="nobody is there: every node will do"),
        pytest.param(spread(), ["foo"], "ab", all_of("ab", SKEWED), id="zones 2 and 0: the empty zone"),
        pytest.param(spread(), ["foo"], "abyy", {}, id="zones 2 and 2: every node"),
        pytest.param(spread(), ["foo"], "aabyyy", {}, id="zones 3 and 3: every node, however uneven the nodes"),
        pytest.param(spread(), ["foo"], "aabxyyy", all_of("xy", SKEWED), id="zones 3 and 4: the emptier zone"),
        pytest.param(spread(max_skew=2), ["foo"], "ab", all_of("ab", SKEWED), id="zones 2 and 0 with a skew of two"),
        pytest.param(spread(max_skew=3), ["foo"], "ab", {}, id="zones 2 and 0 with a skew of three"),
        pytest.param(spread(HOST), ["foo"], "aabyyy", all_of("aby", SKEWED), id="nodes 2 1 0 3: only the empty node"),
        pytest.param(spread(HOST, 2), ["foo"], "aabyyy", all_of("ay", SKEWED), id="nodes 2 1 0 3, a skew of two"),
        pytest.param(
            spread(HOST), ["bar"], "aabyyy", all_of("ay", SKEWED), id="nodes 2 1 0 3, a pod that does not count itself"
        ),
        pytest.param(spread(HOST), [], "aaa", all_of("a", SKEWED), id="a pod without labels is spread all the same"),
        pytest.param(spread(selector=None), ["foo"], "xy", {}, id="no selector counts nobody"),
        pytest.param(spread(selector=LabelSelector()), ["foo"], "aaab", {}, id="nor does an empty one"),
        pytest.param(spread("rack"), ["foo"], "", all_of("abxy", UNLABELLED), id="a key that no node has"),
        pytest.param(
            spread(selector=LabelSelector((requires("foo", Operator.NOT_IN, "no"),))),
            ["foo"],
            "aa",
            all_of("ab", SKEWED),
            id="a selector by expression",
        ),
        pytest.param(
            spread(selector=LabelSelector((requires("foo", Operator.EXISTS),))),
            ["bar"],
            "aab",
            all_of("ab", SKEWED),
            id="a selector by existence",
        ),
        pytest.param(spread(min_domains=3), ["foo"], "", {}, id="too few zones, all empty: one each"),
        pytest.param(spread(min_domains=3), ["foo"], "ax", all_of("abxy", SKEWED), id="too few zones: none may grow"),
        pytest.param(
            spread(max_skew=2, min_domains=3), ["foo"], "aby", all_of("ab", SKEWED), id="too few zones, a skew of two"
        ),
        pytest.param(spread(max_skew=2, min_domains=2), ["foo"], "aby", {}, id="just enough zones"),
        pytest.param(spread(max_skew=2, min_domains=1), ["foo"], "aby", {}, id="more zones than asked for"),
        pytest.param(
            spread(HOST, 2, min_domains=5), ["foo"], "aabbx", all_of("ab", SKEWED), id="too few hosts: least is zero"
        ),
    ],
)
def test_one_constraint_over_two_zones_of_two_nodes(
    constraint: SpreadConstraint, labels: list[str], placed: str, refused: dict[str, str]
) -> None:
    assert judge(two_zones(), pod(*labels, spread=(constraint,)), crowd(placed, "foo")) == refused


@pytest.mark.parametrize(
    ("nodes", "constraint", "placed", "refused"),
    [
        pytest.param(
            zoned(a="1", b="", x="2", y="2"),
            spread(),
            "abxy",
            {"b": UNLABELLED, "x": SKEWED, "y": SKEWED},
            id="pods on a node without the label count nowhere",
        ),
        pytest.param(zoned(a="", b=""), spread(), "ab", all_of("ab", UNLABELLED), id="no node has the label"),
        pytest.param(zoned(a="1"), spread(), "aaaa", {}, id="a single zone is always even"),
        pytest.param(
            zoned(a="1"), spread(min_domains=2), "a", {"a": SKEWED}, id="unless more zones were asked for than exist"
        ),
        pytest.param(
            zoned(a="1", b="2", c="3"), spread(), "aab", all_of("ab", SKEWED), id="the least of three zones decides"
        ),
        pytest.param(
            zoned(a="1", b="2", c="3"), spread(max_skew=2, min_domains=4), "aabbc", all_of("ab", SKEWED), id="2 2 1"
        ),
    ],
)
def test_labels_and_domains(
    nodes: list[Node], constraint: SpreadConstraint, placed: str, refused: dict[str, str]
) -> None:
    assert judge(nodes, pod("foo", spread=(constraint,)), crowd(placed, "foo")) == refused


@pytest.mark.parametrize(
    ("labels", "selectors", "foo", "bar", "refused"),
    [
        pytest.param(["foo"], (FOO, FOO), "aabyyy", "", all_of("aby", SKEWED), id="3/3 by zone, 2 1 0 3 by host: x"),
        pytest.param(["foo"], (FOO, FOO), "aabyyyy", "", all_of("abxy", SKEWED), id="3/4 by zone, 2 1 0 4: none"),
        pytest.param(["foo", "bar"], (FOO, BAR), "a", "y", all_of("aby", SKEWED), id="two selectors, 1/0 and 0 0 0 1"),
        pytest.param(["foo", "bar"], (FOO, BAR), "a", "xy", all_of("abxy", SKEWED), id="1/0 and 0 0 1 1: none"),
        pytest.param(["foo", "bar"], (FOO, BAR), "aayyy", "ay", all_of("axy", SKEWED), id="2/3 and 1 0 0 1: only b"),
        pytest.param(["bar"], (FOO, BAR), "a", "xy", all_of("xy", SKEWED), id="the pod counts itself by host alone"),
    ],
)
def test_two_constraints_must_both_hold(
    labels: list[str], selectors: tuple[LabelSelector, LabelSelector], foo: str, bar: str, refused: dict[str, str]
) -> None:
    constraints = spread(ZONE, 1, selectors[0]), spread(HOST, 1, selectors[1])
    placed = [*crowd(foo, "foo"), *crowd(bar, "bar")]
    assert judge(two_zones(), pod(*labels, spread=constraints), placed) == refused


def test_a_node_without_one_of_two_keys_counts_for_neither() -> None:
    nodes = two_zones()
    nodes[2] = make_node("x", labels={ZONE: "2"})
    nodes = [
        Node(n.name, n.allocatable, labels={**n.labels, **({"rack": n.name} if n.name != "x" else {})}) for n in nodes
    ]
    both = spread(ZONE), spread("rack")
    assert judge(nodes, pod("foo", spread=both), crowd("ay", "foo")) == {"a": SKEWED, "x": UNLABELLED, "y": SKEWED}
    crowded = crowd("axxy", "foo")
    assert judge(nodes, pod("foo", spread=both), crowded) == {"a": SKEWED, "x": UNLABELLED, "y": SKEWED}


def test_the_first_constraint_that_fails_names_the_reason() -> None:
    nodes = [make_node("a", labels={ZONE: "1"}), make_node("b", labels={ZONE: "2", "rack": "r"})]
    placed = crowd("bb", "foo")
    by_zone_first = judge(nodes, pod("foo", spread=(spread(ZONE), spread("rack"))), placed)
    assert by_zone_first == {"a": UNLABELLED}  # b, the one eligible node, is the only zone
    skewed_first = judge(
        [*nodes, make_node("c", labels={ZONE: "3", "rack": "s"})],
        pod("foo", spread=(spread(ZONE), spread("rack"))),
        placed,
    )
    assert skewed_first == {"a": UNLABELLED, "b": SKEWED}


@pytest.mark.parametrize(
    "bystander",
    [
        pytest.param(on("a", "foo", namespace="other"), id="of another namespace"),
        pytest.param(on("a", "foo", deleted_at=1.0), id="being deleted"),
        pytest.param(on("a", "bar"), id="with other labels"),
        pytest.param(on("a", labels={"foo": "no"}), id="with another value"),
    ],
)
def test_who_is_not_counted(bystander: Pod) -> None:
    assert judge(two_zones(), pod("foo", spread=(spread(),)), [bystander]) == {}


@pytest.mark.parametrize(
    ("restriction", "constraint", "refused"),
    [
        pytest.param({"node_selector": (("disk", "ssd"),)}, spread(HOST), "ab", id="nodeSelector honoured: 1 1 0"),
        pytest.param(
            {"node_selector": (("disk", "ssd"),)},
            spread(HOST, honors_node_affinity=False),
            "aby",
            id="nodeSelector ignored: 1 1 0 1",
        ),
        pytest.param(
            {"node_affinity": (expressions(requires("disk", Operator.IN, "ssd")),)},
            spread(HOST),
            "ab",
            id="node affinity honoured",
        ),
        pytest.param(
            {"node_affinity": (expressions(requires("disk", Operator.IN, "ssd")),)},
            spread(HOST, honors_node_affinity=False),
            "aby",
            id="node affinity ignored",
        ),
    ],
)
def test_node_affinity_policy(restriction: dict[str, Any], constraint: SpreadConstraint, refused: str) -> None:
    nodes = [make_node(name, labels={"disk": "ssd"} if name != "y" else {}) for name in "abxy"]
    incoming = pod("foo", spread=(constraint,), **restriction)
    assert judge(nodes, incoming, crowd("aby", "foo")) == all_of(refused, SKEWED)


def test_affinity_narrows_the_domains_that_set_the_minimum() -> None:
    pinned = (expressions(requires(HOST, Operator.IN, "a", "y")),)
    incoming = pod("foo", node_affinity=pinned, spread=(spread(HOST),))
    assert judge(two_zones(), incoming, crowd("aabyyy", "foo")) == {"y": SKEWED}
    elsewhere = (expressions(requires(HOST, Operator.NOT_IN, "b")),)
    incoming = pod("foo", node_affinity=elsewhere, spread=(spread(),))
    assert judge(two_zones(), incoming, crowd("bby", "foo")) == all_of("xy", SKEWED)


@pytest.mark.parametrize(
    ("honours", "refused"),
    [
        pytest.param(True, "ab", id="honoured: the tainted node is no domain"),
        pytest.param(False, "aby", id="ignored, which is the default"),
    ],
)
def test_node_taints_policy(honours: bool, refused: str) -> None:
    nodes = [make_node(name, taints=(no_schedule("gpu"),) if name == "y" else ()) for name in "abxy"]
    incoming = pod("foo", spread=(spread(HOST, honors_node_taints=honours),))
    assert judge(nodes, incoming, crowd("aby", "foo")) == all_of(refused, SKEWED)


@pytest.mark.parametrize(
    ("zone", "host", "unselected", "tainted", "refused"),
    [
        pytest.param({}, {"honors_node_affinity": False}, "y", "", "aby", id="zone honours, host ignores affinity"),
        pytest.param({"honors_node_taints": True}, {}, "", "y", "aby", id="zone honours taints, host does not"),
        pytest.param({}, {}, "b", "y", "ay", id="both ignore taints and honour affinity"),
        pytest.param(
            {"honors_node_taints": True}, {"honors_node_affinity": False}, "b", "y", "aby", id="each its own policies"
        ),
    ],
)
def test_policies_are_each_constraints_own(
    zone: dict[str, bool], host: dict[str, bool], unselected: str, tainted: str, refused: str
) -> None:
    nodes = [
        make_node(
            name,
            labels={ZONE: "1" if name in "ab" else "2", **({} if name in unselected else {"disk": "ssd"})},
            taints=(no_schedule("gpu"),) if name in tainted else (),
        )
        for name in "abxy"
    ]
    incoming = pod("foo", node_selector=(("disk", "ssd"),), spread=(spread(ZONE, **zone), spread(HOST, **host)))
    assert judge(nodes, incoming, crowd("aby", "foo")) == all_of(refused, SKEWED)


def test_cordoned_and_draining_nodes_are_domains_still() -> None:
    nodes = [make_node("a"), make_node("b", is_unschedulable=True)]
    assert judge(nodes, pod("foo", spread=(spread(HOST),)), crowd("a", "foo")) == {"a": SKEWED}


def test_nodes_of_groups_that_do_not_take_the_work_are_no_domains() -> None:
    policy = make_policy([NodeGroup("services", Workload.SERVICE), batch_group()])
    nodes = [owned_node("a", "services"), owned_node("b", "services"), owned_node("c", "batch")]
    service = pod("foo", spread=(spread(HOST),))
    assert judge(nodes, service, crowd("ab", "foo"), policy=policy) == {}
    others = pod("foo", spread=(spread(HOST),), scheduler="default-scheduler")
    assert judge(nodes, others, crowd("ab", "foo"), policy=policy) == all_of("ab", SKEWED)
    batch = pod("foo", spread=(spread(HOST),), kind=WorkKind.BATCH)
    assert judge(nodes, batch, crowd("c", "foo"), policy=policy) == {}
