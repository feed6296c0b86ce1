"""Nodes whose kubelet is older than their group asks for (`cleaning.minKubeletVersion`) are replaced, few at a time."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.policy import CleaningRules, Cycles, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.sandbox.workload import Arrival, Budget, Workload
from tests.builders import labels_are, make_flavour, make_policy
from tests.stories.play import Story
from tests.stories.test_retired import removals, replicas, running

HOUR = 3600.0
FLAVOUR = make_flavour("only", "8", "16Gi", "0.30")
OLD, NEW = "v1.33.4", "v1.34.1"


def policy(least: str | None = "v1.34", *, every_s: float = 20.0, **group: Any) -> Policy:
    rules = CleaningRules(
        underutilized_for_s=60, queue_empty_for_s=60, utilization_threshold=0.3, min_kubelet_version=least
    )
    cycles = Cycles(every_s, every_s, every_s)
    return make_policy([NodeGroup("any", cleaning=rules, **group)], (FLAVOUR,), cycles=cycles)


def upgraded(*arrivals: Arrival, image: str = NEW, budgets: tuple[Budget, ...] = (), **group: Any) -> Story:
    """Machines come with the old kubelet; after an hour the image has another, and the new version is asked for."""
    story = Story(policy(None, **group))
    story.world.cloud.kubelet = OLD
    story.world.load(Workload("upgraded", arrivals, budgets=budgets))
    story.play(HOUR)
    story.world.cloud.kubelet = image
    story.policy = policy(**group)
    story.daemon.adopt(story.policy)
    return story


def kubelets(story: Story) -> list[str]:
    return [node.kubelet for node in story.world.cluster.observe().nodes]


def bought(story: Story) -> list[str]:
    return [launch.why for result in story.seen for launch in result.plan.launches if launch.replaces]


def test_full_machines_are_replaced_one_after_another() -> None:
    story = upgraded(replicas(32))
    before = story.nodes
    assert (kubelets(story), removals(story)) == ([OLD, OLD], [])
    story.play(3 * HOUR)
    assert (kubelets(story), removals(story)) == ([NEW, NEW], ["Outdated", "Outdated"])
    assert (running(story), story.world.ledger.evictions) == (32, 32), "each is disturbed once"
    assert max(len(result.snapshot.cluster.nodes) for result in story.seen) == 3, "one more at a time"
    assert sorted(bought(story)) == [f"replaces {name}, with a kubelet older than v1.34" for name in sorted(before)]
    story.play(24 * HOUR)
    assert len(bought(story)) == 2
    story.assert_whole()


def test_nodes_that_tell_no_version_stay() -> None:
    story = Story(policy(), replicas(16)).play(6 * HOUR)
    assert (removals(story), running(story)) == ([], 16)


def test_a_budget_that_lets_nobody_go_keeps_the_machine_and_people_are_told_both() -> None:
    held = Budget("default", "web", labels_are(app="web"), 16)
    story = upgraded(replicas(16), budgets=(held,)).play(4 * HOUR)
    assert (removals(story), running(story), story.world.ledger.evictions) == ([], 16, 0)
    [kept] = story.seen[-1].plan.kept
    assert (kept.reason, "NotEnoughPdb" in kept.message) == (Kept.BLOCKED_BY_POD, True)


@pytest.mark.parametrize("pods", [pytest.param(16, id="one full, two empty"), pytest.param(0, id="all empty")])
def test_a_group_keeps_its_least_size_while_its_machines_are_replaced(pods: int) -> None:
    story = upgraded(*([replicas(pods)] if pods else []), min_nodes=3)
    already = len(story.seen)
    story.play(4 * HOUR)
    sizes = {sum(node.is_ready for node in result.snapshot.cluster.nodes) for result in story.seen[already:]}
    assert (kubelets(story), sizes, running(story)) == ([NEW] * 3, {3, 4}, pods)
    story.assert_whole()


@pytest.mark.parametrize("least", [pytest.param(0, id="of any size"), pytest.param(3, id="of three at least")])
def test_while_new_machines_come_with_the_old_kubelet_nobody_is_disturbed(least: int) -> None:
    """Each was replaced by its like, and all pods evicted, 96 times a day and for ever."""
    # Looked at less often than by default: the empty one of three is, in each cycle of 65 hours.
    story = upgraded(replicas(32), image=OLD, min_nodes=least, every_s=180.0)
    before = story.nodes
    story.play(25 * HOUR)
    assert (story.nodes, running(story), story.world.ledger.evictions) == (before, 32, 0)
    assert len(bought(story)) <= 6 * len(before), "ever less often"
    told = {kept.message for result in story.seen for kept in result.plan.kept if kept.reason is Kept.BEING_REPLACED}
    assert any(message.endswith(f"is to be deleted itself: kubelet {OLD}, v1.34 at least") for message in told)
    story.world.cloud.kubelet = NEW
    story.play(40 * HOUR)  # the next attempt is after 34
    assert (set(kubelets(story)), running(story), story.world.ledger.evictions) == ({NEW}, 32, 32)
    story.assert_whole()
