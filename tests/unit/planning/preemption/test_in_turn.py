"""Where less important work has to give way, each priority is placed and preempted for in its turn."""

from __future__ import annotations

import pytest

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.reasons import Unplaced
from tests.builders import NOW, constrained, labels_are, make_policy
from tests.unit.planning.preemption.world import HIGH, LOW, MIDDLE, incoming, machine, on, planned

BATCH = WorkKind.BATCH


def near(app: str) -> Constraints:
    return constrained(affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app=app), ("default",)),))


def of(app: str) -> dict[str, str]:
    return {"app": app}


def served(plan: Plan) -> dict[str, str]:
    """Who is bound, kept room for or bought for, and where."""
    found = {item.pod[8:]: item.node for item in (*plan.bind, *plan.nominate)}
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
