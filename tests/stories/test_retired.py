"""A flavour is retired while machines of it run: none is bought any more, and those that are there go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Arrival, Budget, Workload
from tests.builders import labels_are, make_flavour, make_policy
from tests.stories.play import Story, job, service

OLD, NEW = make_flavour("old", "8", "16Gi", "0.30"), make_flavour("new", "8", "16Gi", "0.40")
RETIRED = msgspec.structs.replace(OLD, retired=True)


def policy(**rules_: Any) -> Policy:
    rules = CleaningRules(underutilized_for_s=60, queue_empty_for_s=60, utilization_threshold=0.3, **rules_)
    return make_policy([NodeGroup("any", cleaning=rules)], (OLD, NEW))


def replicas(count: int, name: str = "web", at_s: float = 0.0) -> Arrival:
    return service(name, count, at_s=at_s, disruption={"htas.io/migrate": "true"})


def retired(*arrivals: Arrival, until_s: float, budgets: tuple[Budget, ...] = (), **rules: Any) -> Story:
    """The cheaper flavour is bought at first, and retired after ten minutes."""
    story = Story(policy(**rules))
    story.world.load(Workload("retired", arrivals, budgets=budgets))
    story.play(600)
    assert set(flavours(story)) == {"old"}
    catalogue = msgspec.structs.replace(story.policy.catalogue, flavours=(RETIRED, NEW))
    story.policy = msgspec.structs.replace(story.policy, catalogue=catalogue)
    story.daemon.adopt(story.policy)
    return story.play(until_s)


def flavours(story: Story) -> list[str]:
    return [node.flavour or "" for node in story.world.cluster.observe().nodes]


def removals(story: Story) -> list[str]:
    return [item.reason.value for result in story.seen for item in result.plan.remove]


def running(story: Story) -> int:
    pods = story.world.cluster.observe().pods
    return sum(pod.started_at is not None and not pod.is_terminating for pod in pods)


def test_full_machines_of_it_are_replaced_one_after_another_though_others_are_dearer() -> None:
    story = retired(replicas(32), until_s=3 * 3600)
    assert flavours(story) == ["new", "new"]
    assert removals(story) == ["Retired", "Retired"]
    assert running(story) == 32
    bought = [(launch.flavour, launch.why) for result in story.seen for launch in result.plan.launches if launch.why]
    assert [flavour for flavour, _ in bought] == ["new", "new"]
    assert all(why.endswith("of a retired flavour") for _, why in bought)
    story.assert_whole()


def test_a_daemon_that_dies_again_and_again_buys_each_replacement_once() -> None:
    story = retired(replicas(32), until_s=600)
    for until_s in range(700, 3 * 3600, 150):
        story.play(until_s).crash()
    assert flavours(story) == ["new", "new"]
    asked = [launch.flavour for result in story.seen for launch in result.plan.launches]
    assert asked.count("new") == 2, "none is bought twice, and none of the retired flavour"
    assert asked.count("old") == 2, "before it was retired"
    assert running(story) == 32
    story.assert_whole()


def test_while_others_are_out_of_stock_its_machines_stay_as_they_are() -> None:
    story = retired(replicas(32), until_s=600)
    story.world.cloud.chances = Chances(out_of_stock=1.0)
    story.play(2 * 3600)
    assert (flavours(story), running(story), story.world.ledger.evictions) == (["old", "old"], 32, 0)
    tries = sum(launch.flavour == "new" for result in story.seen for launch in result.plan.launches)
    assert 1 <= tries <= 12, "and are asked for no more often than any flavour that is out of stock"
    story.world.cloud.chances = Chances()
    story.play(5 * 3600)
    assert (flavours(story), running(story)) == (["new", "new"], 32)
    story.assert_whole()


def test_where_all_flavours_are_retired_nothing_is_bought_and_nobody_is_driven_away() -> None:
    story = Story(policy(), replicas(16), replicas(8, "later", at_s=700)).play(600)
    both = (RETIRED, msgspec.structs.replace(NEW, retired=True))
    catalogue = msgspec.structs.replace(story.policy.catalogue, flavours=both)
    story.policy = msgspec.structs.replace(story.policy, catalogue=catalogue)
    story.daemon.adopt(story.policy)
    before = len(story.world.cloud.instances())
    story.play(2 * 3600)
    assert (flavours(story), running(story), story.world.ledger.evictions) == (["old"], 16, 0)
    assert len(story.world.cloud.instances()) == before
    assert story.seen[-1].plan.unplaced


def test_machines_of_it_that_a_group_keeps_at_least_stay_and_are_told() -> None:
    group = msgspec.structs.replace(policy().groups[0], min_nodes=3)
    story = Story(msgspec.structs.replace(policy(), groups=(group,)), replicas(16)).play(900)
    assert flavours(story) == ["old"] * 3
    catalogue = msgspec.structs.replace(story.policy.catalogue, flavours=(RETIRED, NEW))
    story.policy = msgspec.structs.replace(story.policy, catalogue=catalogue)
    story.daemon.adopt(story.policy)
    story.play(4 * 3600)
    assert (flavours(story), running(story)) == (["old"] * 3, 16), "neither fewer, nor one bought and returned in turn"
    assert {kept.reason for kept in story.seen[-1].plan.kept} == {Kept.MIN_SIZE_REACHED}


def test_what_comes_later_goes_to_others() -> None:
    story = retired(replicas(16), replicas(8, "later", at_s=700), until_s=2 * 3600)
    assert flavours(story) == ["new"] * 2
    assert running(story) == 24
    story.assert_whole()


def test_batch_work_that_ends_soon_is_left_to_end_there() -> None:
    story = retired(job("long", runs_s=2400.0), until_s=2 * 3600)
    assert (flavours(story), removals(story)) == ([], ["Empty"])
    assert story.world.ledger.evictions == 0


def test_a_budget_that_lets_nobody_go_keeps_the_machine() -> None:
    story = retired(replicas(16), until_s=2 * 3600, budgets=(Budget("default", "web", labels_are(app="web"), 16),))
    assert (flavours(story), removals(story), running(story)) == (["old"], [], 16)
    told = {item.message for item in story.seen[-1].plan.kept}
    assert any("NotEnoughPdb" in message for message in told), told


@pytest.mark.parametrize("cleaning", [True, False], ids=["cleaned", "not cleaned"])
def test_a_machine_that_is_hardly_used_goes_at_once_if_its_pods_have_room(cleaning: bool) -> None:
    story = Story(policy(), replicas(16), replicas(20, "grown", at_s=200)).play(600)
    rules = msgspec.structs.replace(story.policy.groups[0].cleaning, enabled=cleaning)
    group = msgspec.structs.replace(story.policy.groups[0], cleaning=rules)
    catalogue = msgspec.structs.replace(story.policy.catalogue, flavours=(RETIRED, NEW))
    story.policy = msgspec.structs.replace(story.policy, groups=(group,), catalogue=catalogue)
    story.daemon.adopt(story.policy)
    story.play(3 * 3600)
    assert set(flavours(story)) == ({"new"} if cleaning else {"old"})
    assert running(story) == 36
