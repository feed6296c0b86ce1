"""Where less important work has to give way, each priority is placed and preempted for in its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.reasons import Unplaced
from htas.planning import schedule
from htas.planning.disrupt.preemption import preemptor
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.scale_up import ScaleUp, buy
from tests.builders import NOW, constrained, labels_are, make_policy
from tests.unit.planning.preemption.world import HIGH, LOW, MIDDLE, ending, incoming, machine, on, planned

BATCH = WorkKind.BATCH


def near(app: str) -> Constraints:
    return constrained(affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app=app), ("default",)),))


def of(app: str) -> dict[str, str]:
    return {"app": app}


def served(plan: Plan) -> dict[str, str]:
    """Who is bound, kept room for or bought for, and where."""
    found = {item.pod[8:]: item.node for item in plan.bind} | {item.pod[8:]: item.node for item in plan.nominate}
    return found | {key[8:]: launch.flavour for launch in plan.launch for key in launch.pods}


COMPANY_COMES_LATER = [
    pytest.param(
        Limits(max_nodes=0),
        [machine("n")],
        [
            on("n", "keeper", "1", HIGH + 1),
            incoming("4", HIGH, "top"),
            incoming("1", MIDDLE, "guest", kind=BATCH, constraints=near("a"), created_at=NOW - 1000),
            incoming("1", LOW, "company", labels=of("a")),
        ],
        "guest",
        "n",
        id="beside work of a later turn on a node that is there",
    ),
    pytest.param(
        Limits(max_cpu_m=4000),
        [machine("n")],
        [
            on("n", "runs", "1", LOW, labels=of("a")),
            incoming("4", HIGH, "top", kind=BATCH, constraints=near("c"), labels=of("c"), created_at=NOW - 5),
            incoming("1", HIGH, "beside", kind=BATCH, constraints=near("a"), labels=of("b"), created_at=NOW - 5),
            incoming("4", MIDDLE, "next", labels=of("a"), created_at=NOW - 5),
            incoming("1", LOW, "company", kind=BATCH, constraints=near("a"), labels=of("c"), created_at=NOW - 1000),
            incoming("3", LOW, "large", kind=BATCH, constraints=near("a"), labels=of("a"), created_at=NOW - 5),
        ],
        "next",
        "m1.large",
        id="on the machine that was to be for its better, whose company comes elsewhere",
    ),
]


@pytest.mark.parametrize(("limits", "nodes", "pods", "pod", "where"), COMPANY_COMES_LATER)
def test_who_is_served_in_the_end_is_not_told_what_was_found_in_its_turn(
    limits: Limits, nodes: list[Node], pods: list[Pod], pod: str, where: str
) -> None:
    plan = planned(nodes, pods, make_policy(limits=limits, fallback=Fallback(mode=FallbackMode.PREEMPT)))
    assert served(plan)[pod] == where
    assert not served(plan).keys() & {item.pod[8:] for item in plan.unplaced}


def test_what_preemption_came_to_stands_beside_why_nothing_is_bought_in_the_end() -> None:
    pods = [on("n", "keeper", "3", HIGH + 1), incoming("2", HIGH, "top"), incoming("1", LOW, "small")]
    told = {item.pod[8:]: item for item in planned([machine("n")], pods).unplaced}
    assert told.keys() == {"top"}
    assert told["top"].reason is Unplaced.LIMIT_REACHED
    assert told["top"].message.endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


# Looks at nodes.


def crowd(*important: Pod) -> tuple[list[Node], list[Pod]]:
    """Twelve nodes from which somebody could leave for the middle one; in its turn, as small work finds room beside."""
    zone = {ZONE_LABEL: "z"}
    nodes = [*(machine(f"n{i}", labels=zone) for i in range(12)), machine("y", "1", labels=zone), machine("tiny", "1")]
    runs = [on(f"n{i}", f"r{i}", labels=of("r")) for i in range(12)]
    guard = on("y", "guard", "1", 9000, labels=of("guard"))
    return nodes, [*runs, guard, *important, incoming("2", MIDDLE, "mid"), incoming("1", LOW, "small")]


def away(app: str) -> Constraints:
    return constrained(anti_affinity=(PodAffinityTerm(ZONE_LABEL, labels_are(app=app), ("default",)),))


def test_one_important_pod_that_no_node_helps_leaves_looks_for_those_whose_turn_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve looks for it, of five each, would take all: it has a half."""
    monkeypatch.setattr(preemptor, "MOST_LOOKS", 60)
    monkeypatch.setattr(preemptor, "LEAST_CANDIDATES", 10)
    plan = planned(*crowd(incoming("4", HIGH, "top", constraints=away("guard"))))
    assert served(plan) == {"small": "tiny"}
    assert {item.beneficiary for item in plan.preempt} == {"default/mid"}


def test_of_many_classes_that_no_node_helps_each_plan_looks_for_others_so_that_the_last_is_reached_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preemptor, "MOST_LOOKS", 120)
    monkeypatch.setattr(preemptor, "LEAST_CANDIDATES", 10)
    hopeless = [incoming(f"{3000 + i}m", HIGH, f"top{i}", constraints=away("guard")) for i in range(8)]
    plans = [planned(*crowd(*hopeless), generation=turn) for turn in range(20)]
    reached = [plan for plan in plans if plan.preempt]
    assert 0 < len(reached) < len(plans)
    assert {item.beneficiary for plan in reached for item in plan.preempt} == {"default/mid"}
    put_off = [
        {item.pod for item in plan.unplaced if item.message.endswith("others are preempted for first")}
        for plan in plans
    ]
    assert all(put_off), "looks do not suffice for all"
    assert not frozenset.intersection(*map(frozenset, put_off)), "nobody is put off for ever"


# What would be bought.


@pytest.fixture
def purchases(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pods were to be bought for, each time that was planned."""
    asked: list[int] = []

    def counting(context: PlanContext, demands: Sequence[Demand], *args: Any, **how: Any) -> ScaleUp:
        asked.append(sum(demand.count for demand in demands))
        return buy(context, demands, *args, **how)

    monkeypatch.setattr(schedule, "buy", counting)
    return asked


def test_a_purchase_is_planned_once_more_and_not_once_for_each_priority(purchases: list[int]) -> None:
    ranks = [incoming("2", HIGH + rank, f"p{rank}") for rank in range(20)]
    pods = [on("n", "keeper", priority=9000), *ranks, incoming("1", LOW, "small")]
    plan = planned([machine("n"), machine("tiny", "1")], pods)
    assert served(plan) == {"small": "tiny"}
    assert len(plan.unplaced) == 20
    assert purchases == [20, 20], "for all at once, and in the end"


def test_it_is_planned_anew_where_work_that_had_room_has_lost_it(purchases: list[int]) -> None:
    nodes = [machine("m"), machine("n")]
    runs = [on("m", "keeper", "2", HIGH + 1), on("m", "low", "2"), ending(on("n", "a", "3"))]
    plan = planned(nodes, [*runs, incoming("4"), incoming("1", MIDDLE, "mid")])
    assert {item.beneficiary for item in plan.preempt} == {"default/mid"}
    assert purchases == [1, 1, 0], "for the large one; for the one it put off; for nobody in the end"
