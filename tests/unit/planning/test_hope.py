"""Pods that nobody will ever have room for hold no node back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.reasons import Kept
from htas.model.snapshot import Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import plan
from tests.builders import NOW, labels_are, make_node, make_pod, owned_node, running
from tests.unit.planning.cleaning.world import LONG_AGO, job_on, policy_with, quiet_snapshot

PLACING_AND_CLEANING = frozenset({Stage.SCHEDULING, Stage.CLEANING})
ON_TAPE = Constraints(node_selector=(("disk", "tape"),))
WEB = labels_are(app="web")


def beside(**labels: str) -> Constraints:
    return Constraints(affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(**labels)),))


def spread(key: str, min_domains: int | None = None) -> Constraints:
    return Constraints(spread=(SpreadConstraint(key, 1, WEB, min_domains),))


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
    pytest.param(make_pod("lonely", constraints=beside(no="one")), id="a required affinity to nobody"),
    pytest.param(make_pod("nowhere", constraints=spread("rack")), id="spread over a label that nothing has"),
    pytest.param(
        make_pod("everywhere", labels={"app": "web"}, constraints=spread("rack", 99)), id="spread over 99 domains"
    ),
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
WEB_ON_N1 = running(make_pod("web", "1", labels={"app": "web"}), "n1")


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
        pytest.param(
            [make_pod("near", "4", constraints=beside(app="web")), WEB_ON_N1],
            [],
            id="affinity to who runs on a full node",
        ),
        pytest.param(
            [make_pod("apart", "8", labels={"app": "web"}, constraints=spread(HOSTNAME_LABEL)), WEB_ON_N1],
            [],
            id="a spread that a machine on sale would keep, though a limit forbids it",
        ),
    ],
)
def test_who_may_yet_get_room_holds_them(waiting: list[Pod], others: list[Node]) -> None:
    made = planned(waiting, others)
    assert not made.remove
    assert made.memory.queue_empty_since is None


@pytest.mark.parametrize("pod", HOPELESS)
@pytest.mark.parametrize("stages", [PLACING_AND_CLEANING, ALL_STAGES], ids=["buying not due", "buying due"])
def test_there_is_as_little_hope_in_cycles_that_buy(pod: Pod, stages: frozenset[Stage]) -> None:
    """Else the queue would be empty in every other cycle, and never for long enough."""
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("n2")], [job_on("n1", "one"), job_on("n2", "two"), pod])
    made = plan(snapshot, policy_with(fallback=Fallback(mode=FallbackMode.OFF)), NOW, stages)
    assert made.memory.queue_empty_since == LONG_AGO
