"""Who names the nodes it may run on, in which ways, and what is left of its wishes once it does not."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.pods import Owner, Pod
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes
from htas.planning.what_if.pinning import Pins, told, without_names
from tests.builders import make_node, make_pod

IN, NOT_IN, EXISTS = Operator.IN, Operator.NOT_IN, Operator.EXISTS


def term(*expressions: tuple[str, Operator, tuple[str, ...]], fields: tuple[str, ...] = ()) -> NodeSelectorTerm:
    """Expressions, and names of nodes as metadata.name has them."""
    named = (Requirement("metadata.name", IN, fields),) if fields else ()
    return NodeSelectorTerm(tuple(Requirement(*each) for each in expressions), named)


HOST_A = (HOSTNAME_LABEL, IN, ("host-a",))
HOST_AB = (HOSTNAME_LABEL, IN, ("host-a", "host-b"))
IN_ZONE = (ZONE_LABEL, IN, ("east",))
LOCAL = PersistentVolume("local", node_affinity=(term(("topology.topolvm.io/node", IN, ("a",))),))
SHARED = PersistentVolume("shared")
ZONAL = PersistentVolume("zonal", node_affinity=(term(IN_ZONE),))
VOLUMES = Volumes(
    claims=(
        *(VolumeClaim("default", f"on-{name}", volume=name) for name in ("local", "shared", "zonal", "lost")),
        VolumeClaim("default", "unbound"),
        VolumeClaim("other", "theirs", volume="local"),
    ),
    persistent=(LOCAL, SHARED, ZONAL),
)


def nodes() -> list[Node]:
    """Three; the labels of two of them name hosts otherwise than the nodes are called."""
    return [make_node(name, labels={HOSTNAME_LABEL: f"host-{name}"}) for name in ("a", "b")] + [make_node("c")]


def pin(wanted: Constraints, **fields: Any) -> tuple[set[str], str] | None:
    found = Pins(nodes(), VOLUMES).of(make_pod("p", constraints=wanted, **fields))
    return None if found is None else (set(found.nodes), found.by)


def affinity(*terms: NodeSelectorTerm) -> Constraints:
    return Constraints(node_affinity=terms)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Constraints(), None, id="no wish"),
        pytest.param(Constraints(node_selector=((HOSTNAME_LABEL, "host-a"),)), ({"a"}, "nodeSelector"), id="a hostname"),
        pytest.param(Constraints(node_selector=((HOSTNAME_LABEL, "gone"),)), (set(), "nodeSelector"), id="one that is gone"),
        pytest.param(Constraints(node_selector=((ZONE_LABEL, "east"),)), None, id="a zone"),
        pytest.param(
            Constraints(node_selector=((ZONE_LABEL, "east"), (HOSTNAME_LABEL, "host-b"))),
            ({"b"}, "nodeSelector"),
            id="a zone and a hostname",
        ),
        pytest.param(affinity(term(HOST_AB)), ({"a", "b"}, "node affinity"), id="two hosts"),
        pytest.param(affinity(term(HOST_A), term((HOSTNAME_LABEL, IN, ("c",)))), ({"a", "c"}, "node affinity"), id="either of two"),
        pytest.param(affinity(term(HOST_A), term(IN_ZONE)), None, id="a host or a whole zone"),
        pytest.param(affinity(term(HOST_AB, HOST_A)), ({"a"}, "node affinity"), id="both at once"),
        pytest.param(affinity(term(HOST_AB, IN_ZONE)), ({"a", "b"}, "node affinity"), id="hosts, in a zone besides"),
        pytest.param(affinity(term(fields=("b",))), ({"b"}, "node affinity"), id="a node by its name"),
        pytest.param(affinity(term((HOSTNAME_LABEL, NOT_IN, ("host-a",)))), None, id="any but one"),
        pytest.param(affinity(term((HOSTNAME_LABEL, EXISTS, ()))), None, id="whatever has a hostname"),
        pytest.param(affinity(term(("rack", IN, ("a", "host-b")))), ({"a", "b"}, "node affinity"), id="nodes by another label"),
        pytest.param(affinity(term(("rack", IN, ("a", "r7")))), None, id="a label that has other values, too"),
        pytest.param(affinity(term(("rack", IN, ()))), None, id="a label without values"),
        pytest.param(affinity(), None, id="no terms"),
        pytest.param(Constraints(claims=("on-local",)), ({"a"}, "its volume on-local"), id="a volume on a node"),
        pytest.param(Constraints(claims=("on-shared", "on-local")), ({"a"}, "its volume on-local"), id="the second of two"),
        *(
            pytest.param(Constraints(claims=(name,)), None, id=f"a volume {how}")
            for name, how in (
                ("on-shared", "that every node reaches"),
                ("on-zonal", "of a zone"),
                ("on-lost", "that is not there"),
                ("unbound", "not made yet"),
                ("theirs", "of another namespace"),
                ("nobody's", "nobody claims"),
            )
        ),
    ],
)  # fmt: skip
def test_who_names_its_nodes(wanted: Constraints, expected: tuple[set[str], str] | None) -> None:
    assert pin(wanted) == expected


@pytest.mark.parametrize(
    "fields", [{"owner": Owner("DaemonSet", "log")}, {"is_mirror": True}], ids=["of a DaemonSet", "static"]
)
def test_pods_that_belong_to_their_node_are_not_pinned(fields: dict[str, Any]) -> None:  # fmt: skip
    assert pin(Constraints(node_selector=((HOSTNAME_LABEL, "host-a"),)), **fields) is None


def unpinned(wanted: Constraints) -> Constraints:
    return Pins(nodes(), VOLUMES).unpinned(make_pod("p", constraints=wanted)).constraints


def test_who_is_not_pinned_keeps_every_wish() -> None:
    wanted = Constraints(node_selector=((ZONE_LABEL, "east"),), claims=("on-zonal", "on-shared"))
    assert unpinned(wanted) == wanted


def test_volumes_on_a_node_are_let_go_and_others_kept() -> None:
    assert unpinned(Constraints(claims=("on-shared", "on-local", "on-zonal"))).claims == ("on-shared", "on-zonal")


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        pytest.param(
            Constraints(node_selector=((HOSTNAME_LABEL, "host-a"), (ZONE_LABEL, "east"))),
            Constraints(node_selector=((ZONE_LABEL, "east"),)),
            id="a selector keeps its zone",
        ),
        pytest.param(affinity(term(HOST_A)), Constraints(), id="a term of hosts alone leaves every node open"),
        pytest.param(affinity(term(HOST_A), term(IN_ZONE)), Constraints(), id="and so does one beside another"),
        pytest.param(affinity(term(HOST_A, IN_ZONE)), affinity(term(IN_ZONE)), id="its zone stays"),
        pytest.param(
            affinity(term(IN_ZONE, fields=("a",))), affinity(term(IN_ZONE)), id="a node's name goes, and its zone stays"
        ),
        pytest.param(
            affinity(term((HOSTNAME_LABEL, NOT_IN, ("host-a",)))),
            affinity(term((HOSTNAME_LABEL, NOT_IN, ("host-a",)))),
            id="who shuns a host goes on doing so",
        ),
    ],
)
def test_what_is_left_of_wishes_without_nodes_names(wanted: Constraints, left: Constraints) -> None:
    assert without_names(wanted) == left


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (affinity(term(HOST_AB)), "default/p may run on 2 nodes of today alone, which it names (node affinity)"),
        (affinity(term(HOST_A)), "default/p is pinned to its node by hostname (node affinity)"),
    ],
    ids=["to two", "to one"],
)
def test_it_is_told_in_words(wanted: Constraints, words: str) -> None:
    pod: Pod = make_pod("p", constraints=wanted)
    found = Pins(nodes(), VOLUMES).of(pod)
    assert found is not None
    assert told(pod, found) == words
