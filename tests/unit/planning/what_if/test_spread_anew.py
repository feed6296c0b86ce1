"""Work that spreads and is bought anew: where there are nodes today are zones to spread over, though these nodes go."""

from __future__ import annotations

import pytest

from htas.model.constraints import Constraints, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from htas.model.snapshot import ClusterView
from htas.planning.what_if.answer import WhatIfAnswer, what_if
from tests.builders import NOW, labels_are, make_flavour, make_node, make_pod, make_policy, running

ZONES = ("a", "b", "c")
POLICY = make_policy(
    flavours=[
        make_flavour("large", "4", "8Gi", "0.40", zones=ZONES),
        make_flavour("small", "2", "4Gi", "0.15", zones=ZONES),
    ]
)


def machine(zone: str, number: int) -> Node:
    name = f"{zone}{number}"
    labels = {INSTANCE_TYPE_LABEL: "large", HOSTNAME_LABEL: name, ZONE_LABEL: zone, "rack": name}
    return make_node(name, labels=labels)


def over(key: str, skew: int = 1, **fields: object) -> SpreadConstraint:
    return SpreadConstraint(key, skew, labels_are(app="web"), **fields)  # type: ignore[arg-type]


def asked(
    zones: tuple[str, ...], *spread: SpreadConstraint, selector: tuple[tuple[str, str], ...] = ()
) -> WhatIfAnswer:
    """A pod of half a core on each machine, one machine in each zone."""
    nodes = [machine(zone, number) for number, zone in enumerate(zones)]
    wanted = Constraints(spread=spread, node_selector=selector)
    pods = [
        running(make_pod(f"web-{node.name}", "500m", "512Mi", labels={"app": "web"}, constraints=wanted), node.name)
        for node in nodes
    ]
    return what_if(ClusterView(tuple(nodes), tuple(pods)), POLICY, NOW)


@pytest.mark.parametrize(
    ("zones", "spread", "machines"),
    [
        pytest.param(ZONES, (), 1, id="work that does not spread goes on one machine"),
        pytest.param(ZONES, (over(ZONE_LABEL),), 3, id="a service over three zones was put on one machine: they were none any more"),
        pytest.param(ZONES, (over(ZONE_LABEL, 2),), 2, id="two more in one zone than in another are allowed"),
        pytest.param(ZONES, (over(ZONE_LABEL, 3),), 1, id="so many more are allowed that one zone does"),
        pytest.param(("a", "a", "b", "b"), (over(ZONE_LABEL),), 2, id="where all nodes are in two zones, two do"),
        pytest.param(ZONES, (over(HOSTNAME_LABEL, 2),), 2, id="while a node is emptied it is a host without any, so two a host are allowed"),
        pytest.param(("a",) * 4, (over(ZONE_LABEL), over(HOSTNAME_LABEL, 2)), 2, id="also where all is in one zone"),
        pytest.param(ZONES, (over(ZONE_LABEL, honors_node_taints=True),), 1, id="those who honour taints pass over a node that is emptied"),
    ],
)  # fmt: skip
def test_how_many_machines_work_that_spreads_is_bought(
    zones: tuple[str, ...], spread: tuple[SpreadConstraint, ...], machines: int
) -> None:
    assert asked(zones, *spread).anew.nodes == machines


def test_a_zone_that_the_work_may_not_be_in_is_none_to_spread_over() -> None:
    assert asked(("a", "a"), over(ZONE_LABEL), selector=((ZONE_LABEL, "a"),)).anew.nodes == 1
