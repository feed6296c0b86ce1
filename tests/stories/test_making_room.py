"""Stories of moving instead of launching: a move makes room for who waits, and no machine is bought."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from random import Random
from typing import Any

import pytest

from htas.model.moves import MigrationMethod
from htas.model.news import EventReason
from htas.model.nodes import GROUP_LABEL
from htas.model.pods import Phase
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.reasons import OutcomeReason
from htas.ports import PermanentError
from htas.sandbox.workload import Arrival, Workload
from tests.builders import make_flavour, make_node, make_policy
from tests.stories.play import Story, job

EVICT, CHECKPOINT = MigrationMethod.EVICT, MigrationMethod.CHECKPOINT
COMES_S = 120.0


def policy(method: MigrationMethod = CHECKPOINT, **fields: Any) -> Policy:
    group = NodeGroup("any", cleaning=CleaningRules(migration=method), startup_s=COMES_S)
    small = make_flavour("small", "4", "8Gi", "0.10")
    return make_policy([group], [small], moves_instead_of_buying=True, look_ahead_s=0.0, **fields)


class Figure1(Story):
    """Document 000: two nodes of 4, a job of 2 on each by the default scheduler's way, and a job of 3 a minute later."""

    def __init__(self, by: Policy, late: Arrival, *more: Arrival) -> None:
        super().__init__(by, startup_s=COMES_S)
        self.world.add_nodes([make_node(name, labels={GROUP_LABEL: "any"}) for name in ("left", "right")])
        arrivals = (job("one", runs_s=7200, cpu_m=2000), job("two", runs_s=7200, cpu_m=2000), late, *more)
        self.world.load(Workload("figure 1", arrivals))
        self.world.advance_to(self.start + 0.5)
        for pod, node in zip(self.world.cluster.observe().pods, ("left", "right"), strict=True):
            self.world.cluster.bind(pod, node)

    def on(self, node: str) -> set[str]:
        pods = self.world.cluster.observe().pods
        return {pod.name.rpartition("-")[0] for pod in pods if pod.node == node and not pod.is_terminating}

    def told(self, verb: str) -> list[str]:
        return [o.message for result in self.seen for o in result.outcomes if o.action == verb]

    @property
    def bought(self) -> int:
        return self.verbs["launch", "done"]


def third(runs_s: float = 3600.0, **task: Any) -> Arrival:
    return job("three", 60.0, runs_s, 3000, **task)


def test_figure_1_is_one_move_and_no_purchase() -> None:
    story = Figure1(policy(), third())
    story.play(110)
    assert story.bought == 0
    assert sorted([story.on("left"), story.on("right")], key=len) == [{"three"}, {"one", "two"}]
    assert (story.world.ledger.migrations, story.world.ledger.work_lost_s) == (1, 0.0)
    [why] = story.told("rearrange")
    assert why.startswith("moves default/one-1 from left to right to make room instead of launching small")
    assert why.endswith("saves 0.10 USD an hour")
    assert len(story.told("rearranged")) == 1
    said = {(news.reason, news.name): news.message for news in story.world.announcer.news}
    assert said[EventReason.NOMINATED, "default/three-1"] == f"HTAS {why}"
    assert said[EventReason.DESCHEDULED, "default/one-1"].startswith(f"HTAS {why}")
    story.play(7400)
    assert (story.bought, story.world.ledger.finished) == (0, 3)
    story.assert_whole()


def test_where_the_small_node_is_cheaper_than_the_move_it_is_bought() -> None:
    """An hour and a half of half a node would be done again for a job of a minute."""
    story = Figure1(policy(EVICT), job("three", 5400.0, 60.0, 3000))
    story.play(5900)
    assert (story.bought, story.world.ledger.evictions, story.world.ledger.work_lost_s) == (1, 0, 0.0)
    story.play(7400)
    assert story.world.ledger.finished == 3
    story.assert_whole()


@pytest.mark.parametrize("moment", range(0, 16, 2))
def test_a_daemon_that_crashes_on_the_way_neither_moves_twice_nor_buys(moment: int) -> None:
    story = Figure1(policy(), third())
    story.play(60 + moment).crash()
    story.play(200)
    assert (story.bought, story.world.ledger.migrations) == (0, 1)
    assert all(pod.phase is Phase.RUNNING for pod in story.world.cluster.observe().pods)
    story.assert_whole()


def test_what_cannot_be_moved_after_all_is_bought_for() -> None:
    story = Figure1(policy(EVICT), third())
    story.world.cluster.faults.refuse("evict", PermanentError("a webhook says no"))
    story.play(600)
    cancelled = [message.partition(":")[0] for message in story.told("cancel-rearrangement")]
    assert cancelled == [OutcomeReason.EVICTION_REFUSED] * 2, "one and two; then it has waited for long enough"
    assert (story.bought, story.world.ledger.evictions) == (1, 0)
    assert all(pod.phase is Phase.RUNNING for pod in story.world.cluster.observe().pods)
    story.assert_whole()


def test_what_moves_off_a_machine_have_cost_is_known_after_a_restart() -> None:
    """It was forgotten: a daemon that starts often could move again and again for savings that never came."""
    story = Figure1(policy(EVICT), third())
    story.play(200)
    (made,) = story.seen[-1].snapshot.memory.room_made.items()
    assert made[1].cost > 0
    story.crash()
    story.play(230)
    assert story.seen[-1].snapshot.memory.room_made == dict([made])


@pytest.mark.parametrize("crashes_every_s", [None, 60], ids=["one daemon", "a new one every minute"])
def test_an_hour_of_work_that_fits_nowhere_moves_nobody_back_and_forth(crashes_every_s: int | None) -> None:
    """Sixty jobs of two or three cores for nodes of four, as a stranger would send them to have others moved about."""
    draw = Random(0)
    at_s = accumulate((draw.choice((20.0, 45.0, 90.0)) for _ in range(60)), initial=90.0)
    late = [
        job(f"late-{i}", at, draw.choice((40.0, 120.0, 600.0)), draw.choice((2000, 3000))) for i, at in enumerate(at_s)
    ]
    story = Figure1(policy(), third(60.0), *late)
    for until_s in range(60, 4800, crashes_every_s or 4800):
        story.play(until_s)
        if crashes_every_s is not None:
            story.crash()
    story.play(4800)
    moved = Counter(shift.split(" ")[0] for told in story.told("rearrange") for shift in re.findall(r"\S+ from", told))
    assert story.world.ledger.finished == len(late) + 1
    assert moved
    assert set(moved.values()) == {1}, "nobody is moved twice"
    assert moved.total() <= 5
    story.assert_whole()


def test_work_that_comes_again_and_again_is_not_moved_about() -> None:
    """Forty short jobs that each fit nowhere: what moves cost in work done again stays below what they save."""
    late = [job(f"late-{i:02d}", 90.0 + 45 * i, 60.0, 3000) for i in range(40)]
    story = Figure1(policy(EVICT), third(60.0), *late)
    story.play(6000)
    ledger = story.world.ledger
    assert ledger.finished >= 41
    assert ledger.work_lost_s * 0.5 <= 3600, "half a node for as long as a machine would have been held"
    assert ledger.evictions <= 4
    story.assert_whole()
