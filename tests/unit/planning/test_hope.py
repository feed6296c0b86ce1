"""Pods that nobody will ever have room for hold no node back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from htas.model.constraints import Constraints
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.reasons import Kept
from htas.model.snapshot import Memory
from htas.model.stages import Stage
from htas.planning.planner import plan
from tests.builders import NOW, make_node, make_pod, owned_node, running
from tests.unit.planning.cleaning.world import LONG_AGO, job_on, policy_with, quiet_snapshot

PLACING_AND_CLEANING = frozenset({Stage.SCHEDULING, Stage.CLEANING})
ON_TAPE = Constraints(node_selector=(("disk", "tape"),))


def planned(waiting: Iterable[Pod], others: Iterable[Node] = (), **fields: Any) -> Plan:
    """Two nodes of 4 cores, each with a job of 1 core that fits on the other. Nothing is bought; 8 cores are on sale."""
    pods = [job_on("n1", "one"), job_on("n2", "two"), *waiting]
    policy = policy_with(limits=Limits(max_nodes=2), fallback=Fallback(mode=FallbackMode.OFF))
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("n2"), *others], pods, **fields)
    return plan(snapshot, policy, NOW, PLACING_AND_CLEANING)


HOPELESS = [
    pytest.param(make_pod("huge", "64"), id="larger than every machine"),
    pytest.param(make_pod("picky", constraints=ON_TAPE), id="a selector that nothing meets"),
    pytest.param(make_pod("lost", constraints=Constraints(claims=("gone",))), id="a volume claim that is not there"),
    pytest.param(make_pod("new", constraints=Constraints(unsupported=("a DRA claim",))), id="asks for the unknown"),
]


@pytest.mark.parametrize("pod", HOPELESS)
def test_who_waits_for_ever_holds_no_node(pod: Pod) -> None:
    made = planned([pod])
    assert [removing.node for removing in made.remove] == ["n1"]
    assert [item.pod for item in made.unplaced] == [pod.key]


@pytest.mark.parametrize("pod", HOPELESS)
def test_the_queue_is_empty_once_only_such_pods_are_left(pod: Pod) -> None:
    since = {"n1": LONG_AGO, "n2": LONG_AGO}
    made = planned([pod], memory=Memory(since, since, None))
    assert made.memory.queue_empty_since == NOW
    assert {item.node: item.reason for item in made.kept} == {"n1": Kept.QUEUE_NOT_EMPTY, "n2": Kept.QUEUE_NOT_EMPTY}


FULL = running(make_pod("filling", "4"), "tape")


@pytest.mark.parametrize(
    ("waiting", "others"),
    [
        pytest.param([make_pod("large", "8")], [], id="a machine on sale, though a limit forbids it"),
        pytest.param(
            [make_pod("picky", constraints=ON_TAPE), FULL],
            [make_node("tape", labels={"disk": "tape"})],
            id="a node that is full now",
        ),
        pytest.param([make_pod("huge", "64"), make_pod("large", "8")], [], id="one beside a hopeless one"),
    ],
)
def test_who_may_yet_get_room_holds_them(waiting: list[Pod], others: list[Node]) -> None:
    made = planned(waiting, others)
    assert not made.remove
    assert made.memory.queue_empty_since is None
