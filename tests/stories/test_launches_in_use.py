"""Launches that come into use and fail soon, whose owners change each time, or that only the journal knows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from htas.daemon.loops.cycle import CycleResult
from htas.model.claims import ClaimState
from htas.model.nodes import Node
from htas.model.pods import Owner, Phase
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Rescale, Workload
from htas.sandbox.world import World
from tests.builders import make_pod
from tests.laws.test_launch_laws import JournalAlone
from tests.stories.play import GIB, Story, job, service
from tests.stories.test_unused_launches import (
    HOUR,
    OtherKubelets,
    gone_in_a_moment,
    launched_at,
    most_within_an_hour,
    policy,
    story_of,
    tainted,
    told,
    wide,
)


def bring_down(story: Story, after_s: float, most: int = 1000) -> None:
    """The first pod that starts on a machine brings it down so long afterwards; at most so many machines."""
    known: set[str] = set()

    def look(result: CycleResult) -> None:
        pods = result.snapshot.cluster.pods
        in_use = {pod.node for pod in pods if pod.started_at is not None and pod.is_work}
        for node in result.snapshot.cluster.nodes:
            if node.name in in_use and node.name not in known and len(known) < most:
                known.add(node.name)
                vanish = partial(vanish_if_there, story.world, node.provider_id.removeprefix("sandbox:///"))
                story.world.queue.after(after_s, vanish)

    story.daemon.listeners.append(look)


def vanish_if_there(world: World, instance: str) -> None:
    if any(each.id == instance for each in world.cloud.instances()):
        world.cloud.vanish(instance)


def test_a_pod_that_brings_its_machine_down_as_it_starts_has_three_within_an_hour() -> None:
    """It had 45: each was used for a second."""
    story = Story(policy(), wide("panics"))
    bring_down(story, 1.0)
    story.play(4 * HOUR)
    assert most_within_an_hour(story) == 3
    assert len(launched_at(story)) >= 9, "it is tried again"
    messages = [item.message for result in story.seen for item in result.plan.unplaced]
    assert any("s after its pod started: the machine vanished from the cloud" in message for message in messages)


def test_a_machine_that_fails_after_it_has_served_is_replaced_at_once() -> None:
    story = Story(policy(), wide("web"))
    bring_down(story, 1400.0)
    story.play(4 * HOUR)
    assert told(story).isdisjoint({Unplaced.BACKING_OFF, Unplaced.TOO_MANY_LAUNCHES})


def test_of_many_machines_one_that_fails_is_replaced_at_once() -> None:
    story = Story(policy(), service("web", 20, requests=Resources(500, 12 * GIB, 0, 1)))
    bring_down(story, 300.0, most=3)
    story.play(HOUR)
    assert len(launched_at(story)) == 23
    assert told(story).isdisjoint({Unplaced.BACKING_OFF, Unplaced.TOO_MANY_LAUNCHES})


def test_jobs_of_seconds_have_used_their_machines() -> None:
    """Each machine vanishes a moment after its job is done: ten jobs have ten."""
    story = Story(policy(), *(job(f"short-{i}", at_s=300.0 * i, runs_s=3.0, gib=12.0) for i in range(10)))
    bring_down(story, 5.0)
    story.play(HOUR)
    assert story.world.ledger.finished == 10
    assert len(launched_at(story)) == 10
    assert told(story).isdisjoint({Unplaced.BACKING_OFF, Unplaced.TOO_MANY_LAUNCHES})


# Owners that change each time.


def retried(count: int, every_s: float, namespace: str = "default") -> tuple[tuple[Arrival, ...], tuple[Rescale, ...]]:
    """A pod that is deleted and made again, each time with a request that is larger and under another name."""
    arrivals = tuple(
        service(
            f"retry-{i}",
            1,
            at_s=every_s * i,
            requests=Resources(500, 12 * GIB + i * 2**20, 0, 1, (("nvidia.com/gpu", 1),)),
            template="Workflow/retry",
            namespace=namespace,
        )
        for i in range(count)
    )
    return arrivals, tuple(Rescale(a.at_s + every_s - 1, namespace, a.task.name, 0) for a in arrivals)


def gpus_vanish(world: World, node: Node) -> Node:
    """As soon as a pod may run there."""
    if node.flavour == "gpu":
        world.queue.after(20.0, partial(vanish_if_there, world, node.provider_id.removeprefix("sandbox:///")))
    return node


def gpu_launches(story: Story) -> list[float]:
    return [rental.started_at - story.start for rental in story.world.ledger.rentals if rental.flavour == "gpu"]


def test_a_pod_whose_request_grows_with_each_retry_has_twelve_machines_within_an_hour() -> None:
    """It had 36: each pod was of another owner. Others of its namespace that are at work go on; so do others elsewhere."""
    arrivals, rescales = retried(60, 100.0)
    story = story_of(wide("steady"), gpus_vanish, "plain", "gpu")
    elsewhere = service("elsewhere", 1, at_s=3000.0, requests=Resources(500, 12 * GIB, 0, 1), namespace="other")
    grows = Rescale(3000.0, "default", "steady", 3)
    newcomer = wide("newcomer")
    newcomer = msgspec.structs.replace(newcomer, at_s=3100.0)
    story.world.load(Workload("retries", (*arrivals, elsewhere, newcomer), (*rescales, grows)))
    story.play(3500.0)
    assert len(gpu_launches(story)) <= 12
    [item] = [each for each in story.seen[-1].plan.unplaced if each.pod.startswith("default/newcomer")]
    assert item.reason is Unplaced.TOO_MANY_LAUNCHES
    said = (
        "12 machines were launched for pods of namespace default within an hour and none was used; the next not before"
    )
    assert item.message.startswith(said)
    placed = {pod.name.partition("-")[0] for pod in story.world.cluster.observe().pods if pod.started_at is not None}
    assert {"steady", "elsewhere"} <= placed
    assert sum(p.name.startswith("steady") for p in story.world.cluster.observe().pods if p.started_at is not None) == 3
    story.play(2 * HOUR)
    assert "newcomer" in {
        p.name.partition("-")[0] for p in story.world.cluster.observe().pods if p.started_at is not None
    }


def test_one_machine_for_many_owners_that_fails_is_one_launch_for_their_namespace() -> None:
    jobs = [job(name, runs_s=600.0, cpu_m=100, gib=0.5) for name in map("job-{}".format, "abcdefghijklmnopqrst")]
    story = story_of(jobs[0], None)
    story.world.load(Workload("jobs", tuple(jobs[1:])))
    bring_down(story, 20.0, most=1)
    story.play(1500.0)
    assert Unplaced.TOO_MANY_LAUNCHES not in told(story)
    assert story.world.ledger.finished == 20


# What the journal alone knows.


def blind(story: Story, instants: Iterable[float]) -> None:
    """Play, with a new daemon at each of these instants, and no history."""
    for at in instants:
        story.play(at).crash()


def test_restarts_without_history_forgive_nothing() -> None:
    """118 machines were launched in an hour."""
    story = story_of(wide("web"), tainted)
    story.store = JournalAlone(":memory:")
    story.crash()
    blind(story, (float(at) for at in range(61, 7200, 61)))
    assert most_within_an_hour(story) == 3


def test_launches_that_were_used_are_no_burden_after_a_restart_without_history() -> None:
    """The journal tells which launches are settled, of machines that are gone, too."""
    story = Story(policy())
    story.store = JournalAlone(":memory:")
    story.crash()
    story.world.load(Workload("jobs", tuple(job(f"job-{i}", at_s=300.0 * i, runs_s=30.0, gib=12.0) for i in range(8))))
    blind(story, (1500.0,))
    claims = story.store.claims_made_since(0.0)
    assert [claim.launched_for for claim in claims if claim.state is ClaimState.RELEASED] == [()] * 5
    story.play(HOUR)
    assert told(story).isdisjoint({Unplaced.BACKING_OFF, Unplaced.TOO_MANY_LAUNCHES})
    assert story.world.ledger.finished == 8


def test_what_is_in_use_is_known_after_a_restart_by_what_runs_there() -> None:
    story = Story(policy(), wide("web"))
    story.store = JournalAlone(":memory:")
    story.crash()
    blind(story, (400.0,))
    story.play(500.0)
    [launch] = story.seen[-1].plan.memory.launches.open.values()
    [since] = launch.in_use.values()
    [pod] = [pod for pod in story.world.cluster.observe().pods if pod.name.startswith("web")]
    assert since == pod.started_at
    story.play(1500.0)
    assert story.seen[-1].plan.memory.launches.open == {}
    assert [claim.launched_for for claim in story.store.claims()] == [()]


# What others put on new nodes, and outages.

MANAGER = Owner("InstanceManager", "default", "im-uid", None)


def seat_an_agent(world: World, node: Node) -> Node:
    """A controller of others puts a pod on each new node as it registers, and does not say that it is an agent."""

    def seat() -> None:
        if any(each.name == node.name for each in world.cluster.observe().nodes):
            name, now = f"im-{node.name}", world.clock.now()
            requests = Resources(500, GIB // 4, 0, 1)
            agent = make_pod(name, node=node.name, phase=Phase.RUNNING, scheduler="default-scheduler", created_at=now)
            world.cluster.add_pod(msgspec.structs.replace(agent, started_at=now, requests=requests, owner=MANAGER))

    world.queue.after(3.0, seat)
    return node


def test_a_pod_that_agents_leave_no_room_on_new_nodes_has_three_within_an_hour() -> None:
    """It had 60, and no reason was reported: each node was full of others' pods, and so no launch in vain."""
    wishes = service("wide", 1, requests=Resources(3800, 4 * GIB, 0, 1))
    story = story_of(wishes, seat_an_agent)
    story.play(3 * HOUR)
    assert most_within_an_hour(story) == 3
    assert Unplaced.TOO_MANY_LAUNCHES in told(story)


def test_services_that_an_outage_cost_a_machine_each_run_soon_after_it() -> None:
    """Each of 15 services had one machine, which failed: they waited for an hour, by the bound of their namespace."""
    arrivals = [wide(f"web-{letter * 3}") for letter in "abcdefghijklmno"]
    story = Story(policy(), *arrivals, cluster=OtherKubelets)
    cluster = story.world.cluster
    assert isinstance(cluster, OtherKubelets)

    def register(node: Node) -> Node:
        if story.world.clock.now() - story.start < 180.0:
            instance = node.provider_id.removeprefix("sandbox:///")
            story.world.queue.after(1.0, partial(vanish_if_there, story.world, instance))
        return node

    cluster.register = register
    story.play(1200.0)
    assert sum(pod.started_at is not None for pod in story.world.cluster.observe().pods) == 15


def test_neighbours_of_a_maker_of_ever_new_names_are_launched_for_at_once() -> None:
    """The maker had used up the bound of the namespace: a CronJob was 41 min late, a new revision 5 min."""
    arrivals, rescales = retried(60, 60.0)
    front = service("front-a", 1, requests=Resources(3000, 12 * GIB, 0, 1), template="Deployment/front")
    story = story_of(front, gpus_vanish, "plain", "gpu")
    cron = [job(f"backup-{i}", 1200.0 * i, 60.0, gib=12.0, template="CronJob/backup") for i in range(3)]
    rolled = service("front-b", 1, at_s=3300.0, requests=Resources(3100, 12 * GIB, 0, 1), template="Deployment/front")
    story.world.load(Workload("neighbours", (*arrivals, *cron, rolled), rescales))
    waited: dict[str, float] = {}

    def look(result: CycleResult) -> None:
        waited.update(
            (pod.name, result.snapshot.taken_at - pod.created_at)
            for pod in result.snapshot.cluster.pods
            if pod.node is None and pod.name.startswith(("backup", "front"))
        )

    story.daemon.listeners.append(look)
    story.play(HOUR)
    assert max(waited.values()) < 90
    assert len(gpu_launches(story)) <= 12


def test_restarts_without_history_forgive_nothing_to_25_owners_of_a_machine() -> None:
    """Twenty owners were in the journal: six machines were launched."""
    first, *others = (
        service(f"web-{a}{b}", 1, requests=Resources(100, GIB // 4, 0, 1)) for a in "abcde" for b in "abcde"
    )
    story = story_of(first, gone_in_a_moment)
    story.store = JournalAlone(":memory:")
    story.crash()
    story.world.load(Workload("others", tuple(others)))
    blind(story, (float(at) for at in range(61, 3600, 61)))
    assert len(launched_at(story)) == 3
