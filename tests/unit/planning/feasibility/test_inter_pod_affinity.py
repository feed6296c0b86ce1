"""InterPodAffinity, after kube-scheduler's plugins/interpodaffinity/filtering_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import PodAffinityTerm
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator
from htas.planning.cluster.feasibility import inter_pod_affinity
from tests.builders import labels_are, make_node
from tests.unit.planning.feasibility.situations import (
    BAR,
    FOO,
    HOST,
    REGION,
    ZONE,
    all_of,
    crowd,
    has,
    on,
    pod,
    refusals,
    requires,
    term,
    two_zones,
    zoned,
)

FAR = "node(s) didn't match pod affinity rules"
NEAR = "node(s) didn't match pod anti-affinity rules"
UNWILLING = "node(s) didn't satisfy existing pods anti-affinity rules"
TEAMS = {
    "default": {},
    "red-1": {"team": "red"},
    "red-2": {"team": "red"},
    "blue": {"team": "blue"},
}


def judge(nodes: list[Node], incoming: Pod, placed: list[Pod], **world: Any) -> dict[str, str]:
    return dict(refusals(inter_pod_affinity.refuse, nodes, incoming, placed, namespaces=TEAMS, **world))


def regions() -> list[Node]:
    """Nodes a and b in one region but two zones, c in another region without zones."""
    return [
        make_node("a", labels={REGION: "r1", ZONE: "1"}),
        make_node("b", labels={REGION: "r1", ZONE: "2"}),
        make_node("c", labels={REGION: "r2"}),
    ]


def selects(*requirements: Any) -> LabelSelector:
    return LabelSelector(requirements)


@pytest.mark.parametrize(
    ("incoming", "placed", "refused"),
    [
        pytest.param(pod(), crowd("a", "foo"), {}, id="no rules at all"),
        pytest.param(pod(affinity=(term(),)), crowd("a", "foo"), all_of("xy", FAR), id="beside a friend, by zone"),
        pytest.param(pod(affinity=(term(key=HOST),)), crowd("a", "foo"), all_of("bxy", FAR), id="on a friend's node"),
        pytest.param(pod(affinity=(term(),)), crowd("ax", "foo"), {}, id="friends in every zone"),
        pytest.param(pod(affinity=(term(),)), [], all_of("abxy", FAR), id="no friend anywhere"),
        pytest.param(pod(affinity=(term(),)), crowd("a", "bar"), all_of("abxy", FAR), id="strangers only"),
        pytest.param(
            pod(affinity=(term(selects(requires("foo", Operator.IN, "no", "yes"))),)),
            crowd("a", "foo"),
            all_of("xy", FAR),
            id="a selector with In",
        ),
        pytest.param(
            pod(affinity=(term(selects(requires("foo", Operator.NOT_IN, "no"))),)),
            crowd("a", "foo"),
            all_of("xy", FAR),
            id="a selector with NotIn",
        ),
        pytest.param(
            pod(affinity=(term(selects(requires("foo", Operator.EXISTS), requires("bar", Operator.DOES_NOT_EXIST))),)),
            [*crowd("a", "foo"), *crowd("x", "foo", "bar")],
            all_of("xy", FAR),
            id="all expressions of a selector must hold",
        ),
        pytest.param(pod(affinity=(term(None),)), crowd("a", "foo"), all_of("abxy", FAR), id="no selector: no friend"),
        pytest.param(
            pod(affinity=(term(LabelSelector()),)), crowd("a"), all_of("xy", FAR), id="empty selector: anyone"
        ),
        pytest.param(pod(affinity=(term(key="rack"),)), crowd("a", "foo"), all_of("abxy", FAR), id="a key nobody has"),
        pytest.param(
            pod(affinity=(term(), term(key=HOST))), crowd("a", "foo"), all_of("bxy", FAR), id="every key must be shared"
        ),
        pytest.param(
            pod(affinity=(term(has("foo")), term(has("bar"), HOST))),
            crowd("a", "foo", "bar"),
            all_of("bxy", FAR),
            id="one pod that matches every term",
        ),
        pytest.param(
            pod(affinity=(term(has("foo")), term(has("bar")))),
            [*crowd("a", "foo"), *crowd("a", "bar")],
            all_of("abxy", FAR),
            id="two pods that match a term each do not do, even on one node",
        ),
        pytest.param(
            pod(affinity=(term(),)), [on("a", "foo", deleted_at=1.0)], all_of("xy", FAR), id="a leaving friend counts"
        ),
    ],
)
def test_affinity(incoming: Pod, placed: list[Pod], refused: dict[str, str]) -> None:
    assert judge(two_zones(), incoming, placed) == refused


@pytest.mark.parametrize(
    ("incoming", "placed", "refused"),
    [
        pytest.param(pod("foo", affinity=(term(),)), [], {"c": FAR}, id="anywhere with the key"),
        pytest.param(
            pod("foo", affinity=(term(),)), crowd("a", "bar"), {"c": FAR}, id="strangers do not make it second"
        ),
        pytest.param(pod("foo", affinity=(term(),)), crowd("b", "foo"), {"a": FAR, "c": FAR}, id="the second follows"),
        pytest.param(
            pod("foo", "bar", affinity=(term(has("foo")), term(has("bar")))),
            crowd("a", "foo"),
            {"c": FAR},
            id="a pod that matches one of two terms is no first",
        ),
        pytest.param(
            pod("foo", affinity=(term(has("foo")), term(has("bar")))), [], all_of("abc", FAR), id="it must match itself"
        ),
        pytest.param(
            pod("foo", affinity=(term(), term(key="rack"))), [], all_of("abc", FAR), id="only where every key is"
        ),
        pytest.param(
            pod("foo", affinity=(term(),)),
            crowd("c", "foo"),
            {"c": FAR},
            id="a friend on a node without the key is none",
        ),
        pytest.param(
            pod("foo", affinity=(term(namespaces=("blue",)),)),
            [],
            all_of("abc", FAR),
            id="its namespace is not asked for",
        ),
        pytest.param(
            pod("foo", affinity=(term(),)),
            [on("b", "foo", namespace="blue")],
            {"c": FAR},
            id="a friend elsewhere is none",
        ),
    ],
)
def test_the_first_pod_of_its_kind(incoming: Pod, placed: list[Pod], refused: dict[str, str]) -> None:
    assert judge(regions(), incoming, placed) == refused


@pytest.mark.parametrize(
    ("incoming", "placed", "refused"),
    [
        pytest.param(pod(anti_affinity=(term(),)), crowd("a", "foo"), all_of("ab", NEAR), id="apart, by zone"),
        pytest.param(pod(anti_affinity=(term(key=HOST),)), crowd("a", "foo"), {"a": NEAR}, id="apart, by node"),
        pytest.param(pod(anti_affinity=(term(),)), crowd("ax", "foo"), all_of("abxy", NEAR), id="in every zone"),
        pytest.param(pod(anti_affinity=(term(),)), crowd("a", "bar"), {}, id="strangers do not mind"),
        pytest.param(pod(anti_affinity=(term(None),)), crowd("a", "foo"), {}, id="no selector: nobody"),
        pytest.param(pod(anti_affinity=(term(key="rack"),)), crowd("a", "foo"), {}, id="a key nobody has"),
        pytest.param(
            pod(anti_affinity=(term(has("foo"), HOST), term(has("bar")))),
            [*crowd("a", "foo"), *crowd("x", "bar")],
            {"a": NEAR, "x": NEAR, "y": NEAR},
            id="any term keeps away",
        ),
        pytest.param(
            pod(anti_affinity=(term(key="rack"), term(BAR, HOST))),
            crowd("a", "foo", "bar"),
            {"a": NEAR},
            id="selector and key of one term belong together",
        ),
        pytest.param(
            pod(anti_affinity=(term(),)), [on("a", "foo", namespace="blue")], {}, id="pods of another namespace"
        ),
        pytest.param(
            pod(anti_affinity=(term(),)),
            [on("a", "foo", deleted_at=1.0)],
            all_of("ab", NEAR),
            id="a leaving pod is there still",
        ),
        pytest.param(pod("foo", anti_affinity=(term(),)), [], {}, id="it does not repel itself"),
    ],
)
def test_anti_affinity(incoming: Pod, placed: list[Pod], refused: dict[str, str]) -> None:
    assert judge(two_zones(), incoming, placed) == refused


@pytest.mark.parametrize(
    ("incoming", "placed", "refused"),
    [
        pytest.param(
            pod("foo"), [on("a", anti_affinity=(term(),))], all_of("ab", UNWILLING), id="a loner keeps its zone"
        ),
        pytest.param(pod("foo"), [on("a", anti_affinity=(term(key=HOST),))], {"a": UNWILLING}, id="or its node"),
        pytest.param(pod("bar"), [on("a", anti_affinity=(term(),))], {}, id="to others it is indifferent"),
        pytest.param(
            pod("foo"),
            [on("a", anti_affinity=(term(selects(requires("foo", Operator.NOT_IN, "yes"))),))],
            {},
            id="NotIn leaves it out",
        ),
        pytest.param(
            pod(),
            [on("a", anti_affinity=(term(selects(requires("foo", Operator.NOT_IN, "yes"))),))],
            all_of("ab", UNWILLING),
            id="NotIn takes pods without the label",
        ),
        pytest.param(pod("foo"), [on("a", anti_affinity=(term(key="rack"),))], {}, id="a key its node does not have"),
        pytest.param(
            pod("foo", "bar"),
            [on("a", anti_affinity=(term(key="rack"), term(BAR, HOST)))],
            {"a": UNWILLING},
            id="one of its terms has such a key",
        ),
        pytest.param(
            pod("foo", "bar"),
            [
                on("a", anti_affinity=(term(FOO, HOST),)),
                on("x", anti_affinity=(term(BAR, HOST), term(has("zip"), HOST))),
            ],
            {"a": UNWILLING, "x": UNWILLING},
            id="two loners, each for a reason of its own",
        ),
        pytest.param(
            pod("foo"),
            [on("a", namespace="blue", anti_affinity=(term(),))],
            {},
            id="a loner looks at its own namespace",
        ),
        pytest.param(
            pod("foo"),
            [on("a", namespace="blue", anti_affinity=(term(namespaces=("default",)),))],
            all_of("ab", UNWILLING),
            id="or at those it names",
        ),
        pytest.param(
            pod("foo", namespace="red-1"),
            [on("a", namespace="blue", anti_affinity=(term(namespace_selector=labels_are(team="red")),))],
            all_of("ab", UNWILLING),
            id="or selects",
        ),
    ],
)
def test_running_pods_keep_others_away(incoming: Pod, placed: list[Pod], refused: dict[str, str]) -> None:
    assert judge(two_zones(), incoming, placed) == refused


@pytest.mark.parametrize(
    ("incoming", "there", "reason"),
    [
        pytest.param(
            pod("bar", affinity=(term(key=REGION),), anti_affinity=(term(BAR),)), on("a", "foo"), None, id="all is well"
        ),
        pytest.param(
            pod("bar", affinity=(term(key=REGION),), anti_affinity=(term(),)),
            on("a", "foo"),
            NEAR,
            id="friend and foe in one",
        ),
        pytest.param(
            pod("foo", affinity=(term(key=REGION),), anti_affinity=(term(BAR),)),
            on("a", "foo", anti_affinity=(term(),)),
            UNWILLING,
            id="the friend wants to be alone",
        ),
        pytest.param(
            pod("foo", anti_affinity=(term(has("foo")), term(has("bar")))),
            on("a", "bar", anti_affinity=(term(has("bar")),)),
            NEAR,
            id="its own anti-affinity is told before the other's",
        ),
        pytest.param(
            pod("bar", anti_affinity=(term(has("bar")),)),
            on("a", "foo", anti_affinity=(term(has("foo")), term(has("bar")))),
            UNWILLING,
            id="the other one's alone",
        ),
        pytest.param(
            pod("abc", "xyz", anti_affinity=(term(has("abc")), term(has("def")))),
            on("a", "def", "xyz", anti_affinity=(term(has("abc")), term(has("def")))),
            NEAR,
            id="each repels the other",
        ),
        pytest.param(
            pod("bar", affinity=(term(BAR),), anti_affinity=(term(),)),
            on("a", "foo", "bar", namespace="blue", anti_affinity=(term(BAR, namespaces=("default",)),)),
            UNWILLING,
            id="first of its kind, beside a loner of another namespace",
        ),
        pytest.param(
            pod("foo", affinity=(term(BAR),), anti_affinity=(term(),)),
            on("a", "foo", anti_affinity=(term(),)),
            FAR,
            id="affinity is told before everything",
        ),
    ],
)
def test_the_reason_told_is_the_first_in_kube_schedulers_order(incoming: Pod, there: Pod, reason: str | None) -> None:
    assert judge(regions()[:1], incoming, [there]) == ({} if reason is None else {"a": reason})


@pytest.mark.parametrize(
    ("where", "friends_in", "is_friend"),
    [
        pytest.param({}, "default", True, id="its own namespace"),
        pytest.param({}, "blue", False, id="not others"),
        pytest.param({"namespaces": ("blue",)}, "blue", True, id="a namespace by name"),
        pytest.param({"namespaces": ("blue",)}, "default", False, id="then not its own"),
        pytest.param({"namespaces": ("blue", "red-1")}, "red-1", True, id="several by name"),
        pytest.param({"namespace_selector": labels_are(team="red")}, "red-2", True, id="by label"),
        pytest.param({"namespace_selector": labels_are(team="red")}, "blue", False, id="by another label"),
        pytest.param({"namespace_selector": labels_are(team="red")}, "default", False, id="by label: not its own"),
        pytest.param({"namespace_selector": LabelSelector()}, "blue", True, id="an empty selector: all"),
        pytest.param({"namespace_selector": LabelSelector()}, "default", True, id="all, its own too"),
        pytest.param(
            {"namespaces": ("blue",), "namespace_selector": labels_are(team="red")}, "blue", True, id="by name or label"
        ),
        pytest.param(
            {"namespaces": ("blue",), "namespace_selector": labels_are(team="red")},
            "red-1",
            True,
            id="by label or name",
        ),
    ],
)
def test_namespaces_of_a_term(where: dict[str, Any], friends_in: str, is_friend: bool) -> None:
    near = PodAffinityTerm(ZONE, FOO, **where)
    there = on("a", "foo", namespace=friends_in)
    assert judge(zoned(a="1"), pod(affinity=(near,)), [there]) == ({} if is_friend else {"a": FAR})
    assert judge(zoned(a="1"), pod(anti_affinity=(near,)), [there]) == ({"a": NEAR} if is_friend else {})


def test_every_namespace_means_also_those_the_snapshot_does_not_describe() -> None:
    near = PodAffinityTerm(ZONE, FOO, namespace_selector=LabelSelector())
    there = on("a", "foo", namespace="undescribed")
    assert judge(zoned(a="1", b="2"), pod(affinity=(near,)), [there]) == {"b": FAR}
    assert judge(zoned(a="1"), pod("foo"), [on("a", namespace="undescribed", anti_affinity=(near,))]) == {
        "a": UNWILLING
    }
