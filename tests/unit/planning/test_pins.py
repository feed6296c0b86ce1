"""Pins: which pods stay where they are, and what that costs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import DAEMONSET_POD, MAY_MIGRATE, SAFE_TO_EVICT, Owner, Pod, WorkKind
from htas.model.snapshot import ClusterView
from htas.planning.namespaces import pins
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, owned_node, running

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


POLICY = make_policy(flavours=[BIG])


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
    found = pins.pins(view_of(job("j", **how)), POLICY, NOW)
    assert [pin.pod.name for pin in found] == (["j"] if is_pin else [])
    assert all(pin.nanos == 40 * CENT for pin in found)


def test_a_pin_costs_what_its_pod_is_charged_of_its_machine() -> None:
    """Beside three pods of its size a quarter of 0.40; on a node that was not bought nothing."""
    shared = [job("pinned", **PINNED), *(job(f"j{i}") for i in range(3))]
    given = ClusterView((make_node("given"),), (job("there", node="given", namespace="other", **PINNED),))
    view = view_of(*shared)
    view = msgspec.structs.replace(view, nodes=(*view.nodes, *given.nodes), pods=(*view.pods, *given.pods))
    found = pins.by_namespace(view, POLICY, NOW)
    assert {name: (each.pods, each.nanos, NOW - each.since) for name, each in found.items()} == {
        "greedy": (1, 10 * CENT, 600.0),
        "other": (1, 0, 600.0),
    }
