"""Machines that come for a pod and do not let it in: fewer and fewer are bought, and others are served meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import NodeSelectorTerm, PodAffinityTerm
from htas.model.policy import NodeGroup, Policy
from htas.model.reasons import Unplaced
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.workload import Rescale, Workload
from tests.builders import constrained, make_flavour, make_policy, no_schedule
from tests.stories.play import Story, service

HOUR = 3600.0
FLAVOUR = make_flavour("only", "8", "16Gi", "0.30")
TAINT = no_schedule("vendor/agent")


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


def reasons(story: Story) -> set[Unplaced]:
    return {item.reason for item in story.seen[-1].plan.unplaced}


def test_a_taint_that_nobody_said_has_ever_fewer_machines_bought() -> None:
    """One after another was: 60 an hour."""
    story = of_an_image_that_taints(service("web", 3)).play(HOUR)
    first = launched(story)
    assert 3 <= first <= 7
    assert reasons(story) == {Unplaced.NOT_LET_IN}
    [told] = {item.message for item in story.seen[-1].plan.unplaced}
    assert "bought for it did not let it in: node(s) had untolerated taint" in told
    story.play(6 * HOUR)
    assert launched(story) - first <= 2 * 5 + 1, "half an hour apart at most"


def test_others_are_bought_for_meanwhile_and_it_is_forgotten_once_a_machine_lets_it_in() -> None:
    story = of_an_image_that_taints(service("web", 3)).play(1200)
    story.world.cloud.taints = ()
    story.world.load(Workload("others", (service("api", 2, at_s=60),)))
    story.play(2400)
    running = {pod.labels["app"] for pod in story.world.cluster.observe().pods if pod.node is not None}
    assert running == {"api", "web"}, "the machine that comes for one takes the other in, too"
    assert story.seen[-1].plan.memory.awaited == {}


def test_pods_that_are_gone_are_forgotten() -> None:
    story = of_an_image_that_taints(service("web", 3)).play(900)
    assert story.seen[-1].plan.memory.awaited["default/ReplicaSet/web"].times > 0
    story.world.load(Workload("less", (), (Rescale(1, "default", "web", 0),)))
    story.play(1200)
    assert story.seen[-1].plan.memory.awaited == {}


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
