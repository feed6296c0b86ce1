"""What may leave a node: the contract users know from Cluster Autoscaler, and HTAS's own rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import Constraints
from htas.model.pods import (
    DAEMONSET_POD,
    DO_NOT_DISRUPT,
    KARPENTER_DO_NOT_DISRUPT,
    MAY_MIGRATE,
    SAFE_TO_EVICT,
    Owner,
    Pod,
)
from htas.model.policy import CleaningRules
from htas.model.reasons import Blocking
from htas.model.selectors import LabelSelector
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import GOES_WITH_NODE, MOVES, Context, Verdict, duration_s
from tests.builders import NOW, budget, make_job, make_pod, running


def says(pod: Pod, rules: Mapping[str, Any] | None = None, allowed: int | None = None, also: int = 0) -> Verdict:
    """The rules' verdict; a budget for pods labelled app=x allows `allowed`, and `also` more such budgets do."""
    budgets = [] if allowed is None else [budget(allowed, {"app": "x"}, f"budget-{i}") for i in range(1 + also)]
    return drain_rules.judge(pod, Context(CleaningRules(**(rules or {})), BudgetLedger(budgets), NOW))


def job(**fields: Any) -> Pod:
    return running(make_job(**fields), "n1", 100.0)


def service(**fields: Any) -> Pod:
    return running(make_pod(**fields), "n1", 100.0)


def noted(**annotations: str) -> dict[str, str]:
    names = {
        "safe": SAFE_TO_EVICT,
        "disrupt": DO_NOT_DISRUPT,
        "karpenter": KARPENTER_DO_NOT_DISRUPT,
        "migrate": MAY_MIGRATE,
    }
    return {names[key]: value for key, value in annotations.items()}


SMALL_SET = Owner("ReplicaSet", "web", replicas=1)
COVERED = {"labels": {"app": "x"}}


def test_local_storage_names_the_volumes_and_the_remedy() -> None:
    """Istio's sidecar brings two; eight are named but for the last two."""
    pod = job(name="rev", has_local_storage=True, local_volumes=("istio-data", "workload-socket"))
    assert says(pod).message == (
        "default/rev keeps data on its node (hostPath or emptyDir) in volumes istio-data, workload-socket; where that may "
        'be lost, annotate the pod cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: "istio-data,workload-socket"'
    )
    many = job(name="rev", has_local_storage=True, local_volumes=tuple(f"v{i}" for i in range(8)))
    told = says(many).message
    assert "in volumes v0, v1, v2, v3, v4, v5 and 2 more;" in told
    assert told.endswith('"v0,v1,v2,v3,v4,v5" and the others')


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(job(), id="a job's pod moves"),
        pytest.param(service(disruption=noted(migrate="true")), id="a service that opted in moves"),
        pytest.param(job(disruption=noted(migrate="true")), id="a job need not opt in, but may"),
        pytest.param(job(owner=None, disruption=noted(safe="true")), id="safe-to-evict overrides: not replicated"),
        pytest.param(
            job(has_local_storage=True, disruption=noted(safe="true")), id="safe-to-evict overrides: local data"
        ),
        pytest.param(job(namespace="kube-system", disruption=noted(safe="true")), id="safe-to-evict overrides: system"),
        pytest.param(job(disruption=noted(disrupt="false")), id="do-not-disrupt: false promises nothing"),
        pytest.param(job(disruption={DAEMONSET_POD: "false"}), id="daemonset-pod: false is no daemon"),
        pytest.param(job(disruption=noted(karpenter="1m30s")), id="a protection of 90 s is over after 100 s"),
        pytest.param(job(scheduler="default-scheduler"), id="a pod of another scheduler may be evicted"),
    ],
)
def test_moves(pod: Pod) -> None:
    assert says(pod) == MOVES


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(service(is_mirror=True, owner=None), id="a mirror pod is the kubelet's own"),
        pytest.param(service(owner=Owner("DaemonSet", "logs")), id="a DaemonSet's pod"),
        pytest.param(service(disruption={DAEMONSET_POD: "true"}), id="a custom controller's, annotated as one"),
        pytest.param(
            service(owner=Owner("DaemonSet", "logs"), disruption=noted(disrupt="true")),
            id="a DaemonSet's pod, whatever it promises",
        ),
        pytest.param(service(deleted_at=NOW - 100, grace_s=30.0), id="a deletion overdue by 40 s"),
    ],
)
def test_goes_with_its_node(pod: Pod) -> None:
    assert says(pod) == GOES_WITH_NODE


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(service(), Blocking.SERVICE_NOT_OPTED_IN, id="a service that did not opt in"),
        pytest.param(
            service(disruption=noted(safe="true")), Blocking.SERVICE_NOT_OPTED_IN, id="safe-to-evict is not opting in"
        ),
        pytest.param(job(disruption=noted(migrate="false")), Blocking.DO_NOT_DISRUPT, id="a job that opted out"),
        pytest.param(job(owner=None), Blocking.NOT_REPLICATED, id="nobody would start it again"),
        pytest.param(job(owner=Owner("TFJob", "train")), Blocking.UNKNOWN_CONTROLLER, id="a custom controller"),
        pytest.param(job(namespace="kube-system"), Blocking.UNMOVABLE_KUBE_SYSTEM_POD, id="kube-system, no budget"),
        pytest.param(job(disruption=noted(safe="false")), Blocking.NOT_SAFE_TO_EVICT, id="safe-to-evict: false"),
        pytest.param(
            job(owner=None, disruption=noted(safe="false")), Blocking.NOT_REPLICATED, id="Cluster Autoscaler's order"
        ),
        pytest.param(job(has_local_storage=True), Blocking.LOCAL_STORAGE_REQUESTED, id="data on the node"),
        pytest.param(job(disruption=noted(disrupt="true")), Blocking.DO_NOT_DISRUPT, id="htas.io/do-not-disrupt"),
        pytest.param(
            job(disruption=noted(karpenter="true")), Blocking.DO_NOT_DISRUPT, id="karpenter.sh/do-not-disrupt"
        ),
        pytest.param(job(disruption=noted(disrupt="2m")), Blocking.DO_NOT_DISRUPT, id="protected for 2 min, ran 100 s"),
        pytest.param(job(disruption=noted(disrupt="ture")), Blocking.DO_NOT_DISRUPT, id="a typing error protects too"),
        pytest.param(
            job(disruption=noted(disrupt="true", safe="true")), Blocking.DO_NOT_DISRUPT, id="the stricter promise holds"
        ),
        pytest.param(
            job(constraints=Constraints(unsupported=("dynamic resource allocation",))),
            Blocking.NOT_SAFE_TO_EVICT,
            id="what HTAS cannot place it does not move",
        ),
    ],
)
def test_holds_its_node(pod: Pod, reason: Blocking) -> None:
    verdict = says(pod)
    assert verdict.blocked is reason
    assert pod.key in verdict.message


@pytest.mark.parametrize(
    ("wish", "reason"), [("false", Blocking.SERVICE_NOT_OPTED_IN), ("ture", Blocking.SERVICE_NOT_OPTED_IN)]
)
def test_where_all_services_are_moved_one_that_says_otherwise_stays(wish: str, reason: Blocking) -> None:
    assert says(service(disruption=noted(migrate=wish)), {"moves_services": True}).blocked is reason


def test_on_completion_is_waited_for() -> None:
    verdict = says(job(disruption=noted(safe="on-completion")))
    assert verdict.waits
    assert verdict.blocked is None


@pytest.mark.parametrize(
    ("pod", "rules"),
    [
        pytest.param(
            job(owner=Owner("TFJob", "train")), {"skip_custom_controller_pods": False}, id="custom controllers"
        ),
        pytest.param(job(namespace="kube-system"), {"skip_system_pods": False}, id="system pods"),
        pytest.param(job(has_local_storage=True), {"skip_local_storage": False}, id="local storage"),
        pytest.param(job(owner=SMALL_SET), {"min_replica_count": 1}, id="a set as large as the minimum"),
        pytest.param(
            job(owner=Owner("StatefulSet", "db", replicas=1)),
            {"min_replica_count": 2},
            id="the minimum is for ReplicaSets",
        ),
        pytest.param(job(owner=Owner("ReplicaSet", "web")), {"min_replica_count": 2}, id="a set of unknown size"),
        pytest.param(service(), {"moves_services": True}, id="services that did not opt in"),
    ],
)
def test_rules_are_switched_off_by_configuration(pod: Pod, rules: dict[str, Any]) -> None:
    assert says(pod, rules) == MOVES


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(job(owner=SMALL_SET), id="below the minimum"),
        pytest.param(
            job(owner=SMALL_SET, disruption=noted(safe="true")), id="even if safe-to-evict, which comes later"
        ),
    ],
)
def test_a_small_replica_set_keeps_its_pods(pod: Pod) -> None:
    assert says(pod, {"min_replica_count": 2}).blocked is Blocking.MIN_REPLICAS_REACHED


@pytest.mark.parametrize(
    ("pod", "allowed", "also", "blocked"),
    [
        pytest.param(job(**COVERED), 1, 0, None, id="one disruption allowed"),
        pytest.param(job(**COVERED), 0, 0, Blocking.NOT_ENOUGH_PDB, id="none allowed"),
        pytest.param(job(), 0, 0, None, id="a budget of other pods"),
        pytest.param(
            job(disruption=noted(safe="true"), **COVERED),
            0,
            0,
            Blocking.NOT_ENOUGH_PDB,
            id="safe-to-evict breaks no budget",
        ),
        pytest.param(job(**COVERED), 5, 1, Blocking.NOT_ENOUGH_PDB, id="two budgets: the Eviction API refuses"),
        pytest.param(
            job(namespace="kube-system", **COVERED), 1, 0, Blocking.UNMOVABLE_KUBE_SYSTEM_POD, id="a budget elsewhere"
        ),
    ],
)
def test_budgets(pod: Pod, allowed: int, also: int, blocked: Blocking | None) -> None:
    assert says(pod, None, allowed, also).blocked is blocked


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param("1h30m", 5400.0, id="hours and minutes"),
        pytest.param("1.5h", 5400.0, id="a fraction"),
        pytest.param("250ms", 0.25, id="milliseconds are not minutes"),
        pytest.param("90", None, id="a number without a unit"),
        pytest.param("5m later", None, id="something more"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_durations_as_go_writes_them(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds


def test_a_system_pod_with_a_budget_moves() -> None:
    system = DisruptionBudget("kube-system", "dns", LabelSelector(), 1)
    context = Context(CleaningRules(), BudgetLedger([system]), NOW)
    assert drain_rules.judge(job(namespace="kube-system"), context) == MOVES
