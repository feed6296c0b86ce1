"""Pods that bring down the machines that they start on, and what they cost their neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import pytest

from htas.daemon.cycle import CycleResult
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Workload
from tests.stories.play import GIB, Story, job, service
from tests.stories.test_launches_in_use import vanish_if_there
from tests.stories.test_unused_launches import HOUR, OtherKubelets, policy

SMALL = Resources(300, GIB, 0, 1)
TEN = tuple(f"web-{letter * 3}" for letter in "abcdefghij")


class Course:
    """A story in which each pod that `is_broken` brings its machine down 20 s after it starts."""

    def __init__(self, *arrivals: Arrival, is_broken: Callable[[Pod], bool] = lambda pod: False) -> None:
        self.story = Story(policy(), *arrivals, cluster=OtherKubelets)
        self.brought_down = 0
        self.pending_s: dict[str, float] = defaultdict(float)
        """By controller for how long its pods have waited to start."""
        self.reasons: dict[str, set[Unplaced]] = defaultdict(set)
        self._is_broken = is_broken
        self._known: set[str] = set()
        self._at = self.story.start
        self.story.daemon.listeners.append(self._look)

    def _look(self, result: CycleResult) -> None:
        now, cluster = result.snapshot.taken_at, result.snapshot.cluster
        machines = {node.name: node.provider_id.removeprefix("sandbox:///") for node in cluster.nodes}
        for pod in cluster.pods:
            if pod.owner is not None and pod.started_at is None:
                self.pending_s[pod.owner.name] += now - self._at
            if pod.started_at is not None and pod.node and pod.uid not in self._known and self._is_broken(pod):
                self._known.add(pod.uid)
                self.brought_down += 1
                self.story.world.queue.after(20.0, partial(vanish_if_there, self.story.world, machines[pod.node]))
        self._at = now
        for item in result.plan.unplaced:
            self.reasons[item.pod.removeprefix("default/").rpartition("-")[0]].add(item.reason)

    def longest_pending_s(self, *names: str) -> float:
        return max(self.pending_s[name] for name in names)


def services(*more: Arrival) -> tuple[Arrival, ...]:
    return (*(service(name, 1, requests=SMALL) for name in TEN), *more)


def is_of(name: str) -> Callable[[Pod], bool]:
    return lambda pod: pod.owner is not None and pod.owner.name == name


def test_a_pod_that_brings_machines_down_costs_the_services_there_minutes() -> None:
    """It came when they ran. In two hours they were down for 86 min: each failed machine was charged to all of them."""
    bad = service("bad", 1, at_s=1800.0, requests=SMALL)
    course = Course(*services(bad), is_broken=is_of("bad"))
    course.story.play(2 * HOUR)
    assert course.longest_pending_s(*TEN) < 400
    assert course.brought_down <= 5
    assert course.reasons["bad"] == {Unplaced.STARTS_FAIL, Unplaced.AUTOSCALING_NOT_DUE}
    assert all(Unplaced.STARTS_FAIL not in course.reasons[name] for name in TEN)
    messages = [item.message for result in course.story.seen for item in result.plan.unplaced if "bad" in item.pod]
    told = "its last 2 starts were each on a machine that failed within 300 s; the next not before 2026-01-05T00:"
    assert any(message.startswith(told) for message in messages)


@pytest.mark.parametrize(("name", "most_s"), [("bad", 1300), ("web-eee-bad", 1800), ("zzz", 2500)])
def test_among_new_services_it_is_found_by_halves(name: str, most_s: float) -> None:
    """They were down for 116 of the first 120 min. The half that comes last by name waits the longest."""
    course = Course(*services(service(name, 1, requests=SMALL)), is_broken=is_of(name))
    course.story.play(2 * HOUR)
    assert course.longest_pending_s(*TEN) < most_s
    assert course.brought_down <= 9


def test_a_cron_job_whose_jobs_bring_machines_down_is_paused_whatever_they_are_called() -> None:
    """44 pods brought their machines down within 90 min, and the services were down for 84 min."""
    jobs = [job(f"bad-{i}", 1800 + 300.0 * i, 100.0, cpu_m=300, template="CronJob/bad") for i in range(10)]
    course = Course(*services(*jobs), is_broken=lambda pod: pod.name.startswith("bad"))
    course.story.play(2 * HOUR)
    assert course.longest_pending_s(*TEN) < 400
    assert course.brought_down <= 5


def test_of_jobs_whose_names_differ_in_digits_the_broken_one_is_paused() -> None:
    """Machines in use for train-1 to train-29 allowed more for train-0: it brought down 19 within the hour."""
    jobs = [job(f"train-{i}", runs_s=4 * HOUR, gib=4.0) for i in range(30)]
    course = Course(*jobs, is_broken=is_of("train-0"))
    course.story.play(HOUR)
    assert course.brought_down <= 6
    waited = sorted(course.pending_s[f"train-{i}"] for i in range(1, 30))
    assert waited[-1] < 1200, "55 min: charged with the failures of train-0"
    assert waited[-2] < 200


def test_services_run_soon_after_an_outage_that_failed_all_machines() -> None:
    """For ten minutes each machine fails a minute after it registers. Services ran again 51 min after the end."""
    course = Course(*services())
    world, start = course.story.world, course.story.start
    assert isinstance(world.cluster, OtherKubelets)

    def register(node: Node) -> Node:
        if 1800 <= world.clock.now() - start < 2400:
            vanish = partial(vanish_if_there, world, node.provider_id.removeprefix("sandbox:///"))
            world.queue.after(60.0, vanish)
        return node

    world.cluster.register = register
    course.story.play(1800.0)
    for instance in list(world.cloud.instances()):
        world.cloud.vanish(instance.id)
    course.story.play(2400.0 + 660.0)
    pods = world.cluster.observe().pods
    assert sum(pod.started_at is not None for pod in pods) == 10
    course.story.play(2 * HOUR)
    assert course.longest_pending_s(*TEN) < 1300


def test_a_suspect_that_is_mended_runs_for_good() -> None:
    broken = is_of("bad")
    course = Course(*services(), is_broken=lambda pod: broken(pod) and pod.created_at < course.story.start + 300.0)
    course.story.world.load(Workload("bad", (service("bad", 1, requests=SMALL),)))
    course.story.play(2 * HOUR)
    assert course.story.seen[-1].plan.memory.launches.failed_starts == {}
    pods = course.story.world.cluster.observe().pods
    assert sum(pod.started_at is not None for pod in pods) == 11
