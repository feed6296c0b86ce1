"""Deletion costs: what a ReplicaSet's pods are bound with, so that a service that shrinks empties the newest machines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.model.constraints import SpreadConstraint
from htas.model.deletion_costs import HIGHEST_OF_OURS, cost_on, is_ours
from htas.model.nodes import ZONE_LABEL, Node
from htas.model.plan import Bind
from htas.model.pods import Owner, Pod
from htas.model.policy import CleaningRules, NodeGroup, Workload
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    constrained,
    labels_are,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    running,
)

WEB = Owner("ReplicaSet", "web", "uid-web", 3)


def replica(name: str = "new", owner: Owner | None = WEB, **fields: Any) -> Pod:
    return make_pod(name, owner=owner, **fields)


def bound(pod: Pod, node: Node, *others: Pod, group: NodeGroup | None = None) -> Bind:
    policy = make_policy([group if group is not None else NodeGroup("any", Workload.ANY)])
    (bind,) = plan(make_snapshot([node], [*others, pod]), policy, NOW).bind
    return bind


BOUGHT = owned_node("bought", created_at=NOW - 3600, labels={ZONE_LABEL: "z1"})


def test_the_later_a_machine_came_the_sooner_its_pods_go() -> None:
    costs = [bound(replica(), owned_node("m", created_at=NOW - age_s)).deletion_cost for age_s in (7200, 3600, 60)]
    assert None not in costs
    assert costs == sorted(costs, key=lambda cost: -(cost or 0))


@pytest.mark.parametrize(
    ("pod", "node", "others"),
    [
        pytest.param(replica(owner=Owner("Job", "train")), BOUGHT, (), id="a Job looks at no cost"),
        pytest.param(replica(owner=Owner("StatefulSet", "db")), BOUGHT, (), id="a StatefulSet goes by ordinals"),
        pytest.param(replica(owner=None), BOUGHT, (), id="nobody owns it"),
        pytest.param(replica(), make_node("given"), (), id="a node that HTAS did not buy stays whatever goes"),
        pytest.param(replica(deletion_cost=5), BOUGHT, (), id="it states a cost itself"),
        pytest.param(replica(deletion_cost=0), BOUGHT, (), id="if only 0"),
        pytest.param(
            replica(),
            BOUGHT,
            (running(replica("idle", deletion_cost=-1), "bought"),),
            id="its application marks idle pods",
        ),
        pytest.param(replica(prefers_apart=True), BOUGHT, (), id="it would rather be spread"),
        pytest.param(
            replica(
                labels={"app": "web"},
                constraints=constrained(spread=(SpreadConstraint(ZONE_LABEL, 1, labels_are(app="web")),)),
            ),
            BOUGHT,
            (),
            id="it has to be spread",
        ),
    ],
)
def test_nothing_is_written_where_it_would_not_help_or_is_not_wanted(
    pod: Pod, node: Node, others: tuple[Pod, ...]
) -> None:
    assert bound(pod, node, *others).deletion_cost is None


@pytest.mark.parametrize(
    "cleaning",
    [
        pytest.param(CleaningRules(sets_deletion_costs=False), id="podDeletionCost: false"),
        pytest.param(CleaningRules(enabled=False), id="a group whose nodes nobody cleans"),
    ],
)
def test_a_group_may_do_without(cleaning: CleaningRules) -> None:
    assert bound(replica(), BOUGHT, group=NodeGroup("any", Workload.ANY, cleaning=cleaning)).deletion_cost is None


def test_costs_of_htas_and_of_other_services_are_not_the_applications_own() -> None:
    earlier = running(replica("earlier", deletion_cost=cost_on(BOUGHT)), "bought")
    moved = running(replica("moved", deletion_cost=-(2**31) + 1), "bought")
    other = running(replica("other", owner=Owner("ReplicaSet", "other", "uid-other"), deletion_cost=7), "bought")
    assert bound(replica(), BOUGHT, earlier, moved, other).deletion_cost == cost_on(BOUGHT)


@given(
    first=st.floats(-1e9, 1e12),
    later=st.floats(0, 1e12),
    names=st.tuples(st.text(min_size=1), st.text(min_size=1)),
)
def test_costs_are_of_32_bits_ours_and_never_rise_with_the_minute(
    first: float, later: float, names: tuple[str, str]
) -> None:
    older = cost_on(owned_node(names[0], created_at=first))
    newer = cost_on(owned_node(names[1], created_at=first + 120 + later))
    assert -(2**31) + 1 < newer <= HIGHEST_OF_OURS
    assert is_ours(newer)
    assert newer < older or first < 0 or first + later > 4e9


def test_machines_of_one_minute_are_told_apart_and_one_machine_is_itself() -> None:
    costs = {cost_on(owned_node(f"test-any-{i}", created_at=NOW)) for i in range(20)}
    assert len(costs) > 8
    assert cost_on(BOUGHT) == cost_on(BOUGHT)
