"""Which nodes of a rearrangement hang together, what each part of it gains, and whether it still disturbs anybody."""

from __future__ import annotations

import pytest

from htas.model.pods import Pod
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.disrupt.rearrangement.validity import components
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, running

NODES = [make_node(name, "8", "64Gi") for name in "abcd"]


def at(name: str, node: str | None, priority: int = 0) -> Pod:
    pod = make_pod(name, "1", uid=name, priority=priority)
    return pod if node is None else running(pod, node)


def parts(*slots: Slot, victims: tuple[Pod, ...] = ()) -> list[tuple[str, bool, bool]]:
    """Of each part its nodes, whether it gains, and whether it disturbs."""
    current = OpenRearrangement(NOW - 10, 10, slots, victims=victims)
    pods = [*(slot.pod for slot in slots if slot.left_at is None), *victims]
    opening = open_simulation(make_snapshot(NODES, pods, rearrangement=current), make_policy(), NOW)
    return [
        ("".join(sorted(each.nodes)), each.gains, each.disturbs) for each in components(current, opening.reservations)
    ]


SEAT, HIGH_SEAT = Slot(at("w", None), "a"), Slot(at("h", None, 9), "a")
MOVE = Slot(at("m", "a"), "b", "a")


@pytest.mark.parametrize(
    ("slots", "victims", "expected"),
    [
        pytest.param((SEAT,), (), [("a", True, False)], id="a seat gains and disturbs nobody"),
        pytest.param((MOVE,), (), [("ab", False, True)], id="a move by itself gains nothing"),
        pytest.param((SEAT, MOVE), (), [("ab", True, True)], id="a seat whose room a move makes"),
        pytest.param((Slot(at("w", None), "c"), MOVE), (), [("ab", False, True), ("c", True, False)], id="a seat elsewhere"),
        pytest.param((MOVE, Slot(at("n", "b"), "c", "b")), (), [("abc", False, True)], id="a chain of moves"),
        pytest.param((MOVE, Slot(at("n", "c"), "d", "c")), (), [("ab", False, True), ("cd", False, True)], id="two by themselves"),
        pytest.param((SEAT,), (at("v", "a"),), [("a", False, True)], id="a seat for one evicted of the same priority"),
        pytest.param((HIGH_SEAT,), (at("v", "a"),), [("a", True, True)], id="a seat for one evicted of less"),
        pytest.param((SEAT,), (at("v", "a", 9),), [("a", False, True)], id="a seat for one evicted of more"),
        pytest.param((HIGH_SEAT,), (at("v", "a"), at("x", "a")), [("a", True, True)], id="one of more for two of less"),
        pytest.param((SEAT,), (at("v", "d"),), [("a", True, False), ("d", False, True)], id="one evicted elsewhere"),
        pytest.param((Slot(at("m", "a"), "b", "a", is_aim=True),), (), [("ab", True, True)], id="a move that is itself the aim"),
        pytest.param((Slot(at("m", "a"), "b", "a", left_at=NOW),), (), [("ab", True, False)], id="one that has left and is to come back"),
    ],
)  # fmt: skip
def test_parts(slots: tuple[Slot, ...], victims: tuple[Pod, ...], expected: list[tuple[str, bool, bool]]) -> None:
    assert parts(*slots, victims=victims) == expected
