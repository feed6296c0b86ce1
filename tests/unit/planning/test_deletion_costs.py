"""Deletion costs: what a ReplicaSet's pods are bound with, so that a service that shrinks empties the newest machines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.model.constraints import SpreadConstraint
from htas.model.deletion_costs import HIGHEST_OF_OURS, cost_on, is_ours
from htas.model.nodes import DO_NOT_DISRUPT, ZONE_LABEL, Node
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
        pytest.param(replica(deletion_cost=-(2**31)), BOUGHT, (), id="if the least there is"),
        pytest.param(
            replica(), owned_node("kept", annotations={DO_NOT_DISRUPT: "true"}), (), id="a node that somebody holds"
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


def test_what_an_application_marked_once_is_known_over_its_rollouts_while_it_has_pods() -> None:
    """Its idle pod, marked -1, was deleted at once; the ReplicaSet of the next rollout was given costs far below that."""
    policy = make_policy([NodeGroup("any", Workload.ANY)])
    idle = running(replica("idle", deletion_cost=-1, template="Deployment/web"), "bought")
    busy = running(replica("busy", template="Deployment/web"), "bought")
    seen = plan(make_snapshot([BOUGHT], [idle, busy]), policy, NOW).memory
    assert seen.states_costs == ("default/Deployment/web",)
    next_one = replica("next", Owner("ReplicaSet", "web-2", "uid-web-2", 3), template="Deployment/web")
    later = plan(make_snapshot([BOUGHT], [busy, next_one], memory=seen), policy, NOW)
    assert [bind.deletion_cost for bind in later.bind] == [None]
    assert later.memory.states_costs == seen.states_costs
    assert not plan(make_snapshot([BOUGHT], [replica("other")], memory=seen), policy, NOW).memory.states_costs


@given(
    first=st.floats(1_577_836_800, 2_723_000_000),
    later=st.floats(1200, 1e9),
    names=st.tuples(st.text(min_size=1), st.text(min_size=1)),
)
def test_costs_are_of_32_bits_ours_and_fall_with_the_machines_age(
    first: float, later: float, names: tuple[str, str]
) -> None:
    older = cost_on(owned_node(names[0], created_at=first))
    newer = cost_on(owned_node(names[1], created_at=min(first + later, 2_723_836_800)))
    assert -2_146_001_000 < newer < older <= HIGHEST_OF_OURS or first + 1200 > 2_723_836_800
    assert is_ours(newer)


@pytest.mark.parametrize("created_at", [-1e9, 0.0, 1_577_836_800.0, 4e9, 1e15])
def test_a_clock_that_is_wrong_makes_no_cost_that_the_api_server_refuses(created_at: float) -> None:
    assert -(2**31) < cost_on(owned_node("m", created_at=created_at)) <= HIGHEST_OF_OURS


def test_machines_bought_together_are_told_apart() -> None:
    """Of equal costs each would lose pods in turn, and none be empty."""
    for bought in range(10):
        costs = {cost_on(owned_node(f"test-any-{bought}-{i}", created_at=NOW)) for i in range(5)}
        assert len(costs) >= 4
    assert cost_on(owned_node("m", created_at=1_795_852_800.0)) // 600 * 600 == -1_218_016_800
