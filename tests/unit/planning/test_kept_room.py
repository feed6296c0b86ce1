"""Room that is kept for pods on their way to another node: never twice, and never for nobody."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.disruptions import Drain
from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.pods import Owner, Pod
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    make_job,
    make_move,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    running,
)

LEAVING, ROOM = owned_node("leaving"), owned_node("room")
MOVED = running(make_pod("moved", "3"), "leaving")
GOING = msgspec.structs.replace(MOVED, deleted_at=NOW - 1)
TWIN = running(make_pod("twin", "3", twin_of=MOVED.uid), "room")
NEWCOMER = make_pod("new", "3")


def planned(method: MigrationMethod, *pods: Pod) -> Plan:
    """A node of 4 cores has room for one pod of 3; HTAS may buy more."""
    drain = Drain("leaving", "leaving", "Underutilized", NOW, (make_move(MOVED.key, "leaving", "room", method),))
    return plan(ClusterSnapshot(NOW, ClusterView((LEAVING, ROOM), pods), drains=(drain,)), make_policy(), NOW)


@pytest.mark.parametrize("method", [MigrationMethod.EVICT, MigrationMethod.CHECKPOINT])
def test_room_is_kept_while_the_pod_still_runs_at_its_source(method: MigrationMethod) -> None:
    made = planned(method, MOVED, NEWCOMER)
    assert (made.bind, len(made.launch)) == ((), 1)


def test_once_it_is_evicted_the_room_is_its_replacements() -> None:
    """A pod may take its whole grace period to stop; its controller makes another at once, for which nothing is bought."""
    made = planned(MigrationMethod.EVICT, GOING, NEWCOMER)
    assert ([(bind.pod, bind.node) for bind in made.bind], made.launch) == ([(NEWCOMER.key, "room")], ())


def test_until_its_controller_has_made_another_the_room_is_kept_for_that_one() -> None:
    """A cycle may look in the second between an eviction and the new pod: nobody else gets the room that was found."""
    stranger = make_pod("stranger", "3", owner=Owner("ReplicaSet", "other", "other-uid", 1))
    made = planned(MigrationMethod.EVICT, GOING, stranger)
    assert (made.bind, len(made.launch)) == ((), 1)


def test_once_its_twin_runs_the_room_is_not_counted_twice() -> None:
    small = make_pod("small", "1")
    made = planned(MigrationMethod.CHECKPOINT, MOVED, TWIN, small)
    assert [(bind.pod, bind.node) for bind in made.bind] == [(small.key, "room")]


@pytest.mark.parametrize(
    ("moved", "replicas", "is_surplus"),
    [
        pytest.param(True, 1, True, id="the Job has its pod, which was moved"),
        pytest.param(True, 2, False, id="the Job wants another"),
        pytest.param(True, None, False, id="nobody knows how many it wants"),
        pytest.param(False, 1, False, id="nothing was moved: it is for others to judge"),
    ],
)
def test_no_machine_is_bought_for_a_pod_made_while_its_jobs_other_one_moved(
    moved: bool, replicas: int | None, is_surplus: bool
) -> None:
    owner = Owner("Job", "train", "train-uid", replicas)
    there = running(make_job("train-m1", owner=owner, is_moved=moved), "n1")
    made = make_job("train-2", cpu="2", owner=owner)
    made_plan = plan(make_snapshot([make_node("n1", cpu="1")], [there, made]), make_policy(), NOW)
    assert [item.reason for item in made_plan.unplaced] == ([Unplaced.SURPLUS] if is_surplus else [])
    assert len(made_plan.launch) == (0 if is_surplus else 1)
