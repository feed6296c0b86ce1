"""Laws: the filters over columns say what the plain reference says, for any small cluster."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.constraints import (
    Effect,
    NodeSelectorTerm,
    PodAffinityTerm,
    SpreadConstraint,
    Taint,
    Toleration,
)
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.planning.cluster.feasibility import inter_pod_affinity, node_affinity, taints, topology_spread
from tests.builders import make_node, opened
from tests.unit.planning.feasibility import reference
from tests.unit.planning.feasibility.situations import HOST, ZONE, on, pod, refusals

Law = settings(max_examples=150, deadline=None, derandomize=True)

NAMESPACES = {"default": {"team": "red"}, "blue": {"team": "blue"}}
NODE_LABELS = {ZONE: ["1", "2", "3"], "rack": ["r", "s"], "disk": ["ssd", "hdd", ""], "gen": ["3", "10", "x", "-1"]}
POD_LABELS = {"app": ["a", "b"], "tier": ["x", "y"]}

effects = st.sampled_from(list(Effect))
taint = st.builds(Taint, st.sampled_from(["k", "l"]), effects, st.sampled_from(["", "v"]))
toleration = st.builds(
    Toleration,
    st.sampled_from(["k", "l"]),
    st.sampled_from(["Equal", "Exists"]),
    st.sampled_from(["", "v"]),
    st.none() | effects,
) | st.builds(Toleration, st.just(""), st.just("Exists"), st.just(""), st.none() | effects)


def labels(of: dict[str, list[str]]) -> st.SearchStrategy[dict[str, str]]:
    """Some of the labels, with some of their values."""
    optional = {key: st.sampled_from(values) for key, values in of.items()}
    return st.fixed_dictionaries({}, optional=optional)


def requirements(of: dict[str, list[str]]) -> st.SearchStrategy[Requirement]:
    def about(key: str) -> st.SearchStrategy[Requirement]:
        some = st.lists(st.sampled_from(of[key]), min_size=1, max_size=2, unique=True).map(tuple)
        one = st.sampled_from(["0", "3", "9"]).map(lambda bound: (bound,))
        return (
            st.builds(Requirement, st.just(key), st.sampled_from([Operator.IN, Operator.NOT_IN]), some)
            | st.builds(Requirement, st.just(key), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]))
            | st.builds(Requirement, st.just(key), st.sampled_from([Operator.GT, Operator.LT]), one)
        )

    by_key = {key: about(key) for key in of}  # made once: Hypothesis takes longer to make a strategy than to draw
    return st.sampled_from(sorted(of)).flatmap(by_key.__getitem__)


def selectors(least: int = 0) -> st.SearchStrategy[LabelSelector]:
    of_pods = st.lists(
        requirements(POD_LABELS).filter(lambda r: r.operator not in (Operator.GT, Operator.LT)),
        min_size=least,
        max_size=2,
    )
    return of_pods.map(lambda items: LabelSelector(tuple(items)))


names = st.sampled_from(["n0", "n1", "n2", "elsewhere"])
by_name = st.builds(
    Requirement, st.just("metadata.name"), st.sampled_from([Operator.IN, Operator.NOT_IN]), names.map(lambda n: (n,))
)
node_terms = st.lists(
    st.builds(
        NodeSelectorTerm,
        st.lists(requirements(NODE_LABELS), max_size=2).map(tuple),
        st.lists(by_name, max_size=1).map(tuple),
    ),
    max_size=2,
).map(tuple)
node_selectors = labels({key: NODE_LABELS[key] for key in ("disk", ZONE)}).map(
    lambda chosen: tuple(sorted(chosen.items()))
)
keys = st.sampled_from([ZONE, "rack", HOST])
constraints = st.builds(
    SpreadConstraint,
    keys,
    st.integers(1, 3),
    st.none() | selectors(least=1),  # an empty selector is kube-scheduler's own case, in the tables
    st.none() | st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
pod_terms = st.builds(
    PodAffinityTerm,
    keys,
    st.none() | selectors(),
    st.sampled_from([(), (), ("blue",), ("blue", "default")]),
    st.sampled_from([None, None, LabelSelector(), LabelSelector((Requirement("team", Operator.IN, ("blue",)),))]),
)


node_labels, pod_labels = labels(NODE_LABELS), labels(POD_LABELS)
some_taints, how_many_nodes, how_many_pods = (
    st.lists(taint, max_size=2).map(tuple),
    st.integers(1, 4),
    st.integers(0, 6),
)
namespaces, deleted = st.sampled_from(["default", "default", "blue"]), st.sampled_from([None, None, 1.0])
no_terms = st.just(())
some_terms = st.lists(pod_terms, max_size=2).map(tuple)


@st.composite
def clusters(draw: Any, carried: st.SearchStrategy[Any] = no_terms) -> tuple[list[Node], list[tuple[Pod, Node]]]:
    """Up to four nodes and six running pods, some of which carry anti-affinity."""
    nodes = [
        make_node(f"n{i}", labels=draw(node_labels), taints=draw(some_taints)) for i in range(draw(how_many_nodes))
    ]
    placed = []
    for i in range(draw(how_many_pods)):
        node = draw(st.sampled_from(nodes))
        who = on(
            node.name,
            name=f"p{i}",
            labels=draw(pod_labels),
            namespace=draw(namespaces),
            deleted_at=draw(deleted),
            anti_affinity=draw(carried),
        )
        placed.append((who, node))
    return nodes, placed


@Law
@given(clusters(), st.lists(toleration, max_size=2).map(tuple))
def test_taints(cluster: tuple[list[Node], Any], tolerations: tuple[Toleration, ...]) -> None:
    nodes, incoming = cluster[0], pod(tolerations=tolerations)
    want = {node.name for node in nodes if not reference.tolerates_node(incoming, node)}
    assert set(refusals(taints.refuse, nodes, incoming)) == want


@Law
@given(clusters(), node_selectors, st.none() | node_terms)
def test_node_affinity(cluster: tuple[list[Node], Any], selector: Any, terms: Any) -> None:
    nodes, incoming = cluster[0], pod(node_selector=selector, node_affinity=terms)
    want = {node.name for node in nodes if not reference.affinity_admits(incoming, node)}
    assert set(refusals(node_affinity.refuse, nodes, incoming)) == want
    assert set(refusals(node_affinity.refuse_names, nodes, incoming)) <= want  # says sooner, never more


@Law
@given(
    clusters(),
    st.lists(constraints, min_size=1, max_size=2).map(tuple),
    st.none() | node_terms,
    st.lists(toleration, max_size=1).map(tuple),
    labels(POD_LABELS),
)
def test_topology_spread(cluster: Any, spread: Any, terms: Any, tolerations: Any, own: dict[str, str]) -> None:
    nodes, placed = cluster
    incoming = pod(labels=own, spread=spread, node_affinity=terms, tolerations=tolerations)
    words = {"missing": topology_spread.MISSING_LABEL, "skewed": topology_spread.REASON}
    verdicts = {node.name: reference.spread_verdict(incoming, node, nodes, placed) for node in nodes}
    want = {name: words[verdict] for name, verdict in verdicts.items() if verdict is not None}
    assert refusals(topology_spread.refuse, nodes, incoming, [who for who, _ in placed]) == want


@Law
@given(
    clusters(some_terms),
    st.lists(pod_terms, max_size=2).map(tuple),
    st.lists(pod_terms, max_size=2).map(tuple),
    labels(POD_LABELS),
)
def test_inter_pod_affinity(cluster: Any, near: Any, apart: Any, own: dict[str, str]) -> None:
    nodes, placed = cluster
    incoming = pod(labels=own, affinity=near, anti_affinity=apart)
    words = {
        "far": inter_pod_affinity.AFFINITY,
        "near": inter_pod_affinity.ANTI_AFFINITY,
        "unwilling": inter_pod_affinity.EXISTING_ANTI_AFFINITY,
    }
    verdicts = {node.name: reference.inter_pod_verdict(incoming, node, placed, NAMESPACES) for node in nodes}
    want = {name: words[verdict] for name, verdict in verdicts.items() if verdict is not None}
    found = refusals(inter_pod_affinity.refuse, nodes, incoming, [who for who, _ in placed], namespaces=NAMESPACES)
    assert found == want


@Law
@given(clusters(some_terms), st.lists(constraints, max_size=2).map(tuple), st.lists(pod_terms, max_size=1).map(tuple))
def test_a_part_of_the_rows_is_judged_as_in_the_whole(cluster: Any, spread: Any, apart: Any) -> None:
    nodes, placed = cluster
    incoming = pod(labels={"app": "a"}, spread=spread, anti_affinity=apart)
    simulated = opened(nodes, [*(who for who, _ in placed), incoming], namespaces=NAMESPACES)
    cls = simulated.book.class_of(incoming)
    whole = simulated.sim.feasible(cls).tolist()
    assert [simulated.sim.feasible(cls, slice(row, row + 1)).tolist()[0] for row in range(len(nodes))] == whole
