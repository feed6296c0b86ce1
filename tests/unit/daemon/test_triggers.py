"""When cycles run in real time: at once, on changes, and no longer than allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Thread

import msgspec
import pytest
import yaml

from htas.daemon.loops.triggers import Triggers
from htas.daemon.telemetry.status import StatusBoard
from htas.model.edge import EdgePolicy
from htas.model.policy import Cycles
from htas.model.stages import ALL_STAGES, EVENT_STAGES, Stage
from htas.ports import TransientError
from tests.builders import batch_group, make_node, make_policy
from tests.stories.play import Story, job
from tests.waiting import until

RARE = Cycles(scheduling_s=3600, autoscaling_s=3600, cleaning_s=3600, batch_idle_s=0.05, batch_max_s=0.2)
"""Periodic cycles do not come into play."""


@pytest.fixture
def story() -> Story:
    return Story(make_policy([batch_group()], cycles=RARE))


@contextmanager
def running(triggers: Triggers) -> Iterator[Thread]:
    thread = Thread(target=triggers.run, daemon=True)
    thread.start()
    yield thread
    triggers.stop()
    thread.join(10.0)
    assert not thread.is_alive()


def test_the_first_cycle_is_of_every_stage_and_comes_at_once(story: Story) -> None:
    with running(Triggers(story.daemon)):
        until(lambda: story.seen)
    assert story.seen[0].stages == ALL_STAGES


def test_the_status_tells_when_each_stage_runs_next(story: Story) -> None:
    triggers = Triggers(story.daemon)
    board = StatusBoard(story.ports.announcer, "me", lambda: story.policy)
    board.upcoming = triggers.upcoming
    story.daemon.listeners.insert(0, board.observe)
    with running(triggers):
        until(lambda: story.seen)
    told = yaml.safe_load(story.world.announcer.status)["next"]
    assert set(told) == {"scheduling", "autoscaling", "cleaning"}
    assert all(3500 < datetime.fromisoformat(str(at)).timestamp() - story.start <= 3600 for at in told.values())


def test_work_that_arrives_brings_a_cycle_forward(story: Story) -> None:
    with running(Triggers(story.daemon)):
        until(lambda: story.seen)
        story.world.cluster.arrive(job("a"))
        until(lambda: any(result.plan.launch for result in story.seen))


def test_a_cycle_that_fails_is_told_and_ends_nothing(story: Story) -> None:
    why: list[str] = []
    story.world.cluster.faults.arrange("observe", TransientError("the API server is away"))
    triggers = Triggers(story.daemon, on_failure=why.append)
    with running(triggers):
        until(lambda: why)
        triggers.request(ALL_STAGES)
        until(lambda: story.seen)
    assert why == ["the API server is away"]


def test_work_that_came_before_a_cycle_that_failed_is_placed_by_the_next(story: Story) -> None:
    why: list[str] = []
    with running(Triggers(story.daemon, on_failure=why.append)):
        until(lambda: story.seen)
        story.world.cluster.faults.arrange("observe", TransientError("the API server is away"))
        story.world.cluster.arrive(job("a"))
        until(lambda: any(result.plan.launch for result in story.seen))
    assert why == ["the API server is away"]


def test_who_may_not_go_on_ends_by_himself(story: Story) -> None:
    may = [True]
    with running(Triggers(story.daemon, may_go_on=lambda: may[0])) as thread:
        until(lambda: story.seen)
        may[0] = False
        thread.join(10.0)
        assert not thread.is_alive()


def test_a_new_policy_holds_from_the_next_cycle_on(story: Story) -> None:
    triggers = Triggers(story.daemon)
    with running(triggers):
        until(lambda: story.seen)
        policy = msgspec.structs.replace(story.policy, max_wait_for_capacity_s=7.0)
        triggers.adopt(policy)
        until(lambda: len(story.seen) == 2)
    assert story.daemon.policy is policy


def test_the_edge_has_cycles_of_its_own_where_there_is_one(story: Story) -> None:
    often = msgspec.structs.replace(story.policy, edge=EdgePolicy(period_s=0.05))
    story.daemon.adopt(often)
    triggers = Triggers(story.daemon)
    with running(triggers):
        until(lambda: story.seen)
        story.world.add_nodes([make_node("far")])
        triggers.request(EVENT_STAGES)
        until(lambda: len(story.seen) > 1)
        assert [result for result in story.seen[1:] if Stage.EDGE in result.stages] == []
        story.world.add_nodes([make_node("near", labels={"htas.io/tier": "edge"})])
        triggers.request(EVENT_STAGES)
        until(lambda: sum(Stage.EDGE in result.stages for result in story.seen) > 2)
