"""Whatever clouds, nodes, device plugins and other schedulers do: launches are bounded, nothing is killed, bills are right.

With limits.maxLaunchesPerPod = m, within any hour: at most m machines on which no work starts are launched for a pod. For
an owner of r pods that bring their machines down before these have served, machines are launched (m + 1) r - 1 times at
most: m times for the first pod, and m for each machine in use, which may fail as well. At most 4 m launches for pods of
a namespace come to nothing, whatever their owners are called, and one more for each other maker that is at work at the
same time. So it is where the daemon restarts again and again and has its journal alone.

To add a fault, write what it does to the node that registers (`FAULTS`) or to the machine that boots (`BOOTS`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import msgspec
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import CycleResult
from htas.model.nodes import Node
from htas.model.policy import NodeGroup
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.provision.launch_limits import OWNERS_OF_A_NAMESPACE
from htas.ports import TransientError
from htas.sandbox.cloud import Boot
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.workload import Arrival, ControllerKind, Rescale, Task, Workload
from htas.sandbox.world import World
from tests.builders import constrained, make_flavour, make_policy, no_schedule
from tests.stories.play import GIB, Story, batch, service

HOUR_S = 3600.0
PLAYED_S = 1.5 * HOUR_S
GPU = "nvidia.com/gpu"
UNSHRUNK = (Phase.explicit, Phase.generate)
"""An example takes seconds: what fails is shown as it was found."""
FLAVOURS = (
    make_flavour("plain", "4", "16Gi", "0.20"),
    make_flavour("gpu", "4", "16Gi", "0.90", extended={"nvidia.com/gpu": 1}),
    make_flavour("large", "8", "32Gi", "1.90", extended={"nvidia.com/gpu": 2}),
)
DISK = constrained(node_selector=(("disk", "ssd"),))

Fault = Callable[[World, Node], Node]


def _without_devices(node: Node) -> Node:
    return msgspec.structs.replace(node, allocatable=msgspec.structs.replace(node.allocatable, extended=()))


def _devices_come_after(after_s: float, world: World, node: Node) -> Node:
    extended = node.allocatable.extended

    def come(node: Node) -> Node:
        return msgspec.structs.replace(node, allocatable=msgspec.structs.replace(node.allocatable, extended=extended))

    cluster = world.cluster
    assert isinstance(cluster, Misbehaving)
    world.queue.after(after_s, partial(cluster.change, node.name, come))
    return _without_devices(node)


def _smaller(world: World, node: Node) -> Node:
    size = node.allocatable
    less = msgspec.structs.replace(size, cpu_m=size.cpu_m * 3 // 4, memory_bytes=size.memory_bytes // 2)
    return msgspec.structs.replace(node, allocatable=less)


def _taint_for(seconds: float | None, world: World, node: Node) -> Node:
    taint = no_schedule("vendor/agent")
    if seconds is not None:
        world.queue.after(seconds, partial(world.cluster.take_off, node.name, (taint,)))
    return msgspec.structs.replace(node, taints=(*node.taints, taint))


def _of_another_disk(world: World, node: Node) -> Node:
    return msgspec.structs.replace(node, labels={**node.labels, "disk": "none"})


def _vanishes_after(after_s: float, world: World, node: Node) -> Node:
    instance = node.provider_id.removeprefix("sandbox:///")

    def vanish() -> None:
        if any(each.id == instance for each in world.cloud.instances()):
            world.cloud.vanish(instance)

    world.queue.after(after_s, vanish)
    return node


def _starts_nothing(world: World, node: Node) -> Node:
    world.cluster.faults.starts_nothing.add(node.name)
    return node


FAULTS: Mapping[str, Fault] = {
    "well": lambda world, node: node,
    "devices after a minute": partial(_devices_come_after, 60.0),
    "devices after ten minutes": partial(_devices_come_after, 600.0),
    "no devices": lambda world, node: _without_devices(node),
    "smaller": _smaller,
    "a taint for a while": partial(_taint_for, 40.0),
    "a taint for ever": partial(_taint_for, None),
    "other labels": _of_another_disk,
    "vanishes at once": partial(_vanishes_after, 1.0),
    "vanishes after a minute": partial(_vanishes_after, 90.0),
    "starts nothing": _starts_nothing,
}
"""What becomes of a node as it registers."""
BOOTS = {boot.value: boot for boot in (Boot.FAILS, Boot.NEVER_REGISTERS, Boot.REGISTERS_LATE, Boot.REGISTERS_BARE)}
"""What becomes of a machine before that."""


class JournalAlone(SqliteStore):
    """A store whose history can be neither written nor read."""

    def _away(self, *_: object, **__: object) -> Any:
        raise TransientError("history is away")

    add_profile = profile = add_runs = runs = add_cycle = cycles = _away


class Misbehaving(SandboxCluster):
    """A cluster whose nodes register with the faults of a list, one after another, again and again."""

    register: Callable[[Node], Node] = staticmethod(lambda node: node)

    def add_node(self, node: Node) -> None:
        super().add_node(self.register(node))

    def change(self, name: str, change: Callable[[Node], Node]) -> None:
        """Something changes a node, if it is still there."""
        if name in self._nodes:
            self._set_node(change(self._nodes[name]))


@dataclass(frozen=True)
class Course:
    """Faults of machines in the order of their launches, and the work."""

    faults: tuple[str, ...]
    arrivals: tuple[Arrival, ...]
    rescales: tuple[Rescale, ...]
    takes_after_s: float | None
    """The other scheduler binds its pods so long after they have room; None: it declines them."""
    restarts_every_s: float | None = None
    """Another daemon begins so often, with the journal alone; None: one goes on."""


def courses(faults: st.SearchStrategy[str]) -> st.SearchStrategy[Course]:
    return st.builds(
        lambda faults, work, again, takes_after_s, restarts_every_s: Course(
            tuple(faults), tuple(work), _again(work) if again else (), takes_after_s, restarts_every_s
        ),
        st.lists(faults, min_size=1, max_size=6),
        st.lists(_arrivals(), min_size=1, max_size=4, unique_by=lambda arrival: arrival.task.name),
        st.booleans(),
        st.sampled_from((None, None, 60.0)),
        RESTARTS,
    )


RESTARTS = st.sampled_from((None, None, 70.0, 400.0))


def _arrivals() -> st.SearchStrategy[Arrival]:
    return st.builds(
        _arrival,
        st.sampled_from(("train", "web", "etl", "api", "small")),
        st.integers(1, 4),
        st.sampled_from((0.0, 0.0, 100.0, 1000.0)),
        st.sampled_from(("htas", "htas", "volcano")),
        st.sampled_from((0, 0, 10)),
        st.booleans(),
    )


def _arrival(name: str, replicas: int, at_s: float, scheduler: str, priority: int, asks_for_disk: bool) -> Arrival:
    requests, runs_s = {
        "train": (Resources(1000, 4 * GIB, 0, 1, ((GPU, 1),)), 1200.0),
        "web": (Resources(1500, 10 * GIB, 0, 1), None),
        "etl": (Resources(3500, 4 * GIB, 0, 1), 300.0),
        "api": (Resources(3500, 14 * GIB, 0, 1), None),
        "small": (Resources(100, GIB // 2, 0, 1), 200.0),
    }[name]
    fields: dict[str, Any] = {"runs_s": runs_s, "scheduler": scheduler, "priority": priority}
    if runs_s is not None:
        fields = batch({**fields, "stated_s": runs_s})
    if asks_for_disk:
        fields["constraints"] = DISK
    controller = ControllerKind.REPLICA_SET if runs_s is None else ControllerKind.JOB
    return Arrival(at_s, Task(name, requests, **fields), controller, replicas)


def _again(work: list[Arrival]) -> tuple[Rescale, ...]:
    """Services are scaled to nothing and back, so that their pods come again under other names."""
    lasting = [arrival for arrival in work if arrival.controller is ControllerKind.REPLICA_SET]
    steps = [(at, arrival) for arrival in lasting for at in (2000.0, 3000.0, 4000.0)]
    return tuple(
        Rescale(at + after, arrival.task.namespace, arrival.task.name, replicas)
        for at, arrival in steps
        for after, replicas in ((0.0, 0), (30.0, arrival.replicas))
    )


def play(story: Story, restarts_every_s: float | None, listener: Callable[[CycleResult], None]) -> None:
    """Play a story, with restarts that know the journal alone."""
    if restarts_every_s is not None:
        story.store = JournalAlone(":memory:")
        story.crash()
    story.daemon.listeners.append(listener)
    at = restarts_every_s or PLAYED_S
    while at < PLAYED_S:
        story.play(at).crash()
        story.daemon.listeners.append(listener)
        at += restarts_every_s or PLAYED_S
    story.play(PLAYED_S)


class Played:
    """A course, played to its end."""

    def __init__(self, course: Course) -> None:
        policy = make_policy([NodeGroup("any", labels={"disk": "ssd"})], FLAVOURS)
        self.story = Story(policy, cluster=Misbehaving)
        world = self.story.world
        self._course = course
        self._registered = 0
        cluster = world.cluster
        assert isinstance(cluster, Misbehaving)
        cluster.register = self._register
        for i in range(200):
            boot = course.faults[i % len(course.faults)]
            world.cloud.arrange_boot(BOOTS.get(boot, Boot.WELL))
        world.load(Workload("course", course.arrivals, course.rescales))
        play(self.story, course.restarts_every_s, self._take)

    def _register(self, node: Node) -> Node:
        """The fault of the machine, by the order in which it was launched."""
        instance = node.provider_id.removeprefix("sandbox:///vm-")
        fault = self._course.faults[(int(instance) - 1) % len(self._course.faults)]
        return FAULTS.get(fault, FAULTS["well"])(self.story.world, node)

    def _take(self, result: CycleResult) -> None:
        """The other scheduler binds what has room, a while later and one after another."""
        world, after_s = self.story.world, self._course.takes_after_s
        for hold in result.plan.nominate if after_s is not None else ():
            world.queue.after(after_s or 0.0, partial(self._bind, hold.pod, hold.node))

    def _bind(self, key: str, node: str) -> None:
        cluster = self.story.world.cluster
        view = cluster.observe()
        pod = next((pod for pod in view.pods if pod.key == key and pod.node is None), None)
        ready = next((each for each in view.nodes if each.name == node and each.is_ready), None)
        if pod is not None and ready is not None and pod.scheduler != "htas":
            used = [each.requests for each in view.pods if each.node == node]
            if (sum(used, start=Resources()) + pod.requests).fits_in(ready.allocatable):
                cluster.bind(pod, node)

    def unused_launches(self) -> dict[str, list[float]]:
        """By pod when machines were launched for it on which no work has started."""
        used = {claim for result in self.story.seen for claim in _in_use(result.snapshot)}
        found: dict[str, list[float]] = defaultdict(list)
        for result in self.story.seen:
            for launch in result.plan.launch:
                for pod in launch.pods if launch.claim not in used else ():
                    found[pod].append(result.snapshot.taken_at)
        return found


def _in_use(snapshot: ClusterSnapshot) -> set[str]:
    """Claims on whose nodes work has started."""
    nodes = {pod.node for pod in snapshot.cluster.pods if pod.started_at is not None and pod.is_work}
    return {claim.id for claim in snapshot.claims if claim.node in nodes}


def most_within_an_hour(at: list[float]) -> int:
    return max((sum(first <= each < first + HOUR_S for each in at) for first in at), default=0)


@settings(max_examples=12, deadline=None, derandomize=True, phases=UNSHRUNK)
@given(courses(st.sampled_from([*FAULTS, *BOOTS])))
def test_so_many_machines_are_launched_for_a_pod_within_an_hour(course: Course) -> None:
    played = Played(course)
    for pod, at in played.unused_launches().items():
        assert most_within_an_hour(at) <= played.story.policy.max_launches_per_pod, pod
    ledger = played.story.world.ledger
    assert ledger.killed_by_release == 0, "a pod is evicted before its machine is deleted"


@settings(max_examples=6, deadline=None, derandomize=True, phases=UNSHRUNK)
@given(courses(st.sampled_from([*FAULTS, *BOOTS])))
def test_bills_are_what_the_cloud_charges(course: Course) -> None:
    story = Played(course).story
    now = story.world.clock.now()
    charged = {
        rental.claim: (rental.started_at, rental.ended_at if rental.ended_at is not None else now)
        for rental in story.world.ledger.rentals
    }
    billed = {
        bill.claim: (bill.started_at, bill.ended_at if bill.ended_at is not None else now)
        for bill in story.store.bills(story.start)
    }
    assert billed == charged


# Machines that their pods bring down, and pods whose owners change each time.


class BroughtDown:
    """Services whose pods each bring their machine down so long after the first of them has started on it."""

    def __init__(self, after_s: float, replicas: int, apart_s: float, restarts_every_s: float | None) -> None:
        policy = make_policy([NodeGroup("any")], FLAVOURS[:1])
        self.story = Story(policy)
        self._after_s = after_s
        self._known: set[str] = set()
        grows = tuple(Rescale(apart_s * i, "default", "web", i + 1) for i in range(1, replicas))
        self.story.world.load(Workload("course", (service("web", 1, requests=WHOLE),), grows))
        play(self.story, restarts_every_s, self._bring_down)

    def _bring_down(self, result: CycleResult) -> None:
        world, snapshot = self.story.world, result.snapshot
        used = _in_use(snapshot)
        for node in snapshot.cluster.nodes:
            if node.claim in used and node.name not in self._known:
                self._known.add(node.name)
                _vanishes_after(self._after_s, world, node)


WHOLE = Resources(500, 12 * GIB, 0, 1)
"""A machine holds one such pod."""


def tries(story: Story) -> list[float]:
    """When machines were launched: those of one plan are one try where they are for one owner."""
    return [result.snapshot.taken_at for result in story.seen if result.plan.launch]


@settings(max_examples=10, deadline=None, derandomize=True, phases=UNSHRUNK)
@given(st.floats(0.0, 900.0), st.integers(1, 4), st.sampled_from((0.0, 37.0, 300.0)), RESTARTS)
def test_machines_that_fail_soon_after_their_pods_start_are_launched_so_many_times_for_each_pod(
    after_s: float, replicas: int, apart_s: float, restarts_every_s: float | None
) -> None:
    story = BroughtDown(after_s, replicas, apart_s, restarts_every_s).story
    assert most_within_an_hour(tries(story)) <= (story.policy.max_launches_per_pod + 1) * replicas - 1


@dataclass(frozen=True)
class Retries:
    """A maker that replaces its pod again and again: by one that asks for more, or that a maker of another name makes.

    Makers whose names differ in their digits alone count as one.
    """

    every_s: float
    grows: bool
    seed: int

    def arrivals(self) -> list[Arrival]:
        names, many = Random(self.seed), int(PLAYED_S / self.every_s)
        drawn = ["".join(names.choices("abcdefgh", k=12)) for _ in range(many)]
        if not self.grows:
            return [service(name, 1, at_s=self.every_s * i, requests=WHOLE) for i, name in enumerate(drawn)]
        sizes = (Resources(500, 12 * GIB + i * 2**20, 0, 1) for i in range(many))
        template = f"Workflow/{drawn[0]}"
        return [
            service(name, 1, at_s=self.every_s * i, requests=size, template=template)
            for i, (name, size) in enumerate(zip(drawn, sizes, strict=True))
        ]

    def course(self) -> tuple[list[Arrival], list[Rescale]]:
        """Each pod comes a moment after the one before it was deleted."""
        arrivals = self.arrivals()
        return arrivals, [Rescale(a.at_s + self.every_s - 1.0, "default", a.task.name, 0) for a in arrivals]


RETRIES = st.builds(Retries, st.floats(30.0, 300.0), st.booleans(), st.integers(0, 2**30))


@settings(max_examples=10, deadline=None, derandomize=True, phases=UNSHRUNK)
@given(
    st.lists(RETRIES, min_size=1, max_size=3, unique_by=lambda each: each.seed),
    # Not what registers bare: HTAS gives it its labels, and its pods run.
    st.sampled_from(
        ("vanishes at once", "a taint for ever", "starts nothing", Boot.FAILS.value, Boot.NEVER_REGISTERS.value)
    ),
    RESTARTS,
)
def test_so_many_machines_are_launched_for_nothing_in_a_namespace_whatever_its_makers_are_called(
    makers: list[Retries], fault: str, restarts_every_s: float | None
) -> None:
    courses = [maker.course() for maker in makers]
    arrivals = tuple(each for arrivals, _ in courses for each in arrivals)
    rescales = tuple(each for _, rescales in courses for each in rescales)
    story = Played(Course((fault,), arrivals, rescales, None, restarts_every_s)).story
    most = OWNERS_OF_A_NAMESPACE * story.policy.max_launches_per_pod
    launched = [result.snapshot.taken_at for result in story.seen for _ in result.plan.launch]
    assert most_within_an_hour(launched) <= most + len(makers) * story.policy.max_launches_per_pod
