"""Which zones a pod names: what is advised goes by them."""

from __future__ import annotations

import pytest

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.nodes import ZONE_LABEL
from htas.model.selectors import Operator, Requirement
from htas.planning.cluster.zones import zones_named
from tests.builders import constrained


def term(*parts: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions=parts)


def in_zones(*zones: str) -> Requirement:
    return Requirement(ZONE_LABEL, Operator.IN, zones)


SSD = Requirement("disk", Operator.IN, ("ssd",))
IN_D = ((ZONE_LABEL, "d"),)


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        pytest.param(constrained(node_selector=IN_D), {"d"}, id="a selector"),
        pytest.param(constrained(node_affinity=(term(in_zones("a")), term(in_zones("b")))), {"a", "b"}, id="either"),
        pytest.param(constrained(node_affinity=(term(in_zones("a"), SSD),)), {"a"}, id="and something else"),
        pytest.param(constrained(node_affinity=(term(in_zones("d")), term(SSD))), set(), id="or something else: open"),
        pytest.param(constrained(node_affinity=(term(in_zones("a", "b"), in_zones("b", "c")),)), {"b"}, id="both"),
        pytest.param(constrained(node_selector=IN_D, node_affinity=(term(in_zones("a", "d")),)), {"d"}, id="narrowed"),
        pytest.param(constrained(node_selector=IN_D, node_affinity=(term(SSD),)), {"d"}, id="a selector and a disk"),
        pytest.param(constrained(), set(), id="nothing"),
    ],
)
def test_zones_that_a_pod_names(wanted: Constraints, named: set[str]) -> None:
    assert zones_named(wanted) == named
