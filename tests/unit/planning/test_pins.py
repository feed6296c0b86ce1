"""Pins: who keeps pods where they are, what that costs, and what is passed over beyond the limits of namespaces."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.moves import MigrationMethod
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import DAEMONSET_POD, MAY_MIGRATE, SAFE_TO_EVICT, Owner, Pod, WorkKind
from htas.model.policy import NamespaceLimit, Policy
from htas.model.snapshot import ClusterView
from htas.planning.namespaces import pins
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, owned_node, running
from tests.unit.planning.cleaning.world import cleaned, job_on, policy_with, quiet_snapshot

CENT = 10_000_000
BIG = make_flavour("big", "8", "32Gi", "0.40")
JOB = Owner("Job", "j", "j")
PINNED = {"disruption": {SAFE_TO_EVICT: "false"}}


def job(name: str, age_s: float = 600.0, node: str = "n", namespace: str = "greedy", **how: Any) -> Pod:
    fields = {"cpu": "1", "memory": "1Gi", "namespace": namespace, "uid": f"{namespace}-{name}", "owner": JOB, **how}
    pod = running(make_pod(name, **fields), node)
    return msgspec.structs.replace(pod, started_at=NOW - age_s, created_at=NOW - age_s - 5)


def view_of(*pods: Pod) -> ClusterView:
    names = sorted({pod.node or "" for pod in pods})
    return ClusterView(tuple(owned_node(name, flavour="big", cpu="8", memory="32Gi") for name in names), pods)


def limited(**bounds: Any) -> Policy:
    return make_policy(flavours=[BIG], namespaces=(NamespaceLimit(("greedy",), **bounds),))


@pytest.mark.parametrize(
    ("how", "is_pin"),
    [
        pytest.param({}, False, id="a job that says nothing"),
        pytest.param(PINNED, True, id="safe-to-evict: false"),
        pytest.param({"disruption": {SAFE_TO_EVICT: "true"}}, False, id="safe-to-evict: true"),
        pytest.param({"disruption": {SAFE_TO_EVICT: "on-completion"}}, True, id="safe-to-evict: on-completion"),
        pytest.param({"disruption": {DO_NOT_DISRUPT: "true"}}, True, id="do-not-disrupt"),
        pytest.param({"disruption": {KARPENTER_DO_NOT_DISRUPT: "true"}}, True, id="Karpenter's do-not-disrupt"),
        pytest.param({"disruption": {DO_NOT_DISRUPT: "11m"}}, True, id="do-not-disrupt for a while that goes on"),
        pytest.param({"disruption": {DO_NOT_DISRUPT: "9m"}}, False, id="do-not-disrupt for a while that is over"),
        pytest.param({"disruption": {MAY_MIGRATE: "false"}}, True, id="migrate: false"),
        pytest.param({"disruption": {DAEMONSET_POD: "true"}}, True, id="says that it is a DaemonSet's"),
        pytest.param({"owner": None}, True, id="nobody would start it again"),
        pytest.param({"owner": Owner("Invented", "x", "x")}, True, id="a controller that nobody knows"),
        pytest.param(
            {"owner": Owner("Invented", "x", "x"), "disruption": {SAFE_TO_EVICT: "true"}}, False, id="which may go"
        ),
        pytest.param({"has_local_storage": True}, True, id="data on the node"),
        pytest.param({"owner": Owner("DaemonSet", "d", "d"), **PINNED}, False, id="a DaemonSet's ends with its node"),
        pytest.param({"is_mirror": True, **PINNED}, False, id="so does a static pod"),
        pytest.param({"deleted_at": NOW - 1, **PINNED}, False, id="one that ends already"),
        pytest.param({"kind": WorkKind.SERVICE}, False, id="a service that has not opted in: the default keeps it"),
    ],
)
def test_what_is_a_pin(how: dict[str, Any], is_pin: bool) -> None:
    found = pins.pins(view_of(job("j", **how)), limited(), NOW)
    assert [pin.pod.name for pin in found] == (["j"] if is_pin else [])
    assert all(pin.nanos == 40 * CENT for pin in found)


def test_a_pin_costs_what_its_pod_is_charged_of_its_machine() -> None:
    """Beside three pods of its size a quarter of 0.40; on a node that was not bought nothing."""
    shared = [job("pinned", **PINNED), *(job(f"j{i}") for i in range(3))]
    given = ClusterView((make_node("given"),), (job("there", node="given", namespace="other", **PINNED),))
    view = view_of(*shared)
    view = msgspec.structs.replace(view, nodes=(*view.nodes, *given.nodes), pods=(*view.pods, *given.pods))
    found = pins.by_namespace(view, limited(), NOW)
    assert {name: (each.pods, each.nanos, NOW - each.since) for name, each in found.items()} == {
        "greedy": (1, 10 * CENT, 600.0),
        "other": (1, 0, 600.0),
    }


AGES = {"old": 900.0, "middle": 600.0, "young": 300.0}


@pytest.mark.parametrize(
    ("bounds", "honoured", "words"),
    [
        pytest.param({}, {"old", "middle", "young"}, "", id="no limit"),
        pytest.param({"max_pins": 3}, {"old", "middle", "young"}, "", id="as many as it may"),
        pytest.param({"max_pins": 1}, {"old"}, "may pin 1 pods", id="the oldest counts"),
        pytest.param({"max_pins": 0}, set(), "may pin 0 pods", id="none"),
        pytest.param({"max_pinned_nanos_per_hour": 80 * CENT}, {"old", "middle"}, "for 0.80 USD/h", id="a price"),
        pytest.param({"pinned_for_s": 601.0}, {"middle", "young"}, "for 601 s", id="for so long"),
        pytest.param({"pinned_for_s": 601.0, "max_pins": 1}, {"middle"}, "", id="who is over it takes nobody's place"),
    ],
)
def test_beyond_the_limit_the_oldest_pins_count(bounds: dict[str, Any], honoured: set[str], words: str) -> None:
    view = view_of(*(job(name, age, node=f"n-{name}", **PINNED) for name, age in AGES.items()))
    seen = pins.within_limits(view, limited(**bounds), NOW)
    assert {pin.pod.name for pin in pins.pins(seen, limited(**bounds), NOW)} == honoured
    over = [pod for pod in seen.pods if pod.passed_over]
    assert {pod.name for pod in over} == AGES.keys() - honoured
    assert all(words in pod.passed_over and f'{SAFE_TO_EVICT}="false"' in pod.passed_over for pod in over)
    assert [problem.where for problem in seen.problems] == (["Namespace greedy"] if over else [])


def test_other_namespaces_keep_theirs() -> None:
    greedy = [job(f"g{i}", 900.0, node=f"g{i}", **PINNED) for i in range(9)]
    quiet = job("q", 1.0, node="q", namespace="quiet", **PINNED)
    seen = pins.within_limits(view_of(*greedy, quiet), limited(max_pins=2), NOW)
    assert {pod.name for pod in seen.pods if not pod.passed_over} == {"g0", "g1", "q"}


@pytest.mark.parametrize(
    ("most", "moves"),
    [pytest.param(None, 0, id="its machine stays"), pytest.param(0, 1, id="beyond the limit: it moves")],
)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(PINNED, id="safe-to-evict"),
        pytest.param({"disruption": {DO_NOT_DISRUPT: "true"}}, id="do-not-disrupt"),
        pytest.param({"owner": Owner("Invented", "x", "x")}, id="an invented controller"),
        pytest.param({"disruption": {MAY_MIGRATE: "false"}}, id="migrate: false"),
    ],
)
def test_a_machine_is_emptied_of_pins_beyond_the_limit(how: dict[str, Any], most: int | None, moves: int) -> None:
    """A job of a core alone on a machine of four, with room for it on the one beside."""
    there = [owned_node("n"), owned_node("m")]
    work = [job_on("n", "alone", namespace="greedy", **how), job_on("m", "beside", cpu="2", namespace="greedy")]
    limit = NamespaceLimit(("greedy",), max_cpu_m=10**9, max_pins=most)
    policy = policy_with({"migration": MigrationMethod.EVICT}, namespaces=(limit,))
    seen = pins.within_limits(ClusterView(tuple(there), tuple(work)), policy, NOW)
    cleaning = cleaned(quiet_snapshot(seen.nodes, seen.pods), policy)
    assert len([move for move in cleaning.migrate if move.pod == "greedy/alone"]) == moves
