"""Circles: pods that wait for each other's room, and which of them may be down for it."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.nodes import GROUP_LABEL
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import CleaningRules, Limits, MigrationMethod, NodeGroup
from htas.model.rearrangement import NOBODY, OpenRearrangement, Slot
from htas.model.reasons import Cancelled
from htas.planning.disrupt.rearrangement.carrying import carried_on
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, running

POLICY = make_policy(
    [NodeGroup("any", cleaning=CleaningRules(migration=MigrationMethod.REPLACE), limits=Limits(max_nodes=0))]
)
NODES = [make_node(name, "4", "64Gi", labels={GROUP_LABEL: "any"}) for name in ("a", "b")]


def of(service: str, name: str, node: str | None, cpu: str = "3", priority: int = 0) -> Pod:
    owner = Owner("ReplicaSet", service, name, 1)
    pod = make_pod(name, cpu, owner=owner, uid=name, priority=priority, disruption={MAY_MIGRATE: "true"})
    return pod if node is None else running(pod, node)


def in_a_circle(
    services: tuple[str, str], method: MigrationMethod, work: int | None
) -> tuple[list[Pod], OpenRearrangement]:
    """x goes from a to b, y from b to a, and neither has room beside the other; `work` of a priority is to have what is
    left; None: all of it is a suggestion."""
    x, y = of(services[0], "x", "a"), of(services[1], "y", "b")
    slots = [Slot(x, "b", "a", method.value, is_aim=work is None), Slot(y, "a", "b", method.value)]
    pods = [x, y]
    if work is not None:
        waiting = of("work", "work", None, "1", work)
        pods.append(waiting)
        slots.append(Slot(waiting, "a"))
    priority = NOBODY if work is None else work
    return pods, OpenRearrangement(NOW - 10, priority, tuple(slots), is_suggestion=work is None)


@pytest.mark.parametrize(
    ("services", "work", "leave"),
    [
        pytest.param(("web", "api"), 0, ["x"], id="one of each service is down"),
        pytest.param(("web", "web"), 0, [], id="both of one would be"),
        pytest.param(("web", "web"), 10, ["x"], id="for more important work"),
    ],
)
def test_a_circle_is_broken_if_the_next_may_leave_then(services: tuple[str, str], work: int, leave: list[str]) -> None:
    pods, current = in_a_circle(services, MigrationMethod.EVICT, work)
    carrying = carried_on(make_snapshot(NODES, pods, rearrangement=current), POLICY, NOW).carrying
    assert ([step.uid for step in carrying.steps], carrying.cancel) == (leave, None)


def test_the_next_of_a_circle_is_not_held_at_its_gate() -> None:
    """x is down until y has left: y may, although it is of the same priority as the work."""
    pods, current = in_a_circle(("web", "api"), MigrationMethod.EVICT, 0)
    x = msgspec.structs.replace(pods[0], node=None, started_at=None, ready_since=None, uid="x2", name="x2")
    away = msgspec.structs.replace(current.slots[0], left_at=NOW - 5)
    current = msgspec.structs.replace(current, slots=(away, *current.slots[1:]))
    carrying = carried_on(make_snapshot(NODES, [x, *pods[1:]], rearrangement=current), POLICY, NOW).carrying
    assert [step.uid for step in carrying.steps] == ["y"]


@pytest.mark.parametrize(
    ("method", "leave", "cancelled"),
    [(MigrationMethod.REPLACE, [], Cancelled.ROOM_TAKEN), (MigrationMethod.EVICT, ["x"], None)],
)
def test_a_suggestion_breaks_no_circle_of_twins(
    method: MigrationMethod, leave: list[str], cancelled: Cancelled | None
) -> None:
    pods, current = in_a_circle(("web", "api"), method, None)
    nodes = [msgspec.structs.replace(node, labels={**node.labels, "htas.io/tier": "edge"}) for node in NODES]
    carrying = carried_on(make_snapshot(nodes, pods, rearrangement=current), POLICY, NOW).carrying
    assert ([step.uid for step in carrying.steps], carrying.cancel) == (leave, cancelled)
