"""Machines that are older than their group allows (`cleaning.maxNodeAge`) are replaced, few at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.approvals import ApprovalState
from htas.model.modes import Approval
from htas.model.moves import MigrationMethod
from htas.model.outcomes import Action
from htas.model.policy import CleaningRules, Limits, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Budget, Workload
from tests.builders import labels_are, make_flavour, make_policy
from tests.stories.play import Story, job
from tests.stories.test_retired import flavours, removals, replicas, retired, running

HOUR = 3600.0
FLAVOUR = make_flavour("only", "8", "16Gi", "0.30")


def policy(group: dict[str, Any] | None = None, **rules: Any) -> Policy:
    quick = {
        "underutilized_for_s": 60,
        "queue_empty_for_s": 60,
        "utilization_threshold": 0.3,
        "max_node_age_s": 2 * HOUR,
    }
    return make_policy([NodeGroup("any", cleaning=CleaningRules(**{**quick, **rules}), **(group or {}))], (FLAVOUR,))


def oldest_s(story: Story) -> float:
    return max(story.world.clock.now() - claim.rented_since for claim in story.store.claims())


def most_machines(story: Story) -> int:
    return max(len(result.snapshot.cluster.nodes) for result in story.seen)


def bought(story: Story) -> list[tuple[int, str]]:
    """When and why machines were bought to replace others."""
    return [
        (round(result.snapshot.taken_at - story.start), launch.why)
        for result in story.seen
        for proposal in result.plan.proposals
        for launch in proposal.launches
    ]


def test_full_machines_are_replaced_one_after_another_by_machines_of_the_same_price() -> None:
    story = Story(policy(), replicas(32)).play(2 * HOUR - 60)
    before = story.nodes
    assert (len(before), removals(story), story.world.ledger.evictions) == (2, [], 0), "nobody is disturbed before"
    story.play(3 * HOUR)
    assert removals(story) == ["Expired"] * 2
    assert not set(story.nodes) & set(before)
    assert (running(story), most_machines(story)) == (32, 3), "one more at a time, and nobody is lost"
    first, second = bought(story)
    assert (first, second[0] >= first[0] + 900) == ((7200, f"replaces {before[0]}, older than 2h"), True)
    story.assert_whole()


def test_without_an_age_machines_grow_as_old_as_their_work() -> None:
    story = Story(policy(max_node_age_s=None), replicas(32)).play(48 * HOUR)
    assert (removals(story), len(story.nodes)) == ([], 2)


def test_a_daemon_that_dies_again_and_again_buys_each_replacement_once() -> None:
    story = Story(policy(), replicas(32)).play(2 * HOUR - 60)
    for until_s in range(7200, 3 * 3600, 150):
        story.play(until_s).crash()
    assert (len(story.nodes), running(story), len(bought(story))) == (2, 32, 2)
    assert oldest_s(story) < 2 * HOUR
    story.assert_whole()


def test_a_daemon_that_lost_its_journal_knows_how_old_machines_are() -> None:
    story = Story(policy(), replicas(16)).play(1.5 * HOUR)
    story.store = type(story.store)(":memory:")
    story.crash()
    story.play(2.5 * HOUR)
    assert removals(story) == ["Expired"]


def test_while_nothing_is_in_stock_they_stay_as_they_are() -> None:
    story = Story(policy(), replicas(32)).play(HOUR)
    before = story.nodes
    story.world.cloud.chances = Chances(out_of_stock=1.0)
    story.play(4 * HOUR)
    assert (story.nodes, running(story), story.world.ledger.evictions) == (before, 32, 0)
    story.world.cloud.chances = Chances()
    story.play(7 * HOUR)
    assert oldest_s(story) < 3 * HOUR
    story.assert_whole()


def test_a_group_at_its_most_machines_keeps_them() -> None:
    story = Story(policy({"limits": Limits(max_nodes=2)}), replicas(32)).play(6 * HOUR)
    assert (removals(story), running(story), len(story.nodes)) == ([], 32, 2)


@pytest.mark.parametrize("pods", [pytest.param(16, id="one full, two empty"), pytest.param(0, id="all empty")])
def test_a_group_keeps_its_least_size_while_its_machines_are_replaced(pods: int) -> None:
    story = Story(policy({"min_nodes": 3}), *([replicas(pods)] if pods else [])).play(2 * HOUR - 60)
    before = story.nodes
    already = len(story.seen)
    story.play(3 * HOUR)
    sizes = {sum(node.is_ready for node in result.snapshot.cluster.nodes) for result in story.seen[already:]}
    assert (len(before), sizes, len(story.nodes)) == (3, {3, 4}, 3)
    assert not set(story.nodes) & set(before)
    assert (running(story), story.world.ledger.evictions) == (pods, pods)
    story.assert_whole()


def test_pods_that_have_room_elsewhere_go_there_and_nothing_is_bought() -> None:
    """A job that fills the old machine has ended when its time has come: eight pods are left on each of two."""
    filling = job("filling", runs_s=1.8 * HOUR, cpu_m=4000, gib=4.0)
    story = Story(policy(), filling, replicas(8), replicas(8, "later", at_s=HOUR)).play(1.95 * HOUR)
    young = [claim.node for claim in story.store.claims() if claim.created_at > story.start + 1800]
    assert (len(story.nodes), len(young)) == (2, 1)
    story.play(2.9 * HOUR)
    assert (removals(story), bought(story), story.nodes, running(story)) == (["Expired"], [], young, 16)
    story.assert_whole()


def test_new_work_goes_to_younger_machines_first() -> None:
    """Both have room: the fuller one would be taken, but it is soon to go."""
    held = Budget("default", "web", labels_are(app="web"), 12)
    story = Story(policy())
    story.world.load(Workload("both", (replicas(12), replicas(8, "later", at_s=HOUR)), budgets=(held,)))
    story.play(2.5 * HOUR)
    young = next(claim.node for claim in story.store.claims() if claim.created_at > story.start + 1800)
    assert len(story.nodes) == 2
    story.world.load(Workload("more", (replicas(2, "last", at_s=60.0),)))
    story.play(2.7 * HOUR)
    last = {pod.node for pod in story.world.cluster.observe().pods if pod.labels.get("app") == "last"}
    assert last == {young}


@pytest.mark.parametrize("method", [MigrationMethod.EVICT, MigrationMethod.CHECKPOINT])
@pytest.mark.parametrize("reason", ["Expired", "Retired"])
def test_long_batch_work_moves_to_a_machine_that_is_bought_once(reason: str, method: MigrationMethod) -> None:
    """The machine that took over was found to be rented too long for it, returned empty and bought again, for ever."""
    long = job("long", runs_s=10 * HOUR)
    if reason == "Retired":
        story = retired(long, until_s=3 * HOUR, migration=method)
    else:
        story = Story(policy(migration=method), long).play(3 * HOUR)
    assert (removals(story), len(bought(story)), running(story)) == ([reason], 1, 1)
    story.assert_whole()


def test_batch_work_that_would_repeat_more_than_is_left_stays() -> None:
    story = Story(policy(), job("long", runs_s=3.5 * HOUR)).play(6 * HOUR)
    assert (removals(story), bought(story), story.world.ledger.evictions) == (["Empty"], [], 0)
    story.assert_over(1)


def test_a_budget_that_lets_nobody_go_keeps_the_machine_and_people_are_told_both() -> None:
    story = Story(policy())
    story.world.load(Workload("held", (replicas(16),), budgets=(Budget("default", "web", labels_are(app="web"), 16),)))
    story.play(5 * HOUR)
    assert (removals(story), running(story)) == ([], 16)
    [kept] = story.seen[-1].plan.kept
    assert (kept.reason, "NotEnoughPdb" in kept.message) == (Kept.BLOCKED_BY_POD, True)


def test_who_said_yes_to_the_replacement_is_not_asked_again_when_it_has_come() -> None:
    rules = msgspec.structs.replace(policy(), approval=Approval())
    story = Story(rules, replicas(16)).play(2 * HOUR + 60)
    [asked] = [each for each in story.daemon.approvals.asked() if each.state is ApprovalState.WAITING]
    story.daemon.approvals.say([asked.question.id], "alice", is_approved=True, currency="USD")
    story.play(3 * HOUR)
    assert (removals(story), running(story), len(story.nodes)) == (["Expired"], 16, 1)
    assert story.verbs[Action.PROPOSE, "done"] == 1


def test_an_age_and_a_retired_flavour_are_one_reason_to_go() -> None:
    story = Story(policy(), replicas(16)).play(600)
    new = make_flavour("new", "8", "16Gi", "0.40")
    catalogue = msgspec.structs.replace(
        story.policy.catalogue, flavours=(msgspec.structs.replace(FLAVOUR, retired=True), new)
    )
    story.policy = msgspec.structs.replace(story.policy, catalogue=catalogue)
    story.daemon.adopt(story.policy)
    story.play(4 * HOUR)
    assert (removals(story), flavours(story)) == (["Retired", "Expired"], ["new"])
