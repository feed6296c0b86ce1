"""Whether a rearrangement under way still has the room that it counts on, once all who are to leave have left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.moves import MigrationMethod
from htas.model.pods import Pod
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.model.reasons import OutcomeReason
from htas.planning.disrupt.rearrangement.advance import advance_on
from tests.builders import NOW, make_move, make_pod, make_snapshot, running
from tests.unit.planning.rearrangement.test_gates import NODES, POLICY, of

WORK, LEAVES = of("work", "work", None, priority=10), of("web", "x", "a", "2")
SLOTS = (Slot(LEAVES, "b", "a", MigrationMethod.EVICT), Slot(WORK, "a"))
"""x goes from a to b, both of four cores, so that work of three cores has room on a."""


def carried(*others: Pod, **fields: Any) -> Any:
    current = OpenRearrangement(NOW - 10, 10, SLOTS, **fields)
    return advance_on(make_snapshot(NODES, [WORK, LEAVES, *others], rearrangement=current), POLICY, NOW).carrying


def stranger(node: str, cpu: str, **fields: Any) -> Pod:
    return msgspec.structs.replace(running(make_pod("stranger", cpu), node), **fields)


@pytest.mark.parametrize(
    ("others", "leaves"),
    [
        pytest.param([], ["x"], id="nobody else"),
        pytest.param([stranger("b", "2")], ["x"], id="beside somebody who came where it goes, and leaves room"),
        pytest.param([stranger("b", "3", deleted_at=NOW)], [], id="it waits for one who is on the way out"),
        pytest.param([stranger("a", "1")], ["x"], id="beside one who came where work goes, and leaves room"),
        pytest.param([stranger("a", "2", deleted_at=NOW)], ["x"], id="one of those is on the way out"),
    ],
)
def test_it_goes_on_beside(others: list[Pod], leaves: list[str]) -> None:
    found = carried(*others)
    assert (found.cancel, [step.uid for step in found.steps]) == (None, leaves)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        pytest.param(stranger("b", "3"), "b has no room for default/x any more", id="where it goes"),
        pytest.param(stranger("a", "2"), "a has no room for default/work any more", id="where work goes"),
    ],
)
def test_room_that_somebody_has_taken_ends_it(other: Pod, told: str) -> None:
    found = carried(other)
    assert (found.cancel, found.message, found.steps) == (OutcomeReason.ROOM_TAKEN, told, ())


def test_the_room_of_those_who_are_preempted_for_it_is_free() -> None:
    victim = stranger("a", "2")
    assert carried(victim, victims=(victim,)).cancel is None


def test_room_to_which_a_pod_is_moving_is_counted_once() -> None:
    """x has a twin on its way: the move keeps its two cores, a stranger has the other two."""
    slots = (Slot(LEAVES, "b", "a", MigrationMethod.CHECKPOINT), SLOTS[1])
    pods, move = [WORK, LEAVES, stranger("b", "2")], make_move(LEAVES.key, "a", "b", MigrationMethod.CHECKPOINT)
    current = OpenRearrangement(NOW - 10, 10, slots)
    found = advance_on(make_snapshot(NODES, pods, rearrangement=current, moves=(move,)), POLICY, NOW).carrying
    assert found.cancel is None
