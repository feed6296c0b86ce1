"""Pods below `fallback.preemptBelow` give way before anything is launched, as under kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import DO_NOT_DISRUPT
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits, Policy, Promises
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import Unplaced
from htas.model.search_failures import OptionalSearch
from htas.planning.planner import plan
from tests.builders import NECTAR, NOW, make_policy, make_snapshot
from tests.laws.test_optional_search_laws import Failing, accounted, pending, without_room_made
from tests.unit.planning.preemption.world import budget, incoming, machine, on, planned

PAUSE = -10
"""The priority that Cluster Autoscaler's FAQ gives to pause pods."""
EVERY_PRIORITY = 2**31 - 1


def policy(most: int = 5, **fallback: Any) -> Policy:
    return make_policy(limits=Limits(max_nodes=most), fallback=Fallback(**fallback))


def pause(node: str, name: str = "pause", cpu: str = "4", **how: Any) -> Pod:
    return on(node, name, cpu, **{"priority": PAUSE, **how})


def served(plan: Plan) -> dict[str, str]:
    """What comes of each pending pod: the node it is nominated or bound to, or the flavour launched for it."""
    found = {item.pod[8:]: item.node for item in plan.bind}
    found |= {item.pod[8:]: item.node for item in plan.nominate}
    found |= {seat.pod[8:]: seat.node for each in plan.proposals for seat in each.seats}
    return found | {key[8:]: "launched" for launch in plan.launch for key in launch.pods}


def victims(plan: Plan) -> list[str]:
    return sorted(item.pod[8:] for item in plan.preempt)


@pytest.mark.parametrize(
    ("there", "comes", "how", "expected"),
    [
        pytest.param([pause("n")], incoming(priority=0), policy(), "n", id="pause pods give way to an ordinary pod"),
        pytest.param([pause("n", priority=-1)], incoming(priority=0), policy(), "n", id="whatever negative priority"),
        pytest.param([pause("n", priority=-1000)], incoming(priority=PAUSE), policy(), "n", id="also among themselves"),
        pytest.param([pause("n")], incoming(priority=PAUSE), policy(), "launched", id="not to their own priority"),
        pytest.param([on("n", "a")], incoming(priority=1000), policy(), "launched", id="ordinary work goes on"),
        pytest.param(
            [on("n", "a")], incoming(priority=1), policy(preempt_below=EVERY_PRIORITY), "n", id="all, where one says so"
        ),
        pytest.param(
            [pause("n")], incoming(priority=0), policy(preempt_below=-10), "launched", id="below -10, not -10"
        ),
        pytest.param(
            [pause("n")], incoming(priority=0), policy(mode=FallbackMode.OFF), "launched", id="nothing is preempted"
        ),
        pytest.param(
            [pause("n", "p1", "2"), on("n", "a", "2")],
            incoming("4", 1000),
            policy(),
            "launched",
            id="not where ordinary work would have to leave as well",
        ),
        pytest.param(
            [pause("n")],
            msgspec.structs.replace(incoming(priority=0), preempts=False),
            policy(),
            "launched",
            id="Never",
        ),
        pytest.param(
            [pause("n", disruption={DO_NOT_DISRUPT: "true"})], incoming(priority=0), policy(), "launched", id="promises"
        ),
    ],
)
def test_who_gives_way_before_a_machine_is_launched(
    there: Sequence[Pod], comes: Pod, how: Policy, expected: str
) -> None:
    plan = planned([machine("n")], [*there, comes], how)
    assert served(plan)["p"] == expected
    assert bool(plan.preempt) == (expected == "n")


def test_a_pod_with_free_room_preempts_nobody() -> None:
    plan = planned([machine("n"), machine("m")], [pause("n"), incoming(priority=0)], policy())
    assert served(plan) == {"p": "m"}
    assert not plan.preempt


def test_only_those_leave_who_have_to() -> None:
    plan = planned([machine("n")], [pause("n", f"p{i}", "1") for i in range(4)] + [incoming("2", 0)], policy())
    assert len(victims(plan)) == 2


def test_a_machine_on_its_way_is_no_room_yet() -> None:
    """It was launched for an evicted pause pod. The next pod to come preempts the next pause pod, and does not wait."""
    coming = NodeClaim("c", "any", NECTAR[-1].name, ClaimState.REQUESTED, NOW - 60, NOW - 60)
    evicted = incoming("4", PAUSE, "evicted")
    plan = planned([machine("n")], [pause("n"), evicted, incoming("4", 0)], policy(), claims=(coming,))
    assert served(plan) == {"p": "n", "evicted": "c"}
    assert not plan.launch


def test_for_the_others_machines_are_launched_in_the_same_plan() -> None:
    pods = [incoming("4", 0, name) for name in ("a", "b")]
    plan = planned([machine("n")], [pause("n"), *pods], policy())
    assert sorted(served(plan).values()) == ["launched", "n"]
    assert victims(plan) == ["pause"]


def test_where_nothing_can_be_launched_others_are_preempted_for_beside() -> None:
    """The more important pod has the pause pod's room; a victim leaves for one pod alone."""
    there = [pause("n"), on("m", "low", priority=5)]
    waiting = [incoming("4", 100, "high"), incoming("4", 50, "next")]
    how = make_policy(limits=Limits(max_nodes=0), fallback=Fallback(mode=FallbackMode.PREEMPT))
    plan = planned([machine("n"), machine("m")], [*there, *waiting], how)
    assert {(item.pod[8:], item.beneficiary[8:]) for item in plan.preempt} == {("pause", "high"), ("low", "next")}


def test_lesser_work_gets_no_room_that_a_pause_pod_would_have_to_leave_for() -> None:
    """Free: 1 core beside the pause pod. The large pod takes both, before the small one of lower priority has a turn."""
    plan = planned([machine("n")], [pause("n", cpu="3"), incoming("4", 10), incoming("1", 0, "small")], policy())
    assert served(plan) == {"p": "n", "small": "launched"}


def test_budgets_are_kept_or_broken_as_kube_scheduler_does() -> None:
    pods = [pause("n", labels={"app": "foo"}), incoming(priority=0)]
    kept = planned([machine("n")], pods, policy(), budgets=(budget(0),))
    assert served(kept) == {"p": "launched"}
    broken = planned([machine("n")], pods, policy(promises=Promises.AS_KUBE_SCHEDULER), budgets=(budget(0),))
    assert served(broken) == {"p": "n"}


def test_it_goes_on_beside_moves_for_the_edge() -> None:
    moves = OpenRearrangement(started_at=NOW - 1, priority=-(2**31), is_suggestion=True, starting=("zz",))
    plan = planned([machine("n")], [pause("n"), incoming(priority=0)], policy(), rearrangement=moves)
    assert victims(plan) == ["pause"]


def test_the_pod_is_told_whose_room_it_gets() -> None:
    plan = planned([machine("n")], [pause("n"), incoming(priority=0)], policy())
    assert [(item.reason, item.message) for item in plan.unplaced] == [
        (Unplaced.NOMINATED, "nominated to n: default/pause of lower priority leave for it")
    ]


def test_a_preemption_at_once_that_fails_costs_no_plan() -> None:
    """A machine is launched instead."""
    snapshot = make_snapshot([machine("n")], [pause("n"), incoming(priority=0)])
    made = plan(snapshot, policy(), NOW, runner=Failing(OptionalSearch.PREEMPTION))
    assert [failure.search for failure in made.failures] == [OptionalSearch.PREEMPTION]
    assert (served(made)["p"], victims(made)) == ("launched", [])


@pytest.mark.parametrize("spared", [1, 2])
@pytest.mark.parametrize("others", [
    pytest.param([], id="nobody else is pending"),
    pytest.param([incoming("4", 100, "q"), incoming("2", -5, "late")], id="less important work has found room"),
])  # fmt: skip
def test_what_was_decided_at_once_stands_where_the_preemption_after_it_fails(others: list[Pod], spared: int) -> None:
    """The pod had left the queue, and its room was kept, but the plan evicted nobody: in each cycle."""
    pods = [pause("n"), on("m", "a", "2"), incoming(priority=1000), *others]
    how = policy(0, mode=FallbackMode.PREEMPT)
    failing = Failing(OptionalSearch.PREEMPTION, spared=spared)
    snapshot = make_snapshot([machine("n"), machine("m")], pods)
    made = plan(snapshot, how, NOW, runner=failing)
    assert failing.raised
    assert (served(made)["p"], victims(made)) == ("n", ["pause"])
    assert not without_room_made(snapshot, made)
    assert accounted(made) == pending(snapshot)
