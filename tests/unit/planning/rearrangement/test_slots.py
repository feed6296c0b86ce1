"""Slots: who fills one, who may have it, and when it is given up."""

from __future__ import annotations

from typing import Any

import msgspec

from htas.model.moves import MigrationMethod
from htas.model.pods import Pod
from htas.model.policy import Limits
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.model.snapshot import ClusterSnapshot, ClusterView, Ended
from htas.planning.cluster.slots import PATIENCE_S, progress
from htas.planning.planner import plan
from tests.builders import NOW, make_move, make_node, make_pod, make_policy, running

NODES = (make_node("a"), make_node("b"))
MOVED = running(make_pod("web-1", "2", uid="u1"), "a")
GOING = msgspec.structs.replace(MOVED, deleted_at=NOW)
AGAIN = make_pod("web-2", "2", uid="u2")
SLOT = Slot(MOVED, "b", "a", MigrationMethod.EVICT)


def opened(*slots: Slot, **fields: Any) -> OpenRearrangement:
    return OpenRearrangement(NOW, 10, slots or (SLOT,), **fields)


def after(rearrangement: OpenRearrangement, *pods: Pod, now: float = NOW, **view: Any) -> OpenRearrangement:
    return progress(rearrangement, ClusterView(NODES, pods, **view), now)


def test_while_its_pod_runs_at_its_source_nothing_has_happened() -> None:
    assert after(opened(), MOVED) == opened()


def test_it_is_away_once_its_pod_is_on_its_way_out() -> None:
    [slot] = after(opened(), GOING).slots
    assert (slot.is_away, slot.left_at) == (True, NOW)


def test_another_pod_of_the_same_owner_and_shape_fills_it() -> None:
    done = after(opened(), GOING, running(AGAIN, "b"))
    assert (done.is_complete, done.moved, done.seated) == (True, 1, 0)


def test_a_twin_fills_it_when_its_source_is_gone_whatever_its_name_and_owner() -> None:
    bare = msgspec.structs.replace(MOVED, owner=None)
    twin = running(make_pod("web-1-twin", "2", uid="u5", owner=None, twin_of="u1"), "b")
    under_way = after(opened(Slot(bare, "b", "a", MigrationMethod.CHECKPOINT)), bare, twin)
    assert [slot.twin for slot in under_way.slots] == ["u5"]
    done = after(under_way, msgspec.structs.replace(twin, twin_of=""))
    assert (done.is_complete, done.moved) == (True, 1)


def test_one_pod_fills_one_slot_only() -> None:
    other = Slot(running(make_pod("web-9", "2", uid="u9"), "a"), "b", "a", MigrationMethod.EVICT)
    once = after(opened(SLOT, other), running(AGAIN, "b"))
    twice = after(once, running(AGAIN, "b"))
    assert (len(once.slots), twice.slots, twice.moved) == (1, once.slots, 1)


def test_who_was_there_from_the_start_fills_none() -> None:
    there = running(AGAIN, "b")
    assert len(after(opened(settled=("u2",)), GOING, there).slots) == 1


def test_another_shape_owner_or_node_fills_none() -> None:
    strangers = [
        running(make_pod("web-3", "1", uid="u3"), "b"),
        running(make_pod("other-1", "2", uid="u4", owner=None), "b"),
        running(make_pod("web-5", "2", uid="u5"), "a"),
    ]
    assert len(after(opened(), *strangers).slots) == 1


def test_a_pod_that_was_moved_with_its_progress_has_filled_it() -> None:
    assert after(opened(), running(MOVED, "b")).moved == 1


def test_a_twin_fills_it_once_it_has_taken_over() -> None:
    twin = running(make_pod("web-1-m", "2", uid="u7", twin_of="u1", owner=None), "b")
    assert len(after(opened(), MOVED, twin).slots) == 1
    assert after(opened(), running(make_pod("web-1-m", "2", uid="u7", twin_of="u1"), "b")).moved == 1


def test_it_is_given_up_where_nobody_comes() -> None:
    left = after(opened())
    assert len(after(left, now=NOW + PATIENCE_S - 1).slots) == 1
    assert after(left, AGAIN, now=NOW + PATIENCE_S).slots, "somebody waits who may have it"
    given_up = after(left, now=NOW + PATIENCE_S)
    assert (given_up.is_complete, given_up.moved) == (True, 0)


def test_it_is_given_up_at_once_where_its_pod_has_ended_well() -> None:
    assert after(opened(), ended=(Ended("u1", True),)).is_complete


def test_a_waiting_pod_that_somebody_bound_elsewhere_needs_no_seat() -> None:
    seat = Slot(AGAIN, "b")
    done = after(opened(seat), running(AGAIN, "a"))
    assert (done.is_complete, done.seated) == (True, 0)


def planned(rearrangement: OpenRearrangement, *pods: Pod, **fields: Any) -> dict[str, str]:
    """Binds of a plan, for which nothing could be bought."""
    snapshot = ClusterSnapshot(NOW, ClusterView(NODES, pods), rearrangement=rearrangement, **fields)
    made = plan(snapshot, make_policy(limits=Limits(max_nodes=0)), NOW)
    assert not made.launch
    return {bind.pod: bind.node for bind in made.bind}


def test_room_of_a_slot_is_nobody_elses() -> None:
    filler = running(make_pod("filler", "2"), "a")
    newcomer = make_pod("new", "3", uid="new")
    assert planned(opened(), MOVED, filler, newcomer) == {}
    assert planned(opened(settled=("filler",)), GOING, filler, AGAIN, newcomer) == {"default/web-2": "b"}


def test_room_of_a_slot_to_which_its_pod_is_moving_is_kept_once() -> None:
    moving = Slot(MOVED, "b", "a", MigrationMethod.CHECKPOINT)
    small = make_pod("small", "2", uid="small")
    there = running(make_pod("there", "2", uid="there", owner=None), "a")
    move = make_move(MOVED.key, "a", "b", MigrationMethod.CHECKPOINT)
    assert planned(opened(moving), MOVED, there, small, moves=(move,)) == {"default/small": "b"}


def test_what_waits_for_its_seat_is_not_bought_for() -> None:
    full = running(make_pod("full", "4", uid="full", owner=None), "b")
    seat = Slot(AGAIN, "b")
    victims = opened(seat, SLOT)
    snapshot = ClusterSnapshot(NOW, ClusterView(NODES, (MOVED, full, AGAIN)), rearrangement=victims)
    assert plan(snapshot, make_policy(), NOW).launch == ()


SUGGESTED = opened(is_suggestion=True)


def test_a_suggestion_loses_a_slot_as_soon_as_its_controller_has_all_its_pods() -> None:
    """Of three one is on its way out: two and its replacement are all that the owner wants."""
    others = [running(make_pod(f"web-{i}", "2", uid=f"u{i}"), "a") for i in (7, 8)]
    waits = after(SUGGESTED, GOING, *others)
    assert (len(waits.slots), waits.lost) == (1, 0)
    elsewhere = after(waits, *others, running(AGAIN, "a"))
    assert (elsewhere.slots, elsewhere.lost) == ((), 1)
    patient = after(opened(), *others, running(AGAIN, "a"))
    assert (len(patient.slots), patient.lost) == (1, 0), "one that seats work waits for a while"


def test_a_suggestion_is_complete_when_its_pods_are_ready() -> None:
    starting = msgspec.structs.replace(running(AGAIN, "b"), ready_since=None)
    bound = after(SUGGESTED, starting)
    assert (bound.slots, bound.moved, bound.starting, bound.is_complete) == ((), 1, ("u2",), False)
    assert after(bound, starting) == bound
    done = after(bound, running(AGAIN, "b"))
    assert (done.starting, done.moved, done.lost, done.is_complete) == ((), 1, 0, True)
    assert after(opened(), starting).is_complete, "one that seats work is complete when that is bound"


def test_a_suggestion_whose_pod_goes_before_it_is_ready_is_contradicted() -> None:
    starting = msgspec.structs.replace(running(AGAIN, "b"), ready_since=None)
    bound = after(SUGGESTED, starting)
    for left in ((), (msgspec.structs.replace(starting, deleted_at=NOW),)):
        assert (after(bound, *left).starting, after(bound, *left).lost) == ((), 1)


def test_a_suggestion_loses_nothing_while_the_replacement_waits() -> None:
    others = [running(make_pod(f"web-{i}", "2", uid=f"u{i}"), "a") for i in (7, 8)]
    held = after(SUGGESTED, *others, AGAIN)
    assert (len(held.slots), held.lost) == (1, 0)
