"""Looking ahead: what waits for room about to free, what is bought before it is missed, and which nodes are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, Fallback, FallbackMode, Limits, NodeGroup, Workload
from htas.model.reasons import Kept, Unplaced
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    batch_group,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

FULL = owned_node("full", "batch", "m3.small", cpu="2", memory="4Gi")
IDLE = owned_node("idle", "batch", "m3.small", cpu="2", memory="4Gi")


def came(ages_s: Iterable[float], runs_s: float = 600.0) -> list[Pod]:
    """Jobs of a quarter of a machine that came so long ago, run already, and fill the node they are on."""
    return [
        running(make_job(f"came-{i}", runs_s, cpu="500m", memory="1Gi", created_at=NOW - age), "full", since_s=age - 1)
        for i, age in enumerate(ages_s)
    ]


def planned(pods: Iterable[Pod], look_ahead_s: float = 120.0, nodes: Iterable[object] = (FULL,)) -> Plan:
    policy = make_policy([batch_group(cleaning=CleaningRules(empty_for_s=0.0))], look_ahead_s=look_ahead_s)
    machines = [node for node in (FULL, IDLE) if node in nodes]
    snapshot = make_snapshot(machines, pods, claims=tuple(map(ready_claim, machines)))
    return plan(snapshot, policy, NOW)


STEADY = (10, 40, 70, 100)
"""One job every half minute."""


@pytest.mark.parametrize(
    ("ages_s", "look_ahead_s", "want"),
    [
        pytest.param(STEADY, 120, 1, id="work comes steadily and has no room: a machine is bought ahead"),
        pytest.param(STEADY, 0, 0, id="looking ahead is off: nothing waits, nothing is bought"),
        pytest.param((10, 11, 12, 13), 120, 0, id="a burst is not expected again"),
        pytest.param((10, 100, 101, 102), 120, 0, id="nothing came in two of the four parts"),
        pytest.param((130, 160, 190, 220), 120, 0, id="it came longer ago"),
    ],
)
def test_machines_are_bought_for_work_that_comes_steadily(
    ages_s: tuple[float, ...], look_ahead_s: float, want: int
) -> None:
    made = planned(came(ages_s), look_ahead_s)
    assert len(made.launch) == want
    assert all((launch.pods, "expected" in launch.why) == ((), True) for launch in made.launch)


@pytest.mark.parametrize(
    ("changed", "want"),
    [
        pytest.param({"started_at": None, "ready_since": None}, 1, id="on a node, about to start"),
        pytest.param({"started_at": None, "node": "nowhere"}, 0, id="for a node that does not exist"),
        pytest.param({"started_at": None, "node": None, "gates": ("wait",)}, 0, id="behind a gate"),
        pytest.param({"started_at": None, "node": None, "scheduler": "mine"}, 0, id="of another scheduler"),
        pytest.param({"started_at": None, "node": None, "deleted_at": NOW}, 0, id="deleted before they began"),
        pytest.param({"deleted_at": NOW}, 1, id="on their way out, having run"),
    ],
)
def test_only_pods_that_could_run_tell_of_work_to_come(changed: dict[str, object], want: int) -> None:
    pods = [msgspec.structs.replace(pod, **changed) for pod in came(STEADY)]
    full = running(make_pod("full", "2", "4Gi"), "full")
    assert len([launch for launch in planned([*pods, full]).launch if not launch.pods]) == want


def test_what_is_expected_fits_the_machines_bought_for_it() -> None:
    """Half of four jobs, each of half an m3.xsmall: one of it, not two of the smallest."""
    assert Counter(launch.flavour for launch in planned(came(STEADY)).launch) == {"m3.xsmall": 1}


def test_a_node_with_room_for_expected_work_is_kept_and_goes_when_none_comes_any_more() -> None:
    kept = {keeping.node: keeping.reason for keeping in planned(came(STEADY), nodes=(FULL, IDLE)).kept}
    assert kept["idle"] is Kept.NEEDED
    removed = planned(came((130, 160, 190, 220)), nodes=(FULL, IDLE)).remove
    assert [removing.node for removing in removed] == ["idle"]


@pytest.mark.parametrize(
    ("left_s", "waited_s", "want"),
    [
        pytest.param(90, 10, Unplaced.CAPACITY_FREES_SOON, id="one ends before a machine could come: it waits"),
        pytest.param(150, 10, None, id="none ends so soon: a machine is bought"),
        pytest.param(90, 190, None, id="it has waited too long already: a machine is bought"),
    ],
)
def test_work_waits_for_room_that_frees_sooner_than_a_machine_comes(
    left_s: float, waited_s: float, want: Unplaced | None
) -> None:
    """One of four jobs on a full node ends; the node itself goes on for long."""
    ages = (800, 810, 820, 830)
    pods = [*came(ages[:3], runs_s=3000), *(came(ages[3:], runs_s=829 + left_s))]
    pods[3] = running(
        make_job("ends", 829 + left_s, cpu="500m", memory="1Gi", created_at=NOW - 830), "full", since_s=829
    )
    waiting = make_job("new", cpu="500m", memory="1Gi", created_at=NOW - waited_s)
    made = planned([*pods, waiting])
    assert {item.pod: item.reason for item in made.unplaced} == ({} if want is None else {waiting.key: want})
    assert len(made.launch) == (want is None)


def test_two_cannot_wait_for_the_room_of_one() -> None:
    pods = [*came((800, 810, 820), runs_s=3000)]
    pods.append(running(make_job("ends", 900, cpu="500m", memory="1Gi", created_at=NOW - 830), "full", since_s=829))
    new = [make_job(f"new-{i}", cpu="500m", memory="1Gi") for i in range(2)]
    made = planned([*pods, *new])
    assert len(made.unplaced) == 1
    assert [len(launch.pods) for launch in made.launch] == [1]


def test_who_has_waited_too_long_is_placed_before_longer_jobs() -> None:
    """A node has room for one of two; the long one would be first, had the short one not waited for three minutes."""
    node = owned_node("node", "batch", "t3.xsmall", cpu="1", memory="1Gi")
    long = make_job("long", 600, cpu="800m", memory="800Mi", created_at=NOW - 10)
    for waited_s, want in ((100, "default/long"), (181, "default/short")):
        short = make_job("short", 120, cpu="800m", memory="800Mi", created_at=NOW - waited_s)
        snapshot = make_snapshot([node], [long, short], claims=(ready_claim(node),))
        made = plan(snapshot, make_policy([batch_group()]), NOW)
        assert [bind.pod for bind in made.bind] == [want]


JOBS = tuple(
    running(make_job(f"j{i}", 3600, cpu="500m", memory="64Mi", created_at=NOW - 15 - 30 * i), "full", since_s=10)
    for i in range(4)
)
"""One every half minute: four more are expected."""


@pytest.mark.parametrize("look_ahead_s", [0.0, 120.0])
def test_nobody_else_leaves_because_of_work_that_is_only_expected(look_ahead_s: float) -> None:
    """The pod of importance 100 needs the room of the lesser one; expected jobs would fit the rest of that node."""
    nodes = [make_node("full", "4", "8Gi"), make_node("half", "4", "8Gi")]
    pods = [
        running(make_pod("big", "2", "1Gi", priority=1000), "full", 3600),
        running(make_pod("low", "2", "1Gi"), "half", 3600),
        make_pod("high", "3", "1Gi", priority=100),
        *JOBS,
    ]
    policy = make_policy(
        limits=Limits(max_nodes=0), look_ahead_s=look_ahead_s, fallback=Fallback(mode=FallbackMode.PREEMPT)
    )
    made = plan(make_snapshot(nodes, pods), policy, NOW)
    assert [(item.pod, item.beneficiary) for item in made.preempt] == [("default/low", "default/high")]


@pytest.mark.parametrize(
    ("most", "want"),
    [
        pytest.param(1, {"svc": ("default/svc",)}, id="the last machine allowed goes to the pod that waits"),
        pytest.param(2, {"svc": ("default/svc",)}, id="none is left for what comes otherwise: none is bought ahead"),
        pytest.param(9, {"svc": ("default/svc",), "batch": ()}, id="with room in the limit, one is bought ahead"),
    ],
)
def test_what_waits_is_bought_for_before_what_is_expected(most: int, want: dict[str, tuple[str, ...]]) -> None:
    pods = [
        running(make_pod("big", "2", "1Gi"), "full", 3600),
        make_pod("svc", "1", "1Gi", created_at=NOW - 100),
        *JOBS,
    ]
    groups = [NodeGroup("batch", Workload.BATCH), NodeGroup("svc", Workload.SERVICE)]
    policy = make_policy(groups, limits=Limits(max_nodes=most))
    made = plan(make_snapshot([make_node("full", "4", "8Gi")], pods), policy, NOW)
    assert {launch.group: launch.pods for launch in made.launch} == want
