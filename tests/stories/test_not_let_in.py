"""Machines that come for a pod and do not let it in: fewer and fewer are bought, and others are served meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import NodeSelectorTerm, PodAffinityTerm, Toleration
from htas.model.launches import Launches
from htas.model.pods import Owner
from htas.model.policy import NodeGroup, Policy
from htas.model.reasons import Unplaced
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.planning.cluster.owners import Owners
from htas.sandbox.workload import Rescale, Workload
from tests.builders import constrained, make_flavour, make_pod, make_policy, no_schedule
from tests.stories.play import Story, job, service

HOUR = 3600.0
FLAVOUR = make_flavour("only", "8", "16Gi", "0.30")
TAINT = no_schedule("vendor/agent")
EVERY = Toleration(operator="Exists")


def policy(**group: Any) -> Policy:
    return make_policy([NodeGroup("any", **group)], (FLAVOUR,))


def of_an_image_that_taints(*arrivals: Any) -> Story:
    """Nodes bear a taint that no group says they will."""
    story = Story(policy())
    story.world.cloud.taints = (TAINT,)
    story.world.load(Workload("tainted", arrivals))
    return story


def launched(story: Story) -> int:
    return len(story.world.ledger.rentals)


def most_within_an_hour(story: Story) -> int:
    """The most machines launched in any hour."""
    at = [rental.started_at for rental in story.world.ledger.rentals]
    return max(sum(first <= each < first + HOUR for each in at) for first in at)


def reasons(story: Story) -> set[Unplaced]:
    return {item.reason for item in story.seen[-1].plan.unplaced}


def test_a_taint_that_nobody_said_has_three_machines_launched_an_hour() -> None:
    """One after another was: 60 an hour."""
    story = of_an_image_that_taints(service("web", 3)).play(HOUR)
    assert launched(story) == 3
    assert reasons(story) == {Unplaced.TOO_MANY_LAUNCHES}
    [told] = {item.message for item in story.seen[-1].plan.unplaced}
    assert told.startswith("3 machines were launched for it within an hour and it runs on none (the last: only: ")
    assert "did not admit it: node(s) had untolerated taint(s) vendor/agent); the next not before" in told
    story.play(6 * HOUR)
    assert most_within_an_hour(story) == 3
    assert launched(story) <= 15, "pauses are half an hour in the end"


def test_others_are_launched_for_meanwhile_and_it_is_forgotten_once_a_machine_admits_it() -> None:
    story = of_an_image_that_taints(service("web", 3)).play(1200)
    story.world.cloud.taints = ()
    story.world.load(Workload("others", (service("api", 2, at_s=60),)))
    story.play(2400)
    running = {pod.labels["app"] for pod in story.world.cluster.observe().pods if pod.node is not None}
    assert running == {"api", "web"}, "the machine that comes for one takes the other in, too"
    assert reasons(story) == set()


def test_pods_that_are_gone_are_forgotten_in_two_hours() -> None:
    """Not at once: their controller may make them again, and what was launched for them still counts."""
    story = of_an_image_that_taints(service("web", 3)).play(1100)
    assert story.seen[-1].plan.memory.launches.unused
    story.world.load(Workload("less", (), (Rescale(1, "default", "web", 0),)))
    story.play(1300)
    assert story.seen[-1].plan.memory.launches.unused
    story.play(3 * HOUR)
    assert story.seen[-1].plan.memory.launches == Launches()


def test_behind_a_taint_that_goes_by_itself_nobody_is_held_up() -> None:
    """Steady jobs on machines whose agent starts 20 s after the kubelet had pauses of half an hour, each longer."""
    trained = [job(f"train-{i}", 60.0 * i, runs_s=300, cpu_m=4000) for i in range(60)]
    story = Story(policy())
    story.world.cloud.taints, story.world.cloud.taints_for_s = (TAINT,), 20.0
    story.world.load(Workload("agents", tuple(trained)))
    story.play(1.5 * HOUR)
    story.assert_over(60)
    assert story.world.ledger.wait_percentile_s(1.0) <= 120
    assert launched(story) <= 40, "of a machine for two jobs of half of it"
    assert not any(result.plan.memory.launches.unused for result in story.seen)


def test_what_is_launched_one_after_another_is_told_apart() -> None:
    """Of two machines on their way the last was remembered, and never the one that came: 198 for 23 pods."""
    growing = tuple(Rescale(40.0 * i, "default", "web", i + 1) for i in range(1, 23))
    story = Story(policy())
    story.world.cloud.taints = (TAINT,)
    story.world.load(Workload("growing", (service("web", 1),), growing))
    story.play(1800)
    assert launched(story) <= 6, "some before the first has shown that it does not admit them"


def test_what_is_told_stays_the_same_until_something_changes() -> None:
    story = of_an_image_that_taints(service("web", 3)).play(HOUR)
    told = {item.message for result in story.seen for item in result.plan.unplaced}
    assert len(told) <= 2 * launched(story), "once while a machine settles, and once for the pause"


def test_a_mended_group_is_judged_anew() -> None:
    story = of_an_image_that_taints(service("web", 3)).play(HOUR)
    story.policy = policy(taints=(TAINT,))
    story.daemon.adopt(story.policy)
    before = len(story.seen)
    story.play(HOUR + 120)
    told = {item.reason for result in story.seen[before:] for item in result.plan.unplaced}
    assert Unplaced.NO_FLAVOUR_FITS in told
    assert told.isdisjoint({Unplaced.BACKING_OFF, Unplaced.TOO_MANY_LAUNCHES})


@pytest.mark.parametrize(
    ("other", "groups", "alike"),
    [
        pytest.param({}, {}, True, id="another pod of the same template"),
        pytest.param({"constraints": constrained(tolerations=(EVERY,))}, {}, False, id="one that tolerates more"),
        pytest.param({}, {"labels": {"disk": "ssd"}}, False, id="nodes bear another label"),
        pytest.param({}, {"taints": (TAINT,)}, False, id="nodes bear another taint"),
        pytest.param({"owner": Owner("ReplicaSet", "api", "api-uid", 3)}, {}, False, id="of another controller"),
    ],
)
def test_what_was_in_vain_is_held_against_the_like_alone(
    other: dict[str, Any], groups: dict[str, Any], alike: bool
) -> None:
    before, now = make_pod("a"), make_pod("b", **other)
    assert (Owners(policy()).of(before) == Owners(policy(**groups)).of(now)) == alike


def anti(topology: str) -> dict[str, Any]:
    everybody = PodAffinityTerm(topology, LabelSelector(), (), LabelSelector())
    return {"constraints": constrained(anti_affinity=(everybody,))}


@pytest.mark.parametrize("key", ["kubernetes.io/os", "kubernetes.io/arch"])
def test_who_wants_to_be_alone_on_an_operating_system_has_nothing_bought_for_anybody(key: str) -> None:
    """Every new machine runs the same: 64 were bought in 100 s, and none of them could take a pod."""
    story = Story(policy(), service("alone", 1, **anti(key)))
    story.play(300)
    assert launched(story) == 1
    story.world.load(Workload("others", (service("web", 6, at_s=1),)))
    story.play(HOUR)
    assert launched(story) == 1
    assert reasons(story) == {Unplaced.NO_FLAVOUR_FITS}


def test_who_wants_another_operating_system_has_nothing_bought() -> None:
    term = NodeSelectorTerm((Requirement("kubernetes.io/os", Operator.NOT_IN, ("linux",)),))
    story = Story(policy(), service("odd", 1, constraints=constrained(node_affinity=(term,)))).play(600)
    assert (launched(story), reasons(story)) == (0, {Unplaced.NO_FLAVOUR_FITS})


def test_who_asks_for_linux_is_bought_a_machine() -> None:
    linux = constrained(node_selector=(("kubernetes.io/os", "linux"),))
    story = Story(policy(), service("web", 2, constraints=linux)).play(600)
    assert (launched(story), reasons(story)) == (1, set())
