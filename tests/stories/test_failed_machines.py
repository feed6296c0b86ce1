"""A machine that failed and works all the same: no pod is killed by its delete, and it is not paid for without end."""

from __future__ import annotations

import msgspec

from htas.model.claims import ClaimState
from htas.model.outcomes import Action, Outcome
from htas.model.pods import Phase
from htas.model.policy import NodeGroup, Workload
from htas.model.reasons import Kept, OutcomeReason
from htas.ports import TransientError
from htas.sandbox.cloud import Shows
from htas.sandbox.workload import Arrival
from tests.builders import make_flavour, make_pod, make_policy
from tests.stories.play import Story, job, service

LONG_S = 9000.0
GPU = "nvidia.com/gpu"


def gpu_job() -> Arrival:
    arrival = job("train")
    asked = msgspec.structs.replace(arrival.task.requests, extended=((GPU, 1),))
    return msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, requests=asked))


def kept_in_use(story: Story) -> list[Outcome]:
    found = [each for result in story.seen for each in result.outcomes]
    return [each for each in found if (each.action, each.reason) == (Action.DELETE, OutcomeReason.PODS_RUN)]


def states(story: Story) -> list[ClaimState]:
    return [claim.state for claim in story.store.claims()]


def test_a_machine_in_error_whose_node_was_silent_for_a_minute_stays() -> None:
    story = Story(make_policy([NodeGroup("any", Workload.ANY)]), service("web", 1)).play(200)
    [name] = story.nodes
    [machine] = story.world.cloud.instances()
    story.world.cloud.fail(machine.id)
    story.play(300)
    story.world.cluster.set_ready(name, False)
    story.play(360)
    story.world.cluster.set_ready(name, True)
    story.play(3000)
    assert states(story) == [ClaimState.READY]
    assert [each.reason for each in story.seen[-1].plan.kept] == [Kept.NOT_UNDERUTILIZED]
    assert (story.nodes, kept_in_use(story), story.world.ledger.restarts) == ([name], [], 0)


def test_a_machine_that_failed_while_unlisted_is_drained_like_others_once_both_are_back() -> None:
    """Its pods hold its delete, so it had been closed to new pods and paid for without end."""
    small = make_flavour("small", "2", "8Gi", "0.1")
    large = make_flavour("large", "16", "64Gi", "1")
    work = [job(f"job-{i}", at_s=310 + 25.0 * i, runs_s=15.0, cpu_m=1500) for i in range(10)]
    first = job("first", runs_s=2000.0, cpu_m=12_000)
    story = Story(make_policy([NodeGroup("any", Workload.ANY)], (small, large)), first, *work).play(300)
    [name] = story.nodes
    [machine] = story.world.cloud.instances()
    story.world.cloud.unlist(machine.id)
    story.world.cluster.set_ready(name, False)
    story.play(450)
    assert ClaimState.FAILED in states(story)
    [failed] = [node for node in story.world.cluster.observe().nodes if node.name == name]
    assert failed.is_unschedulable, "no scheduler may put pods there"
    story.world.cloud.list_again(machine.id)
    story.world.cluster.set_ready(name, True)
    story.play(600)
    [back] = [claim for claim in story.store.claims() if claim.node == name]
    assert back.state is ClaimState.READY
    assert back.message.startswith("in use again: pod default/first"), back.message
    assert len(kept_in_use(story)) == 1, "it is reported once"
    [opened] = [node for node in story.world.cluster.observe().nodes if node.name == name]
    assert not opened.is_unschedulable
    story.play(LONG_S).assert_over(11)
    assert (story.world.ledger.restarts, story.world.cloud.instances()) == (0, ())


def test_no_scheduler_puts_pods_on_a_failed_machine_and_one_that_was_quicker_keeps_it_in_use() -> None:
    """The cloud refuses deletes: a machine whose GPU never came had been open for ever, and held by whoever came."""
    gpus = make_flavour("gpu", "8", "32Gi", "2", extended={GPU: 2})
    story = Story(make_policy([NodeGroup("any", Workload.ANY)], (gpus,)), gpu_job())
    story.world.cloud.shows = Shows(devices_after_s=None)
    story.play(900)
    story.world.cloud.faults.refuse("delete", TransientError("nova is away"))
    story.play(1000)
    [claim] = [each for each in story.store.claims() if each.state is ClaimState.FAILED]
    [node] = [each for each in story.world.cluster.observe().nodes if each.name == claim.node]
    assert (node.is_ready, node.is_unschedulable) == (True, True)
    theirs = make_pod("theirs", node=node.name, phase=Phase.RUNNING, scheduler="default-scheduler")
    story.world.cluster.add_pod(theirs)
    story.world.cloud.faults.refuse("delete", None)
    story.play(1100)
    [back] = [each for each in story.store.claims() if each.id == claim.id]
    assert back.state is ClaimState.READY
    assert len(kept_in_use(story)) == 1
    [node] = [each for each in story.world.cluster.observe().nodes if each.name == claim.node]
    assert not node.is_unschedulable
    story.world.cluster.lose_pods(node.name)
    story.play(3000)
    assert claim.id not in {each.id for each in story.store.claims()}, "it goes as any empty one"
    assert story.world.ledger.killed_by_release == 0
