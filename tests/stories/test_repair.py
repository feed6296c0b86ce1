"""Nodes that bear a condition for longer than their group lets them (`cleaning.repair`) are replaced, while few do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.approvals import ApprovalState
from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.modes import Approval
from htas.model.policy import CleaningRules, Limits, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.sandbox.workload import Arrival, Budget, Workload
from tests.builders import labels_are, make_flavour, make_policy
from tests.stories.play import Story, job
from tests.stories.test_retired import removals, replicas, running

MINUTE, HOUR, DAY_S = 60.0, 3600.0, 86_400
FLAVOUR = make_flavour("only", "8", "16Gi", "0.30")
DEADLOCK = "KernelDeadlock"


def policy(billing: Billing | None = None, borne_s: float = 10 * MINUTE, **group: Any) -> Policy:
    rules = CleaningRules(
        underutilized_for_s=60, queue_empty_for_s=60, utilization_threshold=0.3, repair_s=((DEADLOCK, borne_s),)
    )
    catalogue = Catalogue((FLAVOUR,), "USD", billing or Billing())
    return make_policy([NodeGroup("any", cleaning=rules, **group)], catalogue=catalogue)


def an_hour(*arrivals: Arrival, budgets: tuple[Budget, ...] = (), by: Policy | None = None) -> Story:
    """The first hour, in which nobody is unhealthy: sixteen replicas fill a machine."""
    story = Story(by or policy())
    story.world.load(Workload("an hour", arrivals, budgets=budgets))
    return story.play(HOUR)


def falls_ill(story: Story, *nodes: str, well: bool = False) -> None:
    for node in nodes:
        story.world.cluster.set_condition(node, DEADLOCK, not well)


def removed_after_s(story: Story) -> list[float]:
    """When nodes began to be emptied for it, since the story's first hour."""
    return [
        result.snapshot.taken_at - story.start - HOUR
        for result in story.seen
        for item in result.plan.remove
        if item.reason == "Unhealthy"
    ]


def reasons(story: Story) -> dict[str, Kept]:
    return {kept.node: kept.reason for kept in story.seen[-1].plan.kept}


def test_a_full_machine_is_replaced_once_it_has_been_unhealthy_for_long_enough() -> None:
    story = an_hour(replicas(96))
    before = set(story.nodes)
    ill = min(before)
    falls_ill(story, ill)
    story.play(HOUR + 9 * MINUTE)
    assert (set(story.nodes), story.world.ledger.evictions) == (before, 0), "nobody is disturbed before"
    story.play(2 * HOUR)
    launches = [launch.why for result in story.seen for launch in result.plan.launches if launch.replaces]
    assert launches == [f"replaces {ill}, with KernelDeadlock"]
    assert (before - set(story.nodes), removals(story)) == ({ill}, ["Unhealthy"])
    [at_s] = removed_after_s(story)
    assert 10 * MINUTE + story.world.cloud.startup_s <= at_s <= 13 * MINUTE, "its replacement is Ready by then"
    assert (running(story), story.world.ledger.evictions) == (96, 16)
    story.play(24 * HOUR)
    assert removals(story) == ["Unhealthy"]
    story.assert_whole()


@pytest.mark.parametrize("every_s", [20, 240, 3600])
def test_a_queue_that_is_never_empty_does_not_postpone_a_repair(every_s: int) -> None:
    """With a job of seven cores every four minutes an ill node was there after five hours: it is gone after 660 s.

    Nor do jobs take the machine that was bought to take over from it: with one every 20 s that took 3120 s.
    """
    rules = CleaningRules(repair_s=((DEADLOCK, 10 * MINUTE),))
    busy = make_policy([NodeGroup("any", cleaning=rules)], catalogue=Catalogue((FLAVOUR,), "USD", Billing()))
    jobs = [job(f"job-{at_s}", HOUR + at_s, cpu_m=7000) for at_s in range(0, int(HOUR), every_s)]
    story = an_hour(replicas(16), *jobs, by=busy)
    [ill] = story.nodes
    falls_ill(story, ill)
    story.play(1.5 * HOUR)
    [at_s] = removed_after_s(story)
    assert 10 * MINUTE + story.world.cloud.startup_s <= at_s <= 11 * MINUTE
    assert [launch.replaces for result in story.seen for launch in result.plan.launches if launch.replaces] == [(ill,)]
    web = [pod for pod in story.world.cluster.observe().pods if pod.labels.get("app") == "web"]
    assert (ill in story.nodes, sum(pod.started_at is not None for pod in web), story.world.ledger.evictions) == (
        False,
        16,
        16,
    )
    story.assert_whole()


def test_a_queue_does_not_hasten_what_is_not_urgent() -> None:
    """Machines that are too old wait until no work has waited for `queueEmptyFor`: 0 of them go in five hours."""
    rules = CleaningRules(max_node_age_s=HOUR)
    busy = make_policy([NodeGroup("any", cleaning=rules)], catalogue=Catalogue((FLAVOUR,), "USD", Billing()))
    jobs = [job(f"job-{at_s}", HOUR / 2 + at_s, cpu_m=7000) for at_s in range(0, int(5 * HOUR), 240)]
    story = an_hour(replicas(16), *jobs, by=busy)
    story.play(5 * HOUR)
    assert ("Expired" in removals(story), story.world.ledger.evictions) == (False, 0)
    assert Kept.QUEUE_NOT_EMPTY in {kept.reason for result in story.seen for kept in result.plan.kept}


def test_while_most_nodes_are_not_ready_nothing_is_bought_for_one_that_is_ill() -> None:
    """Five nodes, three of which have lost their network: the fourth bears a condition and stays, for 14 minutes."""
    story = an_hour(replicas(80))
    ill, *others = story.nodes
    falls_ill(story, ill)
    story.play(HOUR + 9 * MINUTE)
    for node in others[:3]:
        story.world.cluster.set_ready(node, False)
    story.play(HOUR + 14 * MINUTE)
    launches = [launch.why for result in story.seen for launch in result.plan.launches if launch.replaces]
    assert (launches, removals(story), reasons(story)[ill]) == ([], [], Kept.TOO_MANY_UNHEALTHY)
    for node in others[:3]:
        story.world.cluster.set_ready(node, True)
    story.play(3 * HOUR)
    assert (removals(story), ill in story.nodes) == (["Unhealthy"], False)


def test_what_passes_in_time_disturbs_nobody() -> None:
    story = an_hour(replicas(16))
    before = story.nodes
    falls_ill(story, *before)
    story.play(HOUR + 9 * MINUTE)
    falls_ill(story, *before, well=True)
    story.play(HOUR + 12 * MINUTE)
    falls_ill(story, *before)
    story.play(HOUR + 21 * MINUTE)
    assert (story.nodes, removals(story)) == (before, []), "it counts from the last time"
    story.play(2 * HOUR)
    assert (removals(story), running(story)) == (["Unhealthy"], 16)


def test_where_more_than_a_fifth_are_unhealthy_none_is_replaced_and_people_are_told() -> None:
    """A rack has failed, or a detector is wrong: once enough are well again the others are replaced."""
    story = an_hour(replicas(96))
    first, second, third, *_ = before = story.nodes
    falls_ill(story, first, second, third)
    story.play(5 * HOUR)
    assert (story.nodes, removals(story), story.world.ledger.evictions) == (before, [], 0)
    assert [name for name, why in reasons(story).items() if why is Kept.TOO_MANY_UNHEALTHY] == [first, second, third]
    why = next(kept.message for kept in story.seen[-1].plan.kept if kept.node == first)
    assert why.endswith(", 10m at most, but 3 of 6 nodes of group any are unhealthy, repaired up to 2")
    falls_ill(story, third, well=True)
    story.play(7 * HOUR)
    assert (set(before) - set(story.nodes), removals(story)) == ({first, second}, ["Unhealthy"] * 2)
    assert (running(story), story.world.ledger.evictions) == (96, 32)
    story.assert_whole()


def test_while_too_many_are_unhealthy_empty_machines_are_given_back_as_ever() -> None:
    story = an_hour(replicas(32), job("short", runs_s=2 * HOUR, cpu_m=8000, gib=8.0))
    falls_ill(story, *story.nodes)
    story.play(5 * HOUR)
    assert (removals(story), len(story.nodes), running(story)) == (["Empty"], 2, 32)


def test_new_pods_do_not_go_to_one_that_a_budget_holds() -> None:
    held = Budget("default", "web", labels_are(app="web"), 8)
    story = an_hour(replicas(8), budgets=(held,))
    [ill] = story.nodes
    falls_ill(story, ill)
    story.play(2 * HOUR)
    assert (reasons(story), running(story)) == ({ill: Kept.BLOCKED_BY_POD}, 8)
    story.world.load(Workload("more", (replicas(2, "last", at_s=60.0),)))
    story.play(3 * HOUR)
    last = {pod.node for pod in story.world.cluster.observe().pods if pod.labels.get("app") == "last"}
    assert (len(last), ill in last, ill in story.nodes, story.world.ledger.evictions) == (1, False, True, 0)


def test_pods_that_have_room_elsewhere_go_there_and_nothing_is_bought() -> None:
    story = an_hour(replicas(20))
    by_use = {node: sum(pod.node == node for pod in story.world.cluster.observe().pods) for node in story.nodes}
    fuller, emptier = sorted(by_use, key=lambda node: -by_use[node])
    falls_ill(story, emptier)
    story.play(2 * HOUR)
    assert (by_use[fuller], by_use[emptier], removals(story)) == (16, 4, ["Unhealthy"])
    falls_ill(story, fuller)
    story.world.load(Workload("more", (replicas(8, "more"),)))
    story.play(4 * HOUR)
    assert (removals(story), running(story)) == (["Unhealthy"] * 2, 28)
    story.assert_whole()


def test_batch_work_begins_again_elsewhere_however_soon_it_seems_to_end() -> None:
    """On a node whose kernel hangs it never does."""
    story = an_hour(job("nearly", runs_s=1.5 * HOUR))
    falls_ill(story, *story.nodes)
    story.play(2 * HOUR)
    assert (removals(story), story.world.ledger.evictions, running(story)) == (["Unhealthy"], 1, 1)
    story.play(4 * HOUR)
    story.assert_over(1)


@pytest.mark.parametrize(
    ("work", "removed"),
    [
        pytest.param(replicas(16), "Unhealthy", id="full"),
        pytest.param(job("short", runs_s=HOUR / 2, cpu_m=8000, gib=8.0), "Empty", id="empty"),
    ],
)
def test_what_is_paid_of_it_keeps_no_machine(work: Arrival, removed: str) -> None:
    story = an_hour(work, by=policy(Billing(DAY_S, DAY_S)))
    [ill], work_runs = story.nodes, running(story)
    falls_ill(story, ill)
    story.play(HOUR + 9 * MINUTE)
    assert story.nodes == [ill]
    story.play(HOUR + 20 * MINUTE)
    assert (removals(story), running(story), ill in story.nodes) == ([removed], work_runs, False)
    story.assert_whole()


@pytest.mark.parametrize("pods", [pytest.param(16, id="full"), pytest.param(0, id="empty")])
def test_a_group_keeps_its_least_size_while_one_is_replaced(pods: int) -> None:
    story = an_hour(*([replicas(pods)] if pods else []), by=policy(min_nodes=1))
    [ill] = story.nodes
    falls_ill(story, ill)
    already = len(story.seen)
    story.play(3 * HOUR)
    sizes = {sum(node.is_ready for node in result.snapshot.cluster.nodes) for result in story.seen[already:]}
    assert (sizes, ill in story.nodes, running(story)) == ({1, 2}, False, pods)


def test_a_group_at_its_most_machines_keeps_it() -> None:
    story = an_hour(replicas(16), by=policy(limits=Limits(max_nodes=1)))
    before = story.nodes
    falls_ill(story, *before)
    story.play(3 * HOUR)
    assert (story.nodes, removals(story), running(story)) == (before, [], 16)


def test_who_said_yes_to_the_replacement_is_not_asked_again_when_it_has_come() -> None:
    story = an_hour(replicas(16), by=msgspec.structs.replace(policy(), approval=Approval()))
    falls_ill(story, *story.nodes)
    story.play(HOUR + 15 * MINUTE)
    assert removals(story) == []
    [asked] = [each for each in story.daemon.approvals.asked() if each.state is ApprovalState.WAITING]
    story.daemon.approvals.say([asked.question.id], "alice", is_approved=True, currency="USD")
    story.play(2 * HOUR)
    assert (removals(story), running(story), len(story.nodes)) == (["Unhealthy"], 16, 1)


def test_a_daemon_that_dies_again_and_again_buys_one_replacement() -> None:
    story = an_hour(replicas(16))
    falls_ill(story, *story.nodes)
    for until_s in range(3600, 3 * 3600, 150):
        story.play(until_s).crash()
    bought = [launch for result in story.seen for launch in result.plan.launches if launch.replaces]
    assert (len(bought), len(story.nodes), running(story)) == (1, 1, 16)
    story.assert_whole()


def test_one_that_is_not_ready_is_not_emptied_and_given_back_when_any_other_would_be() -> None:
    """Nobody can tell what still runs on it, until `timeouts.ready` is over."""
    story = an_hour(replicas(16))
    [ill] = story.nodes
    falls_ill(story, ill)
    story.world.cluster.set_ready(ill, False)
    story.play(HOUR + 14 * MINUTE)
    assert (reasons(story), removals(story)) == ({ill: Kept.NOT_READY}, [])
    story.play(2 * HOUR)
    assert (ill in story.nodes, removals(story), running(story)) == (False, [], 16)
