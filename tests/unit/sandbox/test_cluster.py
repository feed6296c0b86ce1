"""Controllers, budgets, admission and DaemonSets of the sandbox's cluster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.constraints import Constraints, Effect, NodeSelectorTerm, Taint, Toleration
from htas.model.pods import Phase
from htas.model.resources import Resources
from htas.model.selectors import Operator, Requirement
from htas.ports import NotFoundError, PermanentError, TransientError
from htas.sandbox.workload import Arrival, Budget, ControllerKind, Rescale, Workload
from htas.sandbox.world import World
from tests.builders import labels_are, make_node, make_pod
from tests.unit.sandbox.situations import bind_all, job, node, pods, rent, task, wait, web, world_of

BUDGET = Budget("default", "web", labels_are(app="web"), 1)


def test_a_job_runs_for_its_true_length_not_the_stated_one() -> None:
    world = bind_all(world_of(job("j", runs_s=300.0, stated_s=60.0)))
    run_length = pods(world)["j-1"].run_length
    assert run_length is not None
    assert run_length.seconds == 60.0
    wait(world, 299)
    assert "j-1" in pods(world)
    wait(world, 1)
    assert "j-1" not in pods(world)
    assert (world.ledger.finished, world.ledger.finished_tasks) == (1, ["default/j"])


@pytest.mark.parametrize(
    ("name", "kind", "stated", "template"),
    [
        pytest.param("train-17-3", ControllerKind.JOB, "", "Job/train-#-#", id="Jobs that differ in numbers are alike"),
        pytest.param("web", ControllerKind.REPLICA_SET, "", "ReplicaSet/web", id="one without a number"),
        pytest.param("one", ControllerKind.BARE, "", "", id="a bare pod is made of none"),
        pytest.param("train-17", ControllerKind.JOB, "CronJob/train", "CronJob/train", id="one that is stated"),
    ],
)
def test_pods_name_their_template_and_image(name: str, kind: ControllerKind, stated: str, template: str) -> None:
    world = world_of(Arrival(0.0, task(name, template=stated, image="torch:2"), kind))
    (pod,) = pods(world).values()
    assert (pod.template, pod.image) == (template, "torch:2")


def test_an_evicted_job_starts_again_from_nothing() -> None:
    world = bind_all(world_of(job("j", runs_s=100.0)))
    wait(world, 60)
    world.cluster.evict(pods(world)["j-1"])
    assert pods(world)["j-1"].is_terminating
    wait(world, 2)
    assert "j-1" not in pods(world)
    wait(world, 1)
    assert pods(world)["j-2"].node is None
    assert (world.ledger.evictions, world.ledger.restarts, world.ledger.work_lost_s) == (1, 1, 62.0)
    wait(bind_all(world, "b"), 100)
    assert world.ledger.finished == 1
    assert (len(world.ledger.waits_s), len(world.ledger.first_waits_s)) == (2, 1)  # it began once, and waited twice


def test_a_job_that_ends_within_its_grace_has_ended() -> None:
    world = bind_all(world_of(job("j", runs_s=100.0)))
    wait(world, 99)
    world.cluster.evict(pods(world)["j-1"])
    wait(world, 60)
    assert (world.ledger.finished, world.ledger.restarts) == (1, 0)
    assert not pods(world)


def test_a_pod_evicted_before_it_started_never_starts() -> None:
    world = world_of(job("j"))
    world.cluster.bind(pods(world)["j-1"], "a")
    world.cluster.evict(pods(world)["j-1"])
    wait(world, 1.5)
    assert pods(world)["j-1"].phase is Phase.PENDING
    assert not world.ledger.waits_s


@pytest.mark.parametrize(
    ("kind", "left", "lost"),
    [
        pytest.param(
            ControllerKind.REPLICA_SET, ["web-2", "web-3"], 0, id="a ReplicaSet's comes back under a new name"
        ),
        pytest.param(ControllerKind.STATEFUL_SET, ["web-0", "web-1"], 0, id="a StatefulSet's under its own"),
        pytest.param(ControllerKind.BARE, [], 1, id="a bare pod does not come back"),
    ],
)
def test_what_becomes_of_an_evicted_pod(kind: ControllerKind, left: list[str], lost: int) -> None:
    replicas = 1 if kind is ControllerKind.BARE else 2
    runs_s = 500.0 if kind is ControllerKind.BARE else None
    world = bind_all(world_of(web(replicas, kind, runs_s=runs_s)))
    first = next(iter(pods(world).values()))
    world.cluster.evict(first)
    wait(world, 5)
    assert sorted(pods(world)) == left
    assert first.uid not in {pod.uid for pod in pods(world).values()}
    assert world.ledger.lost == lost


def test_a_statefulset_pod_that_came_back_is_another_pod() -> None:
    """Its name is the same; what was meant for the old one must not hit it."""
    world = bind_all(world_of(web(1, ControllerKind.STATEFUL_SET)))
    old = pods(world)["web-0"]
    world.cluster.evict(old)
    wait(world, 5)
    with pytest.raises(NotFoundError):
        world.cluster.bind(old, "b")
    world.cluster.evict(old)
    assert not pods(world)["web-0"].is_terminating


@pytest.mark.parametrize("kind", [ControllerKind.REPLICA_SET, ControllerKind.STATEFUL_SET])
def test_fewer_and_more_replicas(kind: ControllerKind) -> None:
    world = world_of(web(3, kind))
    names = sorted(pods(world))
    world.cluster.rescale(Rescale(0, "default", "web", 1))
    assert len(pods(world)) == 1
    assert set(pods(world)) <= set(names)
    world.cluster.rescale(Rescale(0, "default", "web", 4))
    assert len(pods(world)) == 4
    world.cluster.rescale(Rescale(0, "default", "web", 0))
    assert not pods(world)


def test_a_statefulset_gives_up_its_highest_ordinals() -> None:
    world = world_of(web(12, ControllerKind.STATEFUL_SET))
    world.cluster.rescale(Rescale(0, "default", "web", 10))
    assert set(pods(world)) == {f"web-{i}" for i in range(10)}


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        pytest.param(Workload("w", (job("j"), job("j"))), "default/j arrives twice", id="two of one name"),
        pytest.param(
            Workload("w", (), (Rescale(0, "default", "nobody", 2),)), "default/nobody is rescaled", id="unknown name"
        ),
        pytest.param(
            Workload("w", (Arrival(10, task("web"), ControllerKind.REPLICA_SET),), (Rescale(5, "default", "web", 2),)),
            "before anything of that name arrives",
            id="rescaled too early",
        ),
    ],
)
def test_workloads_that_make_no_sense_are_refused(workload: Workload, words: str) -> None:
    with pytest.raises(PermanentError, match=words):
        World().load(workload)


# Budgets.


def test_a_budget_is_spent_by_each_eviction_and_earned_back_by_each_start() -> None:
    world = bind_all(world_of(web(2), budgets=[BUDGET]))
    assert world.cluster.observe().budgets[0].disruptions_allowed == 1
    world.cluster.evict(pods(world)["web-1"])
    assert world.cluster.observe().budgets[0].disruptions_allowed == 0
    with pytest.raises(TransientError, match="default/web") as refused:
        world.cluster.evict(pods(world)["web-2"])
    assert refused.value.retry_after_s == 10.0
    assert not pods(world)["web-2"].is_terminating
    wait(world, 5)
    assert world.cluster.observe().budgets[0].disruptions_allowed == 0
    bind_all(world, "b")
    assert world.cluster.observe().budgets[0].disruptions_allowed == 1


def test_a_pod_that_does_not_run_needs_no_budget() -> None:
    world = world_of(web(1), budgets=[BUDGET])
    world.cluster.evict(pods(world)["web-1"])
    wait(world, 5)
    assert list(pods(world)) == ["web-2"]


@pytest.mark.parametrize(
    ("minimum", "always", "leaves"),
    [
        pytest.param(1, False, True, id="as many others are Ready as the budget asks for"),
        pytest.param(2, False, False, id="the budget lacks a Ready pod already"),
        pytest.param(2, True, True, id="unless it always allows those that are not Ready"),
    ],
)
def test_a_pod_that_is_not_ready_leaves_as_the_eviction_api_has_it(minimum: int, always: bool, leaves: bool) -> None:
    """web-1 is on a node that fell silent, web-2 is Ready: one is healthy, and none may go of `minimum` 1 or more."""
    asked = msgspec.structs.replace(BUDGET, min_available=minimum, always_allows_unready=always)
    world = world_of(web(2), budgets=[asked])
    world.cluster.bind(pods(world)["web-1"], "a")
    world.cluster.bind(pods(world)["web-2"], "b")
    wait(world, 60)
    world.cluster.set_ready("a", False)
    status = world.cluster.observe().budgets[0]
    assert (status.disruptions_allowed, status.current_healthy, status.desired_healthy) == (0, 1, minimum)
    if leaves:
        world.cluster.evict(pods(world)["web-1"])
    else:
        with pytest.raises(TransientError, match="allows no disruption"):
            world.cluster.evict(pods(world)["web-1"])
    with pytest.raises(TransientError, match="allows no disruption"):
        world.cluster.evict(pods(world)["web-2"])


def test_a_pod_under_two_budgets_is_never_evicted() -> None:
    world = bind_all(world_of(web(3), budgets=[BUDGET, msgspec.structs.replace(BUDGET, name="again")]))
    with pytest.raises(TransientError, match="more than one PodDisruptionBudget"):
        world.cluster.evict(pods(world)["web-1"])


def test_a_budget_covers_its_namespace_alone_also_what_was_there_before_it() -> None:
    theirs = Arrival(0.0, task("theirs", namespace="other", labels={"app": "web"}), ControllerKind.REPLICA_SET, 2)
    world = bind_all(world_of(web(2), theirs))
    world.cluster.add_budget(BUDGET)
    assert world.cluster.observe().budgets[0].disruptions_allowed == 1


# Admission and nodes.


@pytest.mark.parametrize(
    ("requests", "extended"),
    [
        pytest.param(Resources(1600, 0, 0, 1), {}, id="cpu"),
        pytest.param(Resources(0, 4 * 2**30, 0, 1), {}, id="memory"),
        pytest.param(Resources(0, 0, 0, 1, (("nvidia.com/gpu", 1),)), {}, id="a GPU where there is none"),
    ],
)
def test_the_kubelet_refuses_what_does_not_fit(requests: Resources, extended: dict[str, Any]) -> None:
    world = bind_all(
        world_of(web(1), job("j", requests=requests), nodes=[make_node("a", "2", "4Gi", extended=extended)])
    )
    assert world.ledger.overcommitted == 1
    assert [pod.name for pod in pods(world).values() if pod.node == "a"] == ["web-1"]
    wait(world, 1)
    assert pods(world)["j-2"].node is None


def test_a_pod_on_a_node_that_is_not_ready_starts_once_it_is() -> None:
    world = world_of(job("j"))
    world.cluster.set_ready("a", False)
    world.cluster.bind(pods(world)["j-1"], "a")
    wait(world, 50)
    assert pods(world)["j-1"].phase is Phase.PENDING
    world.cluster.set_ready("a", True)
    world.cluster.set_ready("a", True)
    wait(world, 2)
    assert pods(world)["j-1"].phase is Phase.RUNNING
    assert world.ledger.waits_s == [51.0]


def test_what_runs_is_ready_while_its_node_is() -> None:
    world = world_of(job("j"))
    start = world.clock.now()
    world.cluster.bind(pods(world)["j-1"], "a")
    seen = [pods(world)["j-1"].ready_since]
    for after_s, ready in ((10, False), (10, True), (10, True)):
        wait(world, after_s)
        seen.append(pods(world)["j-1"].ready_since)
        world.cluster.set_ready("a", ready)
        seen.append(pods(world)["j-1"].ready_since)
    at = [None if instant is None else instant - start for instant in seen]
    assert at == [None, 1.0, None, None, 20.0, 20.0, 20.0]
    assert world.cluster.observe().nodes[0].ready_since == start + 20.0


def test_a_condition_holds_from_when_it_came_until_it_is_over() -> None:
    world = world_of()
    start, before = world.clock.now(), world.cluster.changes()
    seen = []
    for holds in (True, True, False, True):
        wait(world, 10)
        world.cluster.set_condition("a", "KernelDeadlock", holds)
        seen.append([since - start for _, since in node(world, "a").conditions])
    assert (seen, node(world, "b").conditions) == ([[10.0], [10.0], [], [40.0]], ())
    assert world.cluster.changes() > before


def test_where_no_container_starts_pods_wait_until_one_does() -> None:
    world = world_of(job("j"))
    world.cluster.faults.starts_nothing.add("a")
    world.cluster.bind(pods(world)["j-1"], "a")
    wait(world, 50)
    assert (pods(world)["j-1"].phase, pods(world)["j-1"].ready_since) == (Phase.PENDING, None)
    world.cluster.faults.starts_nothing.clear()
    wait(world, 11)
    assert pods(world)["j-1"].phase is Phase.RUNNING


def test_a_node_that_goes_takes_its_pods_and_controllers_bring_others() -> None:
    world = bind_all(world_of(web(2), job("j")))
    before = world.cluster.changes()
    world.cluster.delete_node("a")
    assert not pods(world)
    wait(world, 1)
    assert sorted(pods(world)) == ["j-2", "web-3", "web-4"]
    assert world.cluster.changes() > before
    assert world.ledger.killed_by_release == 0


def test_pods_of_others_hold_their_room() -> None:
    world = world_of(job("j", requests=Resources(1000, 0, 0, 1)))
    world.cluster.add_pod(make_pod("theirs", cpu="1500m", node="a", phase=Phase.RUNNING, scheduler="default-scheduler"))
    world.cluster.add_pod(make_pod("stuck", scheduler="default-scheduler", is_unschedulable=True))
    world.cluster.bind(pods(world)["j-1"], "a")
    assert world.ledger.overcommitted == 1
    assert pods(world)["stuck"].is_unschedulable
    with pytest.raises(NotFoundError):
        world.cluster.add_pod(make_pod("lost", node="nowhere"))


def test_namespaces_bear_their_name_and_what_they_were_given() -> None:
    world = world_of(web(1, namespace="shop"))
    world.load(Workload("more", (), namespaces={"bank": {"tier": "gold"}}))
    assert world.cluster.observe().namespaces == {
        "bank": {"kubernetes.io/metadata.name": "bank", "tier": "gold"},
        "shop": {"kubernetes.io/metadata.name": "shop"},
    }


def test_observing_what_did_not_change_builds_nothing() -> None:
    world = bind_all(world_of(web(2)))
    view = world.cluster.observe()
    assert world.cluster.observe() is view
    world.cluster.set_draining("a", True)
    assert world.cluster.observe() is not view
    assert view.nodes[0].taints == ()


# DaemonSets.

GPU = {"gpu": "a100"}
TERMS = (NodeSelectorTerm((Requirement("gpu", Operator.EXISTS),)),)
CLOSED = Taint("dedicated", Effect.NO_SCHEDULE, "gpu")


@pytest.mark.parametrize(
    ("constraints", "fields", "expected"),
    [
        pytest.param({}, {}, True, id="everywhere"),
        pytest.param({}, {"is_unschedulable": True}, True, id="also on a cordoned node"),
        pytest.param({"node_selector": (("gpu", "a100"),)}, {}, False, id="selector without the label"),
        pytest.param({"node_selector": (("gpu", "a100"),)}, {"labels": GPU}, True, id="selector with the label"),
        pytest.param({"node_affinity": TERMS}, {}, False, id="affinity without the label"),
        pytest.param({"node_affinity": TERMS}, {"labels": GPU}, True, id="affinity with the label"),
        pytest.param({"node_affinity": ()}, {}, False, id="affinity that nothing matches"),
        pytest.param({"node_affinity": (NodeSelectorTerm(),)}, {}, False, id="an empty term matches nothing"),
        pytest.param(
            {"node_affinity": (NodeSelectorTerm((), (Requirement("metadata.name", Operator.IN, ("n",)),)),)},
            {},
            True,
            id="affinity by the node's name",
        ),
        pytest.param({}, {"taints": (CLOSED,)}, False, id="a taint"),
        pytest.param({}, {"taints": (Taint("x", Effect.PREFER_NO_SCHEDULE),)}, True, id="a taint that only prefers"),
        pytest.param(
            {"tolerations": (Toleration("dedicated", "Equal", "gpu"),)}, {"taints": (CLOSED,)}, True, id="tolerated"
        ),
        pytest.param(
            {"tolerations": (Toleration("dedicated", "Equal", "cpu"),)},
            {"taints": (CLOSED,)},
            False,
            id="another value tolerated",
        ),
        pytest.param(
            {"tolerations": (Toleration(operator="Exists"),)}, {"taints": (CLOSED,)}, True, id="all tolerated"
        ),
        pytest.param(
            {"tolerations": (Toleration("dedicated", "Exists", effect=Effect.NO_EXECUTE),)},
            {"taints": (CLOSED,)},
            False,
            id="another effect tolerated",
        ),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["DaemonSet first", "node first"])
def test_daemon_pods_run_on_every_node_that_suits(
    constraints: dict[str, Any], fields: dict[str, Any], expected: bool, is_first: bool
) -> None:
    world = World()
    agent = task("agent", constraints=Constraints(**constraints))
    steps = [lambda: world.cluster.add_daemon(agent), lambda: world.cluster.add_node(make_node("n", **fields))]
    for step in steps if is_first else reversed(steps):
        step()
    assert ("agent-n" in pods(world)) == expected


def test_an_evicted_daemon_pod_comes_back_to_its_node() -> None:
    world = world_of()
    world.cluster.add_daemon(task("agent"))
    first = pods(world)["agent-a"]
    world.cluster.evict(first)
    wait(world, 40)
    again = pods(world)["agent-a"]
    assert again.node == "a"
    assert again.uid != first.uid
    world.cluster.delete_node("a")
    wait(world, 40)
    assert list(pods(world)) == ["agent-b"]


def test_daemon_pods_are_no_loss_when_a_machine_is_released() -> None:
    world = world_of()
    world.cluster.add_daemon(task("agent"))
    instance = rent(world)
    wait(world, 60)
    assert node(world, "c1").is_ready
    assert "agent-c1" in pods(world)
    world.cloud.delete(instance.id)
    assert world.ledger.killed_by_release == 0


def test_the_same_calls_give_the_same_bytes() -> None:
    def history() -> bytes:
        world = bind_all(world_of(web(3), job("j"), budgets=[BUDGET], seed=7))
        rent(world)
        world.cluster.evict(pods(world)["web-1"])
        seen = []
        for _ in range(40):
            wait(world, 3)
            seen.append(msgspec.json.encode((world.cluster.observe(), world.cloud.instances(), world.ledger)))
        return b"\n".join(seen)

    assert history() == history()
