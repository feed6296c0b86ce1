"""Pods that demand more than anybody writes wait with the reason; what has started keeps its terms."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.kubernetes.constraints import MOST, within_budget
from htas.adapters.kubernetes.dump import read_whole
from htas.model.constraints import (
    Constraints,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    SpreadConstraint,
    Toleration,
)
from htas.model.selectors import LabelSelector, Operator, Requirement


def term(*values: str) -> PodAffinityTerm:
    return PodAffinityTerm("zone", LabelSelector((Requirement("app", Operator.IN, values),)))


def requirement(*values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement("a", Operator.IN, values),))


def demands(what: str, count: int) -> Constraints:
    """Constraints with so many of one thing."""
    match what:
        case "host ports":
            return Constraints(host_ports=tuple(HostPort(port) for port in range(1, count + 1)))
        case "tolerations":
            return Constraints(tolerations=tuple(Toleration(f"k{i}") for i in range(count)))
        case "topology spread constraints":
            return Constraints(spread=tuple(SpreadConstraint(f"k{i}", 1, None) for i in range(count)))
        case "terms of pod affinity and anti-affinity":
            near, apart = (tuple(term(f"v{i}") for i in each) for each in (range(count // 2), range(count // 2, count)))
            return Constraints(affinity=near, anti_affinity=apart)
        case "requirements of node selector and affinity":
            labels, asked = range(count // 2), range(count // 2, count)
            return Constraints(
                node_selector=tuple((f"k{i}", "v") for i in labels),
                node_affinity=tuple(requirement(f"v{i}") for i in asked),
            )
        case "values in affinity and selectors":
            return Constraints(node_affinity=(requirement(*(f"v{i}" for i in range(count - 1))),))
        case _:
            return Constraints(claims=tuple(f"c{i}" for i in range(count)))


@pytest.mark.parametrize("what", MOST)
def test_up_to_the_bound_a_pod_is_as_it_was_and_beyond_it_waits(what: str) -> None:
    most = demands(what, MOST[what])
    assert within_budget(most, is_placed=False, has_started=False) is most
    assert within_budget(most, is_placed=True, has_started=False) is most
    beyond = within_budget(demands(what, MOST[what] + 1), is_placed=False, has_started=False)
    assert beyond == Constraints(unsupported=(f"{MOST[what] + 1:,} {what}, more than {MOST[what]:,}",))


@pytest.mark.parametrize("what", MOST)
def test_what_has_started_keeps_its_terms(what: str) -> None:
    running = demands(what, MOST[what] + 1)
    assert within_budget(running, is_placed=True, has_started=True) is running


@pytest.mark.parametrize("what", MOST)
def test_a_node_named_in_a_pod_is_no_way_around_the_bounds(what: str) -> None:
    named = within_budget(demands(what, MOST[what] + 1), is_placed=True, has_started=False)
    held = demands(what, MOST[what]) if what in ("host ports", "volume claims") else Constraints()
    assert named.unsupported == (f"{MOST[what] + 1:,} {what}, more than {MOST[what]:,}",)
    assert msgspec.structs.replace(named, unsupported=()) == held


def test_node_selectors_alone_are_counted() -> None:
    selecting = Constraints(node_selector=tuple((f"k{i}", "v") for i in range(501)))
    refused = within_budget(selecting, is_placed=False, has_started=False).unsupported
    assert refused == ("501 requirements of node selector and affinity, more than 200",)


@pytest.mark.parametrize("started", [True, False])
def test_the_kubelet_is_whoever_sets_the_start_time(started: bool) -> None:
    """The pod that a kubelet took is as it was; the one with a node's name alone has lost its 101 terms."""
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"v{i}"}}} for i in range(101)]
    spec = {"nodeName": "n", "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    status = {"phase": "Running", "startTime": "2026-01-05T08:00:00Z"} if started else {"phase": "Pending"}
    metadata = {"name": "p", "namespace": "d", "uid": "u"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | {"containers": []}, "status": status}
    items = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [pod]})
    (read,) = read_whole(items, "dump").view.pods
    assert read.node == "n"
    assert len(read.constraints.anti_affinity) == (101 if started else 0)
    assert bool(read.constraints.unsupported) != started


def test_of_many_things_that_are_not_understood_three_are_told() -> None:
    odd = Constraints(unsupported=tuple(f"thing {i}" for i in range(1000)))
    told = within_budget(odd, is_placed=False, has_started=False).unsupported
    assert told == ("thing 0", "thing 1", "thing 2", "997 things more that are not understood")
