"""A launched machine counts once it is initialized: Ready, without start-up taints, with all that its flavour promises."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState
from htas.model.constraints import Taint, Toleration
from htas.model.nodes import DRAINING_TAINT, INSTANCE_TYPE_LABEL, Node
from htas.model.policy import NodeGroup, Policy, Timeouts
from htas.model.reasons import Kept
from htas.model.resources import Resources
from htas.sandbox.cloud import Shows
from htas.sandbox.workload import Arrival, Task, Workload
from tests.builders import constrained, make_flavour, make_policy, no_schedule
from tests.stories.play import GIB, Story, job, service

HOUR = 3600.0
GPU = "nvidia.com/gpu"
AGENT = no_schedule("node.cilium.io/agent-not-ready")
GPUS = make_flavour("gpu", "8", "32Gi", "2", extended={GPU: 2})
PLAIN = make_flavour("plain", "4", "16Gi", "0.2")
LARGE = make_flavour("large", "8", "32Gi", "0.5")


def policy(**group: Any) -> Policy:
    return make_policy([NodeGroup("any", **group)], (GPUS, PLAIN))


def train(name: str = "train", gpus: int = 1, **fields: Any) -> Arrival:
    """A job that asks for GPUs."""
    arrival = job(name, **fields)
    asked = msgspec.structs.replace(arrival.task.requests, extended=((GPU, gpus),))
    return msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, requests=asked))


def with_gpus(after_s: float | None, *arrivals: Arrival, **group: Any) -> Story:
    """A cloud whose GPU nodes show their devices so long after they are Ready."""
    story = Story(policy(**group), *arrivals)
    story.world.cloud.shows = Shows(devices_after_s=after_s)
    return story


def launched(story: Story) -> int:
    return len(story.world.ledger.rentals)


def failed(story: Story) -> list[str]:
    outcomes = [outcome for result in story.seen for outcome in result.outcomes]
    return [o.message for o in outcomes if (o.action, o.status) == ("initialize", "failed")]


@pytest.mark.parametrize("after_s", [0.0, 30.0, 90.0, 180.0, 300.0, 600.0, 850.0])
def test_a_gpu_that_comes_late_takes_one_machine(after_s: float) -> None:
    """180 machines were launched in 3 hours, and the job never ran."""
    story = with_gpus(after_s, train()).play(HOUR)
    story.assert_over(1)
    assert launched(story) == 1


def test_a_machine_in_flight_is_kept_and_says_what_it_waits_for() -> None:
    story = with_gpus(600.0, train()).play(400)
    plan = story.seen[-1].plan
    [kept] = plan.kept
    assert (kept.reason, kept.message) == (Kept.NOT_INITIALIZED, f"registered, waiting for {GPU}")
    assert [hold.why for hold in plan.nominate] == [f"its machine is registered, waiting for {GPU}"]
    assert (plan.launch, plan.unplaced) == ((), ())


def test_a_gpu_that_never_comes_fails_its_machine_with_the_reason_and_others_back_off() -> None:
    story = with_gpus(None, train()).play(6 * HOUR)
    assert launched(story) <= 6 * 4, "each was given 15 minutes: 360 were launched in 6 hours"
    [message] = set(failed(story))
    assert message == f"not initialized within 900 s, without {GPU}"
    assert story.store.learned() == {} or GPU in dict(story.store.learned()["gpu"].extended)
    story.assert_whole()


def test_once_the_driver_is_mended_the_job_runs() -> None:
    story = with_gpus(None, train()).play(HOUR)
    story.world.cloud.shows = Shows()
    story.play(4 * HOUR).assert_over(1)


@pytest.mark.parametrize("for_s", [0.0, 90.0, 600.0])
@pytest.mark.parametrize("is_declared", [True, False])
def test_a_start_up_taint_takes_one_machine_declared_or_not(for_s: float, *, is_declared: bool) -> None:
    """Six an hour were launched where it stayed longer than a minute."""
    story = Story(policy(startup_taints=(AGENT,) if is_declared else ()), job("a", cpu_m=3000))
    cloud = story.world.cloud
    cloud.taints_for_s = for_s
    if is_declared:
        cloud.startup_taints = (AGENT,)
    else:
        cloud.taints = (AGENT,)
    story.play(HOUR).assert_over(1)
    assert launched(story) == 1


def test_a_start_up_taint_is_given_to_new_nodes_and_pods_wait_until_it_goes() -> None:
    story = Story(policy(startup_taints=(AGENT,)), job("a")).play(300)
    [node] = story.world.cluster.observe().nodes
    assert (node.taints, node.is_ready) == ((AGENT,), True)
    assert [pod.node for pod in story.world.cluster.observe().pods] == [None]
    story.world.cluster.take_off(node.name, (AGENT,))
    story.play(700).assert_over(1)
    assert launched(story) == 1


def test_a_start_up_taint_that_stays_fails_the_machine_and_the_flavour_backs_off() -> None:
    story = Story(policy(startup_taints=(AGENT,)), service("web", 1)).play(2 * HOUR)
    assert launched(story) <= 6
    assert set(failed(story)) == {f"not initialized within 900 s, without taint {AGENT.key}"}


@pytest.mark.parametrize("taint", [AGENT, Taint("dedicated", AGENT.effect, "gpu")])
def test_an_undeclared_taint_that_stays_is_no_fault_of_the_machine_and_few_are_launched(taint: Taint) -> None:
    """Each is taken as it is, said once, and deleted as empty: its pods cannot use it."""
    story = Story(policy(), service("web", 1))
    story.world.cloud.taints = (taint,)
    story.play(4 * HOUR)
    at = [rental.started_at for rental in story.world.ledger.rentals]
    assert max(sum(first <= each < first + HOUR for each in at) for first in at) <= 3
    assert (failed(story), len(story.nodes) <= 1) == ([], True)
    taken = [o.subject for result in story.seen for o in result.outcomes if o.action == "initialize"]
    assert len(taken) == len(set(taken)) >= len(at) - 1
    causes = {item.message for result in story.seen for item in result.plan.unplaced}
    assert any("did not admit it" in cause for cause in causes)
    story.assert_whole()


def test_a_minimum_of_nodes_with_a_taint_of_their_image_is_launched_once() -> None:
    """19 were launched in 12 hours, one after another."""
    story = Story(policy(min_nodes=1))
    story.world.cloud.taints = (no_schedule("dedicated"),)
    story.play(12 * HOUR)
    assert (launched(story), failed(story), len(story.nodes)) == (1, [], 1)


def test_a_node_that_somebody_cordons_while_it_starts_does_not_fail() -> None:
    story = Story(make_policy([NodeGroup("any", min_nodes=1)], (GPUS,)))
    story.world.cloud.shows = Shows(devices_after_s=600.0)
    [node] = story.play(200).nodes
    story.world.cluster.set_draining(node, draining=True)
    story.world.cluster.take_off(node, (DRAINING_TAINT,))
    story.play(2 * HOUR)
    assert (launched(story), failed(story), story.nodes) == (1, [], [node])


def test_pods_that_tolerate_what_stays_run_there_at_once_and_are_never_killed() -> None:
    """An image may bear a taint that no group declares, and pods that tolerate it."""
    tolerant = constrained(tolerations=(Toleration("dedicated", "Exists"),))
    story = Story(policy(), service("web", 2, constraints=tolerant))
    story.world.cloud.taints = (no_schedule("dedicated"),)
    story.play(2 * HOUR).assert_whole()
    assert {pod.node is not None for pod in story.world.cluster.observe().pods} == {True}
    assert (launched(story), failed(story)) == (1, [])
    [claim] = story.store.claims()
    assert claim.state is ClaimState.READY
    assert story.world.ledger.evictions == 0


def test_pods_of_a_daemon_set_do_not_keep_a_machine_that_is_of_no_use() -> None:
    agent = Task(
        "agent", Resources(100, GIB // 8, 0, 1), constraints=constrained(tolerations=(Toleration("", "Exists"),))
    )
    story = with_gpus(None, train())
    story.world.load(Workload("agents", (), daemons=(agent,)))
    story.play(1100)
    assert len(failed(story)) == 1
    story.assert_whole()


@pytest.mark.parametrize(("share", "flavour"), [(0.5, "large"), (0.1, "large"), (0.95, "plain"), (0.01, "large")])
def test_a_node_smaller_than_its_flavour_is_learned_and_the_next_machine_holds_the_pod(
    share: float, flavour: str
) -> None:
    """A machine with half the cores takes no job of 3; no second one of its flavour is launched for it."""
    story = Story(make_policy([NodeGroup("any")], (PLAIN, LARGE)), job("a", cpu_m=3500))
    story.world.cloud.arranged.append(Shows(share=share))
    story.play(2 * HOUR).assert_over(1)
    assert launched(story) == (1 if share == 0.95 else 2)
    assert story.world.ledger.rentals[-1].flavour == flavour


def test_what_is_less_is_reported_once_and_planned_with() -> None:
    story = Story(make_policy([NodeGroup("any")], (PLAIN, LARGE)), job("a", cpu_m=3500), job("b", 1200.0, cpu_m=3500))
    story.world.cloud.shows = Shows(share=0.5)
    story.play(HOUR).assert_over(2)
    told = [text for text in story.messages if text.startswith("measure")]
    assert [text.partition(":")[0] for text in told] == ["measure plain", "measure large"]
    assert "offers 2 of 4 cores, 8 GiB of 16 GiB memory" in told[0]
    assert launched(story) == 3, "plain once, large for each job"


def test_fewer_gpus_than_promised_serve_whom_they_can_and_fail_nothing() -> None:
    story = with_gpus(None, train(runs_s=2400.0)).play(100)
    [node] = story.world.cluster.observe().nodes
    story.world.cluster.set_offered(node.name, Resources(8000, 32 * GIB, 0, 110, ((GPU, 1),)))
    story.play(2 * HOUR).assert_over(1)
    assert (launched(story), failed(story)) == (1, [])


def test_a_node_that_flaps_before_it_is_initialized_gets_no_more_time_and_one_machine_is_launched() -> None:
    story = with_gpus(600.0, train()).play(100)
    [node] = story.nodes
    for at_s in range(120, 600, 40):
        story.world.cluster.set_ready(node, ready=at_s % 80 == 0)
        story.play(at_s)
    story.world.cluster.set_ready(node, ready=True)
    story.play(HOUR).assert_over(1)
    assert launched(story) == 1


@pytest.mark.parametrize("loses_its_journal", [False, True])
def test_a_daemon_that_starts_again_waits_on(*, loses_its_journal: bool) -> None:
    story = with_gpus(700.0, train())
    for at_s in (100, 300, 500):
        story.play(at_s)
        if loses_its_journal:
            story.store = type(story.store)(":memory:")
        story.crash()
    story.play(HOUR).assert_over(1)
    assert launched(story) == 1


def test_a_machine_that_was_adopted_never_fails_for_what_it_lacks() -> None:
    story = with_gpus(None, train(), min_nodes=1).play(300)
    story.store = type(story.store)(":memory:")
    story.crash()
    story.play(1500)
    assert failed(story) == []


def test_an_initialized_node_that_loses_its_gpu_stays_initialized() -> None:
    story = with_gpus(0.0, train(runs_s=7200.0)).play(300)
    [node] = story.world.cluster.observe().nodes
    story.world.cluster.set_offered(node.name, msgspec.structs.replace(node.allocatable, extended=()))
    story.play(2 * HOUR)
    [claim] = story.store.claims()
    assert (claim.state, failed(story), launched(story)) == (ClaimState.READY, [], 1)


@pytest.mark.parametrize(("after_s", "machines"), [(300.0, 0), (None, 1)])
def test_a_gpu_of_a_node_that_another_autoscaler_launched_is_waited_for(after_s: float | None, machines: int) -> None:
    """It is the pods' own node: a machine was launched for them in the cycle in which it was Ready."""
    story = Story(policy(), train())
    full = Resources(8000, 32 * GIB, 0, 110, ((GPU, 2),))
    bare = msgspec.structs.replace(full, extended=())
    at = story.start
    story.world.add_nodes([Node("theirs", bare, labels={INSTANCE_TYPE_LABEL: "gpu"}, created_at=at, ready_since=at)])
    story.play(after_s or 300.0)
    assert launched(story) == 0
    if after_s is not None:
        story.world.cluster.set_offered("theirs", full)
    story.play(HOUR).assert_whole()
    assert (launched(story), story.world.ledger.finished) == (machines, 1)


def test_a_machine_that_is_started_again_is_waited_for_and_not_deleted_as_empty() -> None:
    story = with_gpus(0.0, train(runs_s=60.0), train("next", gpus=2, at_s=100.0))
    [node] = story.play(110).world.cluster.observe().nodes
    cluster = story.world.cluster
    cluster.set_ready(node.name, ready=False)
    cluster.set_offered(node.name, msgspec.structs.replace(node.allocatable, extended=()))
    cluster.set_ready(node.name, ready=True)
    story.play(500)
    assert [pod.node for pod in cluster.observe().pods if pod.name.startswith("next")] == [None]
    cluster.set_offered(node.name, node.allocatable)
    story.play(HOUR).assert_over(2)
    assert launched(story) == 1


def test_the_timeout_is_a_setting() -> None:
    timeouts = Timeouts(initialization_s=120.0)
    story = Story(msgspec.structs.replace(policy(), timeouts=timeouts), train())
    story.world.cloud.shows = Shows(devices_after_s=None)
    story.play(300)
    assert failed(story) == [f"not initialized within 120 s, without {GPU}"]


def test_a_kubelet_that_lies_gets_no_more_than_its_flavour_has_and_is_reported() -> None:
    """A kubelet that reported 1,000 cores had 15,810 pods bound to it in 3 hours."""
    story = Story(
        make_policy([NodeGroup("any")], (PLAIN,)), *[job(f"j{i}", 5.0 * i, 600.0, cpu_m=1000) for i in range(60)]
    )
    story.world.cloud.arranged.append(Shows(share=250.0))
    story.play(200)
    most = max(
        sum(pod.requests.cpu_m for pod in result.snapshot.cluster.pods if pod.node == node.name)
        for result in story.seen
        for node in result.snapshot.cluster.nodes
    )
    assert most <= 4000
    problems = {problem.what for result in story.seen for problem in result.snapshot.cluster.problems}
    assert len(problems) == 1
    assert "says 1,000 cores, flavour plain has 4 cores" in problems.pop()
    story.play(4 * HOUR).assert_over(60)
