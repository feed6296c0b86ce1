"""With `promises: keep`, what users were promised holds against any priority."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.nodes import DO_NOT_DISRUPT
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Owner, Pod, WorkKind
from htas.model.policy import CleaningRules, NodeGroup, Promises
from htas.model.snapshot import ClusterView
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.migration_methods import MigrationMethods
from tests.builders import NOW, make_job, make_policy, owned_node, running
from tests.unit.planning.preemption.world import HIGH, MIDDLE, budget, chosen, ending, incoming, machine, on

EVICT, MOVE = DisruptionKind.EVICT, DisruptionKind.MOVE
JOB = running(make_job("job", 600.0), "n")
DAEMON = on("n", "daemon", owner=Owner("DaemonSet", "logs", "logs-uid"))


def annotated(key: str, value: str) -> Pod:
    return on("n", "pod", disruption={key: value})


TERMS = [
    pytest.param(JOB, MOVE, AllowedFor.ANYBODY, id="batch work moves for any work"),
    pytest.param(JOB, EVICT, AllowedFor.HIGHER_PRIORITY, id="and is evicted for more important work"),
    pytest.param(on("n", "web"), MOVE, AllowedFor.HIGHER_PRIORITY, id="a service moves for more important work"),
    pytest.param(on("n", "web"), EVICT, AllowedFor.HIGHER_PRIORITY, id="and is evicted for it"),
    pytest.param(annotated(MAY_MIGRATE, "true"), MOVE, AllowedFor.ANYBODY, id="a service that opted in moves for any"),
    pytest.param(annotated(MAY_MIGRATE, "false"), MOVE, AllowedFor.NOBODY, id="a service that opted out stays"),
    pytest.param(annotated(MAY_MIGRATE, "false"), EVICT, AllowedFor.NOBODY, id="whatever is to become of it"),
    pytest.param(annotated(DO_NOT_DISRUPT, "true"), EVICT, AllowedFor.NOBODY, id="do-not-disrupt"),
    pytest.param(annotated(SAFE_TO_EVICT, "false"), EVICT, AllowedFor.NOBODY, id="not safe to evict"),
    pytest.param(annotated(SAFE_TO_EVICT, "on-completion"), EVICT, AllowedFor.NOBODY, id="on completion only"),
    pytest.param(on("n", "data", has_local_storage=True), EVICT, AllowedFor.NOBODY, id="data on its node"),
    pytest.param(
        on("n", "bare", owner=None), EVICT, AllowedFor.HIGHER_PRIORITY, id="a pod without a controller may be a victim"
    ),
    pytest.param(on("n", "bare", owner=None), MOVE, AllowedFor.NOBODY, id="but nobody would start it elsewhere"),
    pytest.param(on("n", "dns", namespace="kube-system"), EVICT, AllowedFor.NOBODY, id="kube-system without a budget"),
    pytest.param(DAEMON, EVICT, AllowedFor.NOBODY, id="a DaemonSet's pod"),
    pytest.param(on("n", "static", is_mirror=True), EVICT, AllowedFor.NOBODY, id="a static pod"),
    pytest.param(ending(on("n", "gone")), EVICT, AllowedFor.NOBODY, id="a pod that ends already"),
]


@pytest.mark.parametrize(("pod", "disturbance", "expected"), TERMS)
def test_terms(pod: Pod, disturbance: DisruptionKind, expected: AllowedFor) -> None:
    terms = DisruptionPolicy(ClusterView(nodes=(machine("n"),)), make_policy(), NOW).terms(pod, disturbance)
    assert terms.allowed_for is expected
    assert terms.why or expected is not AllowedFor.NOBODY


TWIN = on("n", "twin", twin_of="another", disruption={MAY_MIGRATE: "true"})
OPTED_IN: dict[str, Any] = {"disruption": {MAY_MIGRATE: "true"}}


@pytest.mark.parametrize(
    "pod",
    [
        *(term.values[0] for term in TERMS),
        pytest.param(TWIN, id="one that has just come"),
        pytest.param(ending(on("n", "gone", **OPTED_IN)), id="one that opted in and ends"),
        pytest.param(on("n", "static", is_mirror=True, **OPTED_IN), id="a static pod that opted in"),
    ],
)
def test_the_short_answer_is_that_of_the_terms(pod: Pod) -> None:
    view, policy = ClusterView(nodes=(machine("n"),)), make_policy()
    judge, method = DisruptionPolicy(view, policy, NOW), MigrationMethods(view, policy).method(pod)
    assert judge.may_move(pod, method) is (judge.terms(pod, MOVE).allowed_for is AllowedFor.ANYBODY)


def test_the_nodes_group_has_its_own_rules() -> None:
    policy = make_policy([NodeGroup("any", cleaning=CleaningRules(skip_local_storage=False))])
    pod = on("n", "data", has_local_storage=True)
    assert (
        DisruptionPolicy(ClusterView(nodes=(owned_node("n"),)), policy, NOW).terms(pod, EVICT).allowed_for
        is AllowedFor.HIGHER_PRIORITY
    )


def test_what_a_budget_allows_is_the_ledgers_to_say_but_two_budgets_hold_a_pod() -> None:
    pod = on("n", "web", labels={"app": "foo"})
    one, two = (budget(0),), (budget(5), budget(5, name="other"))
    for budgets, expected in ((one, AllowedFor.HIGHER_PRIORITY), (two, AllowedFor.NOBODY)):
        view = ClusterView(nodes=(machine("n"),), budgets=budgets)
        assert DisruptionPolicy(view, make_policy(), NOW).terms(pod, EVICT).allowed_for is expected


def labelled(*cpus: str) -> list[Pod]:
    return [on("n", f"p{i}", cpu, labels={"app": "foo"}, since_s=50 - i) for i, cpu in enumerate(cpus)]


KEPT = [
    pytest.param("4", labelled("2", "2"), [budget(1)], None, id="a budget for one holds where two would have to leave"),
    pytest.param("2", labelled("2", "2"), [budget(1)], {"p0"}, id="one of two may leave"),
    pytest.param("3", labelled("1", "3"), [budget(1)], {"p1"}, id="the one that is large enough"),
    pytest.param("4", labelled("2", "2"), [budget(2)], {"p0", "p1"}, id="a budget for two"),
    pytest.param("4", labelled("4"), [budget(1), budget(1, name="other")], None, id="two budgets hold a pod"),
    pytest.param(
        "2",
        [on("n", "kept", "2", disruption={DO_NOT_DISRUPT: "true"}), on("n", "free", "2", MIDDLE)],
        [],
        {"free"},
        id="a more important pod goes in place of one that was promised to stay",
    ),
]


@pytest.mark.parametrize(("cpu", "pods", "budgets", "victims"), KEPT)
def test_budgets_are_a_hard_limit(
    cpu: str, pods: list[Pod], budgets: list[DisruptionBudget], victims: set[str] | None
) -> None:
    found = chosen(incoming(cpu), [machine("n")], pods, budgets, Promises.KEEP)
    assert found == ("n", victims) if victims is not None else isinstance(found, str)


def test_the_refusal_names_a_promise_that_stands_in_the_way() -> None:
    found = chosen(incoming(), [machine("n")], [annotated(SAFE_TO_EVICT, "false")], promises=Promises.KEEP)
    assert isinstance(found, str)
    assert f'For one: default/pod: {SAFE_TO_EVICT}="false".' in found


@pytest.mark.parametrize("key", [DO_NOT_DISRUPT, SAFE_TO_EVICT, MAY_MIGRATE])
def test_as_kube_scheduler_no_annotation_protects(key: str) -> None:
    value = "true" if key == DO_NOT_DISRUPT else "false"
    pod = annotated(key, value)
    assert chosen(incoming(), [machine("n")], [pod], promises=Promises.AS_KUBE_SCHEDULER) == ("n", {"pod"})


def test_batch_work_is_preempted_like_any() -> None:
    pod = running(make_job("job", 600.0, kind=WorkKind.BATCH, priority=HIGH - 1), "n")
    assert chosen(incoming("3950m"), [machine("n")], [pod], promises=Promises.KEEP) == ("n", {"job"})
