"""NodeAffinity, after kube-scheduler's plugins/nodeaffinity/node_affinity_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import NodeSelectorTerm
from htas.model.selectors import Operator
from htas.planning.cluster.feasibility import node_affinity
from htas.planning.cluster.feasibility.message import summary
from tests.builders import make_node, opened, verdicts
from tests.unit.planning.feasibility.situations import expressions, named, pod, refusals, requires

UNMATCHED = "node(s) didn't match Pod's node affinity/selector"
OTHER_NODE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
IN, NOT_IN, EXISTS, MISSING = Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST
GT, LT = Operator.GT, Operator.LT


@pytest.mark.parametrize(
    ("labels", "selector", "matches"),
    [
        pytest.param({}, {"foo": "bar"}, False, id="no labels"),
        pytest.param({"foo": "bar"}, {"foo": "bar"}, True, id="the same label"),
        pytest.param({"foo": "bar", "baz": "blah"}, {"foo": "bar"}, True, id="more labels than asked for"),
        pytest.param({"foo": "bar"}, {"foo": "bar", "baz": "blah"}, False, id="fewer labels than asked for"),
        pytest.param({"foo": "barrr"}, {"foo": "bar"}, False, id="another value"),
        pytest.param({"foo": ""}, {"foo": ""}, True, id="an empty value is a value"),
        pytest.param({}, {"foo": ""}, False, id="and not the same as none"),
    ],
)
def test_node_selector(labels: dict[str, str], selector: dict[str, str], matches: bool) -> None:
    asks = pod(node_selector=tuple(sorted(selector.items())))
    assert refusals(node_affinity.refuse, [make_node("n", labels=labels)], asks) == (
        {} if matches else {"n": UNMATCHED}
    )


@pytest.mark.parametrize(
    ("label", "requirement", "matches"),
    [
        pytest.param("bar", requires("foo", IN, "bar", "value2"), True, id="In, one of its values"),
        pytest.param("bar", requires("foo", IN, "value1", "value2"), False, id="In, none of its values"),
        pytest.param(None, requires("foo", IN, "bar"), False, id="In, no label"),
        pytest.param("bar", requires("foo", IN), False, id="In without values"),
        pytest.param("DDR3", requires("foo", NOT_IN, "DDR", "DDR2"), True, id="NotIn, another value"),
        pytest.param("DDR", requires("foo", NOT_IN, "DDR", "DDR2"), False, id="NotIn, one of its values"),
        pytest.param(None, requires("foo", NOT_IN, "DDR"), True, id="NotIn, no label"),
        pytest.param("K1", requires("foo", EXISTS), True, id="Exists"),
        pytest.param("", requires("foo", EXISTS), True, id="Exists, with an empty value"),
        pytest.param(None, requires("foo", EXISTS), False, id="Exists, no label"),
        pytest.param(None, requires("foo", MISSING), True, id="DoesNotExist, no label"),
        pytest.param("K1", requires("foo", MISSING), False, id="DoesNotExist"),
        pytest.param("0206", requires("foo", GT, "0204"), True, id="Gt, leading zeros"),
        pytest.param("0204", requires("foo", GT, "0204"), False, id="Gt is strict"),
        pytest.param("10", requires("foo", GT, "9"), True, id="Gt compares numbers, not text"),
        pytest.param("3", requires("foo", LT, "10"), True, id="Lt compares numbers, not text"),
        pytest.param("10", requires("foo", LT, "10"), False, id="Lt is strict"),
        pytest.param("-3", requires("foo", LT, "0"), True, id="Lt, a negative number"),
        pytest.param(None, requires("foo", LT, "10"), False, id="Lt, no label"),
        pytest.param("v3", requires("foo", GT, "1"), False, id="Gt, a word"),
        pytest.param("3", requires("foo", GT, "v1"), False, id="Gt than a word"),
        pytest.param("3", requires("foo", GT, "1", "2"), False, id="Gt than two values"),
        pytest.param("3.5", requires("foo", GT, "1"), False, id="Gt, a fraction"),
        pytest.param("3", requires("foo", GT, "-1"), False, id="Gt than a negative number: no label's value"),
        pytest.param("3", requires("foo", LT, str(2**63)), False, id="Lt than a number of more than 64 bits"),
        pytest.param("bar", requires("foo", NOT_IN, "not a label"), False, id="NotIn of what no label may be"),
        pytest.param(None, requires("foo", NOT_IN, "x" * 64), False, id="NotIn of what is too long for a label"),
        pytest.param("bar", requires("foo", NOT_IN, "ok", "-"), False, id="NotIn, one of its values invalid"),
        pytest.param("bar", requires("foo", NOT_IN, ""), True, id="NotIn of the empty value, which is valid"),
        pytest.param("bar", requires("foo", IN, "bar", "not a label"), False, id="In, one of its values invalid"),
        pytest.param("bar", requires("foo", NOT_IN), False, id="NotIn of nothing"),
        pytest.param("bar", requires("foo", EXISTS, "bar"), False, id="Exists with a value"),
        pytest.param(None, requires("not a key", MISSING), False, id="DoesNotExist of what is no key"),
        pytest.param(None, requires("Example.com/a", MISSING), False, id="of a key with a bad prefix"),
        pytest.param(None, requires("example.com/a", MISSING), True, id="of a key with a good one"),
    ],
)
def test_operators(label: str | None, requirement: Any, matches: bool) -> None:
    nodes = [make_node("n", labels={} if label is None else {"foo": label}), make_node("other", labels={"foo": "zzz"})]
    refused = refusals(node_affinity.refuse, nodes, pod(node_affinity=(expressions(requirement),)))
    assert ("n" not in refused) == matches
    assert set(refused.values()) <= {UNMATCHED}


BAR, NOT_BAR = requires("foo", IN, "bar"), requires("foo", NOT_IN, "bar")


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param(None, True, id="no required terms"),
        pytest.param((), False, id="terms that are none"),
        pytest.param((NodeSelectorTerm(),), False, id="an empty term"),
        pytest.param((NodeSelectorTerm(), expressions(BAR)), True, id="an empty term beside one that matches"),
        pytest.param((expressions(BAR, requires("foo", EXISTS)),), True, id="all expressions of a term"),
        pytest.param((expressions(BAR, requires("gpu", EXISTS)),), False, id="one expression of a term fails"),
        pytest.param((expressions(NOT_BAR), expressions(BAR)), True, id="any of the terms"),
        pytest.param((expressions(NOT_BAR), expressions(requires("gpu", EXISTS))), False, id="none of the terms"),
        pytest.param(
            (expressions(requires("foo", NOT_IN, "a b")), expressions(BAR)),
            True,
            id="an unreadable term beside another",
        ),
        pytest.param((named("n"),), True, id="the node's name"),
        pytest.param((named("m"),), False, id="another node's name"),
        pytest.param((named("nobody"),), False, id="a name nobody has"),
        pytest.param((named("m", operator=NOT_IN),), True, id="any node but another"),
        pytest.param((named("n", operator=NOT_IN),), False, id="any node but this"),
        pytest.param((named("n", "m"),), False, id="two names in one field are invalid"),
        pytest.param((named(operator=EXISTS),), False, id="a field only knows In and NotIn"),
        pytest.param(
            (NodeSelectorTerm(fields=(requires("metadata.uid", IN, "n"),)),), False, id="a field of no meaning"
        ),
        pytest.param((named("m"), expressions(BAR)), True, id="a term by name fails, one by label matches"),
        pytest.param((NodeSelectorTerm((BAR,), named("m").fields),), False, id="a term by label and another name"),
        pytest.param((NodeSelectorTerm((BAR,), named("n").fields),), True, id="a term by label and name"),
        pytest.param((named("m"), expressions(NOT_BAR)), False, id="neither by name nor by label"),
    ],
)
def test_terms(terms: tuple[NodeSelectorTerm, ...] | None, matches: bool) -> None:
    nodes = [make_node("n", labels={"foo": "bar"}), make_node("m", labels={"foo": "bar"})]
    assert ("n" not in refusals(node_affinity.refuse, nodes, pod(node_affinity=terms))) == matches


def test_selector_and_terms_must_both_match() -> None:
    asks = pod(node_selector=(("foo", "bar"),), node_affinity=(expressions(requires("foo", EXISTS)),))
    nodes = [make_node("both", labels={"foo": "bar"}), make_node("one", labels={"foo": "barrr"})]
    assert refusals(node_affinity.refuse, nodes, asks) == {"one": UNMATCHED}


@pytest.mark.parametrize(
    ("terms", "refused"),
    [
        pytest.param((named("a"),), {"b": OTHER_NODE, "c": OTHER_NODE}, id="one node"),
        pytest.param((named("a"), named("b")), {"c": OTHER_NODE}, id="either of two"),
        pytest.param((named("a"), expressions(BAR)), {}, id="a term that names none leaves all nodes open"),
        pytest.param((named("a", operator=NOT_IN),), {}, id="naming a node to avoid pins nothing"),
        pytest.param(
            (NodeSelectorTerm(fields=(*named("a").fields, *named("b").fields)),),
            dict.fromkeys("abc", "pod affinity terms conflict"),
            id="two nodes at once",
        ),
    ],
)
def test_pinned_pods_are_kept_from_other_nodes_before_any_filter(
    terms: tuple[NodeSelectorTerm, ...], refused: dict[str, str]
) -> None:
    nodes = [make_node(name) for name in "abc"]
    assert refusals(node_affinity.refuse_names, nodes, pod(node_affinity=terms)) == refused


def test_the_sentence_of_a_daemon_pod_that_does_not_fit_its_node() -> None:
    nodes = [make_node("a", "50m"), make_node("b"), make_node("c", is_unschedulable=True)]
    incoming = pod(node_affinity=(named("a"),))
    assert verdicts(nodes, incoming) == {"a": "Insufficient cpu", "b": OTHER_NODE, "c": OTHER_NODE}
    opening = opened(nodes, [incoming])
    counts = opening.sim.diagnose(opening.book.class_of(incoming))
    want = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert summary(counts, 3) == want


def test_labels_that_no_node_has_share_a_column_until_one_has_them() -> None:
    """Pods that ask for 20,000 invented labels cost no column each, and a node that bears one is seen at once."""
    opening = opened([make_node("a", labels={"real": "v"})], [])
    table = opening.sim.table
    assert all(table.label(f"k{i}") is table.label("other") for i in range(100))
    with opening.sim.fork():
        opening.sim.add_nodes([make_node("b", labels={"k1": "v"}), make_node("c")])
        assert table.label("k1").codes[:3].tolist() == [-1, 0, -1]
        assert table.label("k2").codes[:3].tolist() == [-1, -1, -1]
    assert table.label("k1").codes[:1].tolist() == [-1]
    opening.sim.add_nodes([make_node("d")])
    assert table.label("k1").codes[:2].tolist() == [-1, -1]
