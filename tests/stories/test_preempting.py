"""A full cluster at its limit, and more important work arrives."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution import crash_points, evictor, executor
from htas.model.outcomes import OutcomeStatus
from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, Fallback, FallbackMode, Limits, NodeGroup, Policy, Promises
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.planning.disrupt.preemption.candidates import PreemptionCandidate
from htas.planning.planner import plan
from htas.sandbox.workload import Arrival, Budget, Rescale, Workload
from tests.builders import NECTAR, labels_are, make_policy
from tests.stories.play import GIB, Story, job, service

SMALL = tuple(flavour for flavour in NECTAR if flavour.name == "m3.small")
"""Two cores and 4 GiB: four services of 500m and 1 GiB fill one, but for what the system keeps."""


def policy(promises: Promises = Promises.KEEP, mode: FallbackMode = FallbackMode.PREEMPT) -> Policy:
    fallback = Fallback(mode=mode, promises=promises)
    return make_policy([NodeGroup("any")], SMALL, limits=Limits(max_nodes=2), fallback=fallback)


def full(*later: Arrival, budgets: tuple[Budget, ...] = (), **how: object) -> Story:
    """Two machines at the limit, filled by two services of low and lower priority; then `later` arrives."""
    story = Story(policy(**how))
    arrivals = (service("low", 4, priority=10), service("lower", 4, priority=5), *later)
    story.world.load(Workload("full", arrivals, budgets=budgets))
    return story


def pods_of(story: Story, name: str) -> list[Pod]:
    return [pod for pod in story.world.cluster.observe().pods if pod.labels.get("app") == name]


def running(story: Story, name: str) -> int:
    return sum(pod.node is not None and not pod.is_terminating for pod in pods_of(story, name))


def news_of(story: Story, reason: str) -> list[str]:
    return [news.name for news in story.world.announcer.told() if news.reason == reason]


def test_the_more_important_service_runs_and_the_least_important_pods_went() -> None:
    story = full(service("high", 2, at_s=120, priority=100)).play(400)
    story.assert_whole()
    assert (running(story, "high"), running(story, "low"), running(story, "lower")) == (2, 4, 2)
    assert story.verbs["preempt", "done"] == 2
    assert len(news_of(story, "Preempted")) == 2
    assert len(set(news_of(story, "Nominated"))) == 2
    assert story.world.ledger.running_machines() == 2


def test_a_victim_has_no_more_grace_than_its_group_allows() -> None:
    """Pods have 30 s by themselves; the group allows 5."""
    story = full(service("high", 2, at_s=120, priority=100))
    group = NodeGroup("any", cleaning=CleaningRules(max_grace_s=5.0))
    story.daemon.adopt(msgspec.structs.replace(story.daemon.policy, groups=(group,)))
    story.play(145)
    assert running(story, "high") == 2


def test_a_pause_pod_gives_way_at_once_and_a_machine_is_launched_for_it() -> None:
    """Overprovisioning: the service runs long before a machine could have started, and the room in advance is back."""
    story = Story(make_policy([NodeGroup("any")], SMALL, limits=Limits(max_nodes=5)))
    pause, shop = service("pause", 3, priority=-10), service("shop", 3, at_s=600, priority=0)
    story.world.load(Workload("overprovisioning", (pause, shop)))
    story.play(599)
    assert (running(story, "pause"), story.world.ledger.running_machines()) == (3, 1)
    story.play(640)
    assert (running(story, "shop"), len(story.nodes)) == (3, 1)
    story.play(1200)
    assert (running(story, "shop"), running(story, "pause")) == (3, 3)
    assert story.verbs["preempt", "done"] == 2  # the third had room beside the pause pods
    assert story.world.ledger.running_machines() == 2
    story.assert_whole()


def test_pods_of_equal_priority_wait() -> None:
    story = full(service("high", 2, at_s=120, priority=5)).play(400)
    assert running(story, "high") == 0
    assert story.verbs["preempt", "done"] == 0


def test_nothing_is_evicted_where_the_fallback_is_off() -> None:
    story = full(service("high", 2, at_s=120, priority=100), mode=FallbackMode.OFF).play(400)
    assert running(story, "high") == 0
    assert story.world.ledger.evictions == 0


def test_nothing_is_evicted_for_what_a_machine_can_be_bought_for() -> None:
    roomy = make_policy([NodeGroup("any")], SMALL, limits=Limits(max_nodes=3), fallback=policy().fallback)
    story = Story(roomy)
    story.world.load(
        Workload(
            "roomy",
            (service("low", 4), service("lower", 4), service("high", 3, at_s=120, priority=100)),
        )
    )
    story.play(400)
    assert running(story, "high") == 3
    assert story.world.ledger.evictions == 0


def test_budgets_hold_and_the_next_more_important_go_instead() -> None:
    budget = Budget("default", "keep-lower", labels_are(app="lower"), 3)
    story = full(service("high", 2, at_s=120, priority=100), budgets=(budget,)).play(400)
    assert (running(story, "high"), running(story, "low"), running(story, "lower")) == (2, 3, 3)
    assert story.world.ledger.preempted == 0


def test_where_budgets_leave_nobody_the_important_work_waits_and_is_told_why() -> None:
    budgets = tuple(Budget("default", f"keep-{name}", labels_are(app=name), 4) for name in ("low", "lower"))
    story = full(service("high", 1, at_s=120, priority=100), budgets=budgets).play(400)
    assert running(story, "high") == 0
    assert story.world.ledger.evictions == 0
    message = story.seen[-1].plan.unplaced[0].message
    assert "No preemption victims found" in message


def test_as_kube_scheduler_budgets_are_broken_where_there_is_no_choice() -> None:
    budgets = tuple(Budget("default", f"keep-{name}", labels_are(app=name), 4) for name in ("low", "lower"))
    story = full(service("high", 1, at_s=120, priority=100), budgets=budgets, promises=Promises.AS_KUBE_SCHEDULER).play(
        400
    )
    assert (running(story, "high"), running(story, "low"), running(story, "lower")) == (1, 4, 3)
    assert story.world.ledger.preempted == 1


def test_work_that_ends_by_itself_takes_the_place_of_nobody_more_important() -> None:
    story = full(job("train", at_s=120, runs_s=60, priority=7)).play(500)
    assert "default/train" in story.world.ledger.finished_tasks
    assert (running(story, "low"), running(story, "lower")) == (4, 4)


def test_a_still_more_important_pod_takes_over_the_room_of_a_nominated_one() -> None:
    story = full(service("high", 1, at_s=120, priority=100), service("top", 1, at_s=121, priority=1000)).play(400)
    story.assert_whole()
    assert (running(story, "top"), running(story, "high"), running(story, "low"), running(story, "lower")) == (
        1,
        1,
        4,
        2,
    )


@pytest.mark.parametrize(
    ("reason", "taken_back"),
    [
        pytest.param(Unplaced.NOMINATED, 0, id="there is room for both: it keeps its nomination"),
        pytest.param(Unplaced.GIVES_WAY, 1, id="the plan has it give way: its nomination is taken back"),
    ],
)
def test_a_nominee_loses_its_nomination_only_where_it_gives_way(reason: Unplaced, taken_back: int) -> None:
    story = full(service("high", 1, at_s=120, priority=100), service("top", 1, at_s=121, priority=1000)).play(121)
    story.world.advance_to(story.world.clock.now() + 0.1)
    snapshot = story.daemon.observe()
    [high], [top] = pods_of(story, "high"), pods_of(story, "top")
    victim = next(pod for pod in pods_of(story, "lower") if pod.node == high.nominated_node and not pod.is_terminating)
    decided = msgspec.structs.replace(
        plan(snapshot, story.policy, snapshot.taken_at),
        proposals=(PreemptionCandidate(0, victim.node or "", (victim,)).proposal_for(top),),
        unplaced=(UnplacedPod(high.key, reason, ""),),
    )
    outcomes = story.daemon._executor.begin(decided, snapshot)
    assert sum(outcome.subject == high.key for outcome in outcomes) == taken_back
    assert [pod.nominated_node for pod in pods_of(story, "high")] == [None if taken_back else victim.node]


def test_victims_that_left_by_themselves_are_not_evicted_again() -> None:
    """Between the plan and its execution the world moves on: what the plan meant is looked at once more."""
    story = full(service("high", 1, at_s=200, priority=100)).play(200)
    story.world.advance_to(story.world.clock.now() + 0.1)
    snapshot = story.daemon.observe()
    decided = plan(snapshot, story.policy, snapshot.taken_at)
    assert len(decided.preempt) == 1
    for pod in pods_of(story, "lower"):
        story.world.cluster.evict(pod)
    outcomes = story.daemon._executor.begin(decided, snapshot)
    assert [outcome.action for outcome in outcomes] == ["nominate"]


def test_nobody_is_evicted_for_a_pod_that_waits_no_more() -> None:
    story = full(service("high", 1, at_s=200, priority=100)).play(200)
    story.world.advance_to(story.world.clock.now() + 0.1)
    snapshot = story.daemon.observe()
    decided = plan(snapshot, story.policy, snapshot.taken_at)
    story.world.cluster.rescale(Rescale(0.0, "default", "high", 0))
    outcomes = story.daemon._executor.begin(decided, snapshot)
    assert [(outcome.action, outcome.status) for outcome in outcomes] == [("preempt", OutcomeStatus.DROPPED)]
    assert story.world.ledger.evictions == 0


class KilledError(BaseException):
    """Stands for the end of the process in stories, which share one: nothing catches it."""


@pytest.mark.parametrize("point", [point for point in crash_points.POINTS if point.startswith("preempt.")])
@pytest.mark.parametrize("times", [1, 2])
def test_a_daemon_that_ends_in_the_midst_of_it_is_followed_by_one_that_finishes(
    point: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = times

    def reached(here: str) -> None:
        nonlocal left
        left -= here == point
        if here == point and left == 0:
            raise KilledError

    story = full(service("high", 2, at_s=120, priority=100, requests=Resources(1000, 2 * GIB, 0, 1)))
    for module in (evictor, executor):
        monkeypatch.setattr(module, "reached", reached)
    with pytest.raises(KilledError):
        story.play(400)
    story.crash()
    story.play(400)
    story.assert_whole()
    assert running(story, "high") == 2
    assert running(story, "low") + running(story, "lower") == 4
    assert story.world.ledger.evictions == 4
