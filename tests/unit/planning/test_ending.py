"""Pods on their way out, pods on their way in, and who goes by zones."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, HostPort, NodeSelectorTerm, PodAffinityTerm, SpreadConstraint
from htas.model.disruptions import Drain
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.pods import Owner, Pod, WorkKind
from htas.model.selectors import Operator, Requirement
from htas.model.snapshot import ClusterView
from htas.planning.cluster.ending import ends_soon, is_overdue
from htas.planning.cluster.ports_taken import conflict
from htas.planning.cluster.services import is_served, served, services_starting
from htas.planning.cluster.whereabouts import is_pending, moves_under_way, node_of
from htas.planning.cluster.zones import asks_for_zones, zones_of
from htas.planning.eligibility.budgets import max_unavailable
from tests.builders import NOW, labels_are, make_move, make_node, make_pod, make_snapshot, running


@pytest.mark.parametrize(
    ("fields", "overdue", "soon"),
    [
        pytest.param({}, False, False, id="not ending"),
        pytest.param({"deleted_at": NOW}, False, True, id="since now"),
        pytest.param({"deleted_at": NOW - 60}, False, True, id="its grace and half a minute are just over"),
        pytest.param({"deleted_at": NOW - 61}, True, False, id="a second later"),
        pytest.param({"deleted_at": NOW - 61, "grace_s": 31.0}, False, True, id="with a second more of grace"),
        pytest.param({"deleted_at": NOW, "grace_s": 600.0}, False, True, id="ten minutes to end"),
        pytest.param({"deleted_at": NOW, "grace_s": 601.0}, False, False, id="longer"),
        pytest.param({"deleted_at": NOW + 600}, False, True, id="its end is stated as ten minutes from now"),
        pytest.param({"deleted_at": NOW + 601}, False, False, id="as later"),
        pytest.param({"deleted_at": NOW, "node": None}, False, False, id="it never had a node"),
    ],
)
def test_which_pods_end_soon_and_which_are_not_waited_for(fields: dict[str, Any], overdue: bool, soon: bool) -> None:
    pod = make_pod(**{"node": "n", **fields})
    assert (is_overdue(pod, NOW), ends_soon(pod, NOW)) == (overdue, soon)


@pytest.mark.parametrize(
    ("fields", "is_waiting"),
    [
        pytest.param({}, True, id="it has no node"),
        pytest.param({"node": "n"}, False, id="it has"),
        pytest.param({"name": "bound"}, False, id="its bind is not seen yet"),
        pytest.param({"deleted_at": NOW}, False, id="it ends"),
        pytest.param({"gates": ("quota",)}, False, id="it is gated"),
    ],
)
def test_which_pods_wait_for_a_node(fields: dict[str, Any], is_waiting: bool) -> None:
    pod = make_pod(**fields)
    snapshot = make_snapshot(pods=[pod], expected_binds={"default/bound": "n"})
    assert is_pending(pod, node_of(pod, snapshot)) == is_waiting


def test_moves_under_way_are_those_of_drains_and_all_others() -> None:
    one, other = make_move("default/a", "n", "m"), make_move("default/b", "n", "m")
    snapshot = make_snapshot(drains=(Drain("n", "n", "Empty", NOW, (one,)),), moves=(other,))
    assert moves_under_way(snapshot) == [one, other]


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        pytest.param({}, True, id="a service's"),
        pytest.param({"kind": WorkKind.BATCH}, False, id="a job's"),
        pytest.param({"owner": None}, False, id="nobody's"),
        pytest.param({"owner": Owner("DaemonSet", "log")}, False, id="a DaemonSet's"),
        pytest.param({"is_mirror": True}, False, id="a static one"),
        pytest.param({"deleted_at": NOW}, False, id="it ends"),
        pytest.param({"gates": ("quota",)}, False, id="it is gated"),
    ],
)
def test_whom_users_know(fields: dict[str, Any], counts: bool) -> None:
    assert is_served(make_pod(**fields)) == counts


def test_a_service_is_starting_while_one_of_its_pods_on_a_node_is_not_ready() -> None:
    def of(service: str, name: str, **fields: Any) -> Pod:
        return make_pod(name, owner=Owner("ReplicaSet", service), **fields)

    ready = running(of("up", "r"), "n")
    starting, waiting = of("starting", "s", node="n"), of("waiting", "w")
    view = ClusterView((), (starting, waiting, ready))
    assert services_starting(view) == {"default/ReplicaSet/starting": starting}
    ages = ClusterView(
        (), (of("x", "b", created_at=NOW), of("x", "a", created_at=NOW), of("x", "z", created_at=NOW - 1))
    )
    assert [pod.name for pod in served(ages)] == ["z", "a", "b"]


def term(key: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement("disk", Operator.IN, ("ssd",)), Requirement(key, Operator.IN, ("east",))))


@pytest.mark.parametrize("key", [ZONE_LABEL, HOSTNAME_LABEL])
@pytest.mark.parametrize(
    "wish",
    [
        pytest.param(lambda key: {"node_selector": (("disk", "ssd"), (key, "east"))}, id="a selector"),
        pytest.param(lambda key: {"node_affinity": (term("rack"), term(key))}, id="the affinity to nodes"),
        pytest.param(lambda key: {"spread": (SpreadConstraint(key, 1, labels_are(app="a")),)}, id="a spread"),
        pytest.param(lambda key: {"affinity": (PodAffinityTerm(key, labels_are(app="a")),)}, id="the affinity to pods"),
    ],
)
def test_who_goes_by_zones(wish: Any, key: str) -> None:
    assert asks_for_zones(Constraints(**wish(key))) == (key == ZONE_LABEL)


def test_zones_are_told_by_name_once_each() -> None:
    assert not asks_for_zones(Constraints())
    nodes = [make_node(zone, labels={ZONE_LABEL: zone}) for zone in ("west", "east")]
    assert zones_of([*nodes, *nodes, make_node("none")]) == ("east", "west")


@pytest.mark.parametrize(
    ("other", "conflicts"),
    [
        pytest.param(HostPort(80), True, id="the same everywhere"),
        pytest.param(HostPort(80, ip="10.0.0.1"), True, id="the same on one address"),
        pytest.param(HostPort(81), False, id="another port"),
        pytest.param(HostPort(80, protocol="UDP"), False, id="another protocol"),
    ],
)
def test_a_port_on_every_address_is_in_the_way_of_the_same_on_any(other: HostPort, conflicts: bool) -> None:
    assert conflict(HostPort(80), other) == conflict(other, HostPort(80)) == conflicts


@pytest.mark.parametrize(("ip", "conflicts"), [("10.0.0.1", True), ("10.0.0.2", False)])
def test_a_port_on_one_address_is_in_the_way_of_that_alone(ip: str, conflicts: bool) -> None:
    assert conflict(HostPort(80, ip="10.0.0.1"), HostPort(80, ip=ip)) == conflicts


@pytest.mark.parametrize(("pods", "at_once"), [(1, 1), (4, 1), (7, 1), (8, 2), (40, 10)])
def test_a_quarter_of_a_service_may_be_missing_and_one_at_least(pods: int, at_once: int) -> None:
    assert max_unavailable(pods) == at_once
