"""Machines that none of their pods come to use: a few are launched within an hour, whatever the cause."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from htas.model.holds import HoldReason
from htas.model.launches import Launches
from htas.model.nodes import Node
from htas.model.policy import NodeGroup, Policy, Timeouts
from htas.model.reasons import Kept, Unplaced
from htas.model.resources import Resources
from htas.sandbox.cloud import Boot, Chances
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.workload import Arrival, ControllerKind, Rescale, Task, Workload
from htas.sandbox.world import World
from tests.builders import constrained, make_flavour, make_policy, no_schedule
from tests.stories.play import GIB, Story, job, service

HOUR = 3600.0
MIB = 2**20
PLAIN = make_flavour("plain", "4", "16Gi", "0.20")
GPU = make_flavour("gpu", "4", "16Gi", "0.90", extended={"nvidia.com/gpu": 1})
DEARER = make_flavour("dearer", "8", "32Gi", "1.90", extended={"nvidia.com/gpu": 1})
ASKS_FOR_GPU = Resources(500, GIB, 0, 1, (("nvidia.com/gpu", 1),))

Registers = Callable[[World, Node], Node]
"""What becomes of a node as its kubelet registers it."""


class OtherKubelets(SandboxCluster):
    """A cluster whose kubelets register nodes otherwise than they were asked for."""

    register: Callable[[Node], Node] = staticmethod(lambda node: node)

    def add_node(self, node: Node) -> None:
        super().add_node(self.register(node))


def policy(*flavours: str, **overrides: object) -> Policy:
    known = {each.name: each for each in (PLAIN, GPU, DEARER)}
    return make_policy([NodeGroup("any")], [known[name] for name in flavours or ("plain",)], **overrides)


def story_of(arrival: Arrival, registers: Registers | None = None, *flavours: str, **overrides: object) -> Story:
    story = Story(policy(*flavours, **overrides), arrival, cluster=OtherKubelets)
    if registers is not None:
        cluster = story.world.cluster
        assert isinstance(cluster, OtherKubelets)
        cluster.register = partial(registers, story.world)
    return story


def without_devices(world: World, node: Node) -> Node:
    return msgspec.structs.replace(node, allocatable=msgspec.structs.replace(node.allocatable, extended=()))


def smaller(world: World, node: Node) -> Node:
    size = node.allocatable
    return msgspec.structs.replace(node, allocatable=msgspec.structs.replace(size, memory_bytes=size.memory_bytes // 2))


def tainted(world: World, node: Node) -> Node:
    return msgspec.structs.replace(node, taints=(no_schedule("vendor/agent"),))


def cordoned(world: World, node: Node) -> Node:
    return msgspec.structs.replace(node, is_unschedulable=True)


def of_another_disk(world: World, node: Node) -> Node:
    return msgspec.structs.replace(node, labels={**node.labels, "disk": "none"})


def gone_in_a_moment(world: World, node: Node) -> Node:
    instance = node.provider_id.removeprefix("sandbox:///")
    world.queue.after(1.0, partial(world.cloud.vanish, instance))
    return node


def launched_at(story: Story) -> list[float]:
    return [rental.started_at - story.start for rental in story.world.ledger.rentals]


def most_within_an_hour(story: Story) -> int:
    """The most machines launched in any hour."""
    at = launched_at(story)
    return max(sum(first <= each < first + HOUR for each in at) for first in at)


def told(story: Story) -> set[Unplaced]:
    return {item.reason for result in story.seen for item in result.plan.unplaced}


def wide(name: str, **task: Any) -> Arrival:
    """A service whose pod needs most of a machine."""
    return service(name, 1, requests=Resources(500, 12 * GIB, 0, 1), **task)


def with_gpu(name: str, replicas: int = 1) -> Arrival:
    return service(name, replicas, requests=ASKS_FOR_GPU)


OF_A_DISK = constrained(node_selector=(("disk", "ssd"),))


@pytest.mark.parametrize(
    ("arrival", "registers", "flavours"),
    [
        pytest.param(with_gpu("train"), without_devices, ("gpu",), id="its device plugin never registers"),
        pytest.param(wide("web"), tainted, ("plain",), id="it bears a taint that nobody expects"),
        pytest.param(wide("web"), cordoned, ("plain",), id="it registers cordoned"),
        pytest.param(wide("web"), gone_in_a_moment, ("plain",), id="it vanishes as it registers"),
        pytest.param(wide("web", scheduler="volcano"), None, ("plain",), id="its pod's own scheduler declines it"),
    ],
)
def test_three_machines_are_launched_for_a_pod_within_an_hour(
    arrival: Arrival, registers: Registers | None, flavours: tuple[str, ...]
) -> None:
    """Up to 60 an hour were."""
    story = story_of(arrival, registers, *flavours).play(6 * HOUR)
    assert 2 <= most_within_an_hour(story) <= 3
    assert len(launched_at(story)) >= 6, "it is tried again"
    story.assert_whole()


@pytest.mark.parametrize("boot", [Boot.FAILS, Boot.NEVER_REGISTERS])
def test_so_it_is_with_machines_that_fail(boot: Boot) -> None:
    chances = Chances(boot_failure=float(boot is Boot.FAILS), never_registers=float(boot is Boot.NEVER_REGISTERS))
    story = Story(policy(), wide("web"), chances=chances).play(6 * HOUR)
    assert most_within_an_hour(story) == 3
    assert Unplaced.TOO_MANY_LAUNCHES in told(story)


@pytest.mark.parametrize("registers", [without_devices, gone_in_a_moment, None], ids=["bare", "vanishes", "no boot"])
def test_so_it_is_with_machines_for_a_groups_minimum(registers: Registers | None) -> None:
    """One that vanished once it was Ready was launched again at once, 40 an hour."""
    only = make_policy([NodeGroup("any", min_nodes=2)], [GPU])
    story = Story(only, cluster=OtherKubelets, chances=Chances(boot_failure=float(registers is None)))
    cluster = story.world.cluster
    assert isinstance(cluster, OtherKubelets)
    cluster.register = partial(registers, story.world) if registers is not None else cluster.register
    story.play(4 * HOUR)
    assert most_within_an_hour(story) <= 2 * 3
    assert len(launched_at(story)) >= 2 * 6, "it is tried again"
    story.world.cloud.chances = Chances()
    cluster.register = OtherKubelets.register
    story.play(6 * HOUR)
    assert len(story.nodes) == 2


def test_of_a_flavour_that_shows_less_than_promised_one_is_launched() -> None:
    """What its node offers is learned, and no machine of it would hold the pod."""
    story = story_of(wide("web"), smaller).play(3 * HOUR)
    assert len(launched_at(story)) == 1
    assert {item.reason for item in story.seen[-1].plan.unplaced} == {Unplaced.NO_FLAVOUR_FITS}


def test_group_labels_that_nodes_do_not_get_count_too() -> None:
    story = story_of(wide("web", constraints=OF_A_DISK), of_another_disk)
    story.policy = make_policy([NodeGroup("any", labels={"disk": "ssd"})], [PLAIN])
    story.daemon.adopt(story.policy)
    story.play(3 * HOUR)
    assert most_within_an_hour(story) == 3


def test_the_bound_is_configured() -> None:
    story = story_of(wide("web"), tainted, max_launches_per_pod=1).play(3 * HOUR)
    assert most_within_an_hour(story) == 1
    [item] = story.seen[-1].plan.unplaced
    assert item.message.startswith(
        "a machine was launched for it within an hour and it runs on none (the last: plain: "
    )


def test_what_is_told_names_the_cause_and_the_time() -> None:
    story = story_of(with_gpu("train"), without_devices, "gpu").play(HOUR)
    [item] = story.seen[-1].plan.unplaced
    assert item.reason is Unplaced.TOO_MANY_LAUNCHES
    assert "(the last: gpu: not initialized within 900 s, without nvidia.com/gpu)" in item.message
    assert item.message.endswith("the next not before 2026-01-05T01:00:00Z")


def test_another_flavour_is_launched_at_once() -> None:
    """Only nodes of the cheaper flavour come without their device."""

    def register(world: World, node: Node) -> Node:
        return without_devices(world, node) if node.flavour == "gpu" else node

    story = story_of(with_gpu("train"), register, "gpu", "dearer").play(1100)
    assert [rental.flavour for rental in story.world.ledger.rentals] == ["gpu", "dearer"]
    assert told(story) == set()
    [pod] = [pod for pod in story.world.cluster.observe().pods if pod.node is not None]
    assert pod.name.startswith("train")


def test_others_of_the_same_demands_are_launched_for() -> None:
    """What is wrong with machines for one owner's pods is not held against another's."""
    story = story_of(wide("web"), tainted).play(HOUR)
    assert len(launched_at(story)) == 3
    story.world.load(Workload("others", (wide("api"),)))
    story.play(2 * HOUR - 60)
    assert len(launched_at(story)) == 3 + 3 + 3


def test_pods_that_are_made_again_are_the_same_pods() -> None:
    """A controller gives them other names, and uids: five pods in a row, none of which ran."""
    again = tuple(
        Rescale(at, "default", "web", replicas)
        for i in range(5)
        for at, replicas in ((300 * i + 240, 0), (300 * i + 270, 1))
    )
    story = story_of(wide("web"), tainted)
    story.world.load(Workload("again", (), again))
    story.play(HOUR)
    assert len({key for result in story.seen for launch in result.plan.launch for key in launch.pods}) >= 2
    assert len(launched_at(story)) == 3


@pytest.mark.parametrize("boot", [Boot.WELL, Boot.REGISTERS_LATE])
@pytest.mark.parametrize("again_at_s", [690.0, 760.0, 900.0, 1500.0])
def test_a_service_that_is_scaled_in_while_its_machines_boot_is_scaled_out_at_once_later(
    again_at_s: float, boot: Boot
) -> None:
    """It ran 2 of 8 pods for 45 minutes: three machines were launched that no pod came to use."""
    small = make_flavour("small", "2", "4Gi", "0.05")
    story = Story(make_policy([NodeGroup("any")], (small,)), service("web", 2, requests=Resources(1500, GIB, 0, 1)))
    story.play(590)
    for _ in range(4):
        story.world.cloud.arrange_boot(boot)
    out = [Rescale(600 + 21.0 * i, "default", "web", 3 + i) for i in range(4)]
    again = Rescale(again_at_s, "default", "web", 8)
    story.world.load(Workload("again", (), rescales=(*out, Rescale(672, "default", "web", 2), again)))
    story.play(again_at_s + 900)
    pods = [pod for pod in story.world.cluster.observe().pods if pod.name.startswith("web")]
    assert [pod.started_at is not None for pod in pods] == [True] * 8
    assert told(story).isdisjoint({Unplaced.TOO_MANY_LAUNCHES, Unplaced.BACKING_OFF})


def test_an_owner_of_many_pods_has_as_many_machines_as_it_uses() -> None:
    """And where each tenth machine fails to boot, others take their places."""
    story = Story(policy(), service("web", 40, requests=Resources(500, 12 * GIB, 0, 1)))
    for i in range(40):
        story.world.cloud.arrange_boot(Boot.FAILS if i % 10 == 0 else Boot.WELL)
    story.play(HOUR)
    pods = story.world.cluster.observe().pods
    assert sum(pod.node is not None for pod in pods) == 40
    assert len(launched_at(story)) == 44
    assert story.seen[-1].plan.memory.launches == Launches()


def test_a_restart_forgives_nothing() -> None:
    story = story_of(wide("web"), tainted)
    for at in range(60, 3600, 60):
        story.play(at)
        story.crash()
    assert len(launched_at(story)) == 3


def test_small_pods_on_machines_without_their_device_are_no_excuse() -> None:
    """Pods without a GPU fill each machine that has come without its own, and so it is in use: 18 more came in an hour."""
    story = story_of(with_gpu("train"), without_devices, "gpu")
    small = [job(f"small-{i}", 60.0 * i, runs_s=600, cpu_m=500, gib=4) for i in range(60)]
    story.world.load(Workload("small", tuple(small)))
    story.play(HOUR)
    launches = [launch for result in story.seen for launch in result.plan.launch]
    assert sum(any(pod.startswith("default/train") for pod in launch.pods) for launch in launches) == 3


# Pods that another scheduler declines.


def declined(name: str = "executor", replicas: int = 2) -> Arrival:
    task = Task(name, Resources(500, 6 * GIB, 0, 1), labels={"app": name}, scheduler="volcano")
    return Arrival(0.0, task, ControllerKind.REPLICA_SET, replicas)


def test_a_machine_for_pods_that_their_scheduler_declines_is_deleted() -> None:
    """It was held for ever. A minute to come, ten of `timeouts.unused`, then those of an empty node."""
    story = Story(policy(), declined()).play(640)
    assert [kept.reason for kept in story.seen[-1].plan.kept] == [Kept.NEEDED]
    assert {hold.reason for hold in story.seen[-1].plan.nominate} == {HoldReason.OTHER_SCHEDULER}
    story.play(800)
    assert story.nodes == []
    assert {item.reason for item in story.seen[-1].plan.unplaced} == {Unplaced.DECLINED}
    [message] = {item.message for item in story.seen[-1].plan.unplaced}
    assert message.startswith("had room for 600 s and its scheduler, volcano, did not bind it")
    assert len(launched_at(story)) == 1
    story.assert_whole()


def test_it_is_launched_for_ever_more_seldom() -> None:
    story = Story(policy(), declined()).play(12 * HOUR)
    between = [later - earlier for earlier, later in pairwise(launched_at(story))]
    assert between == sorted(between), "pauses of 10, 20, then 30 min"
    assert between[-1] >= 2400
    assert most_within_an_hour(story) <= 3


def test_a_short_patience_is_configured() -> None:
    story = Story(policy(timeouts=Timeouts(unused_s=120.0)), declined()).play(300)
    assert story.nodes == []


def test_pods_that_their_scheduler_takes_after_all_are_no_decliners() -> None:
    """Its queue has room again in the ninth minute, for one of the two; the other has ten minutes from then on."""
    story = Story(policy(), declined()).play(540)
    [node] = story.nodes
    first, second = story.world.cluster.observe().pods
    story.world.cluster.bind(first, node)
    story.play(1100)
    assert told(story).isdisjoint({Unplaced.DECLINED})
    story.play(1300)
    assert {item.pod for item in story.seen[-1].plan.unplaced} == {second.key}
    assert story.nodes == [node], "it is in use"


def test_room_on_other_nodes_is_not_kept_for_them_either() -> None:
    """A node that a job has left goes, whoever could use it."""
    story = Story(policy(), job("first", runs_s=300, cpu_m=500, gib=1))
    story.world.load(Workload("declined", (msgspec.structs.replace(declined(replicas=1), at_s=120.0),)))
    story.play(1000)
    assert story.nodes == []
    assert len(launched_at(story)) == 1


def test_pods_of_ours_are_not_held_up_by_those_that_decline() -> None:
    story = Story(policy(), declined(replicas=1)).play(800)
    story.world.load(Workload("ours", (wide("web"),)))
    story.play(1000)
    [pod] = [pod for pod in story.world.cluster.observe().pods if pod.node is not None]
    assert pod.name.startswith("web")
