"""The optimiser on small clusters whose best placement can be read off."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from htas.model.constraints import Constraints, HostPort
from htas.model.disruptions import Drain
from htas.model.moves import MigrationMethod
from htas.model.nodes import DO_NOT_DISRUPT, Node
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import CleaningRules, Engine, NodeGroup
from htas.model.rearrangement import Rearrangement, RearrangementStatus
from htas.planning.optimize.optimise import optimise
from htas.planning.solvers.placement.budget import SearchBudget
from tests.builders import (
    NOW,
    budget,
    make_job,
    make_move,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    owned_node,
    running,
)

OPTED_IN = {MAY_MIGRATE: "true"}


CHOSEN = [Engine.DECOMPOSITION]
"""The engine under test: each has to give every answer of this module."""


@pytest.fixture(params=list(Engine), autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    CHOSEN.append(request.param)
    yield request.param
    CHOSEN.pop()


def optimised(nodes: list[Node], pods: list[Pod], seconds: float = 5.0, **view: object) -> Rearrangement:
    search = SearchBudget(seconds, 1, engine=CHOSEN[-1], is_deterministic=True)
    return optimise(make_snapshot(nodes, pods, **view), make_policy(), NOW, search, lambda: 0.0)


def pod(name: str, memory: str, node: str | None = None, priority: int = 0, **fields: object) -> Pod:
    made = make_pod(name, "100m", memory, priority=priority, **{"disruption": OPTED_IN, **fields})
    return made if node is None else running(made, node)


def two_nodes() -> list[Node]:
    return [make_node("a", "4", "4Gi"), make_node("b", "4", "4Gi")]


def test_figure_one_moves_one_of_two_pods_so_that_the_third_fits() -> None:
    pods = [pod("one", "2Gi", "a"), pod("two", "2Gi", "b"), pod("three", "3Gi")]
    found = optimised(two_nodes(), pods)
    assert found.status is RearrangementStatus.PROVEN_OPTIMAL
    assert len(found.moves) == len(found.seats) == 1
    assert found.moves[0].target is not None
    assert found.seats[0].node == found.moves[0].source
    assert (found.tiers[0].stays, found.tiers[0].stays_bound) == (3, 3)


def test_the_present_placement_is_told_to_be_the_best() -> None:
    found = optimised(two_nodes(), [pod("one", "3Gi", "a"), pod("two", "3Gi", "b"), pod("three", "2Gi")])
    assert found.status is RearrangementStatus.ALREADY_OPTIMAL
    assert (found.moves, found.seats) == ((), ())


def test_more_important_work_displaces_the_least_important() -> None:
    pods = [pod("low", "3Gi", "a", 1), pod("middle", "3Gi", "b", 5), pod("high", "3Gi", priority=9)]
    found = optimised(two_nodes(), pods)
    assert [(shift.pod, shift.target) for shift in found.moves] == [("default/low", None)]
    assert [(seat.pod, seat.node) for seat in found.seats] == [("default/high", "a")]


def test_pods_of_services_leave_the_edge_for_more_important_work_alone() -> None:
    """Batch work would fill the edge if the service's pod went to the cloud: only with a higher priority does it go."""
    edge = make_node("e", "4", "4Gi", labels={"htas.io/tier": "edge"})
    cloud = make_node("c", "4", "2Gi")
    for priority, tier, leaves in ((0, "edge", False), (1, "edge", True), (0, "cloud", True)):
        nodes = [msgspec.structs.replace(edge, labels={"htas.io/tier": tier}), cloud]
        found = optimised(nodes, [pod("web", "2Gi", "e"), make_job("batch", memory="4Gi", priority=priority)])
        assert [shift.target for shift in found.moves] == (["c"] if leaves else [])
        assert [seat.node for seat in found.seats] == (["e"] if leaves else [])


def test_priorities_beyond_32_bits_are_only_ranks() -> None:
    pods = [pod("low", "3Gi", "a", -(2**40)), pod("high", "3Gi", priority=2**40)]
    found = optimised([make_node("a", "4", "4Gi")], pods)
    assert [tier.priority for tier in found.tiers] == [2**40, -(2**40)]
    assert found.seats[0].pod == "default/high"


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("a promise", {"disruption": {DO_NOT_DISRUPT: "true"}}),
        ("an opt-out", {"disruption": {MAY_MIGRATE: "false"}}),
        ("a DaemonSet", {"owner": Owner("DaemonSet", "agent")}),
        ("its end", {"deleted_at": NOW - 1}),
        ("another scheduler", {"scheduler": "default-scheduler"}),
        ("a host port", {"constraints": Constraints(host_ports=(HostPort(80),))}),
    ],
)
def test_a_pod_held_by(what: str, fields: dict[str, object]) -> None:
    pods = [pod("low", "3Gi", "a", **fields), pod("high", "3Gi", priority=9)]
    found = optimised([make_node("a", "4", "4Gi")], pods)
    assert not found.moves, what
    assert not found.seats


def test_a_budget_without_disruptions_left_holds_its_pods() -> None:
    pods = [pod("low", "3Gi", "a", labels={"app": "x"}), pod("high", "3Gi", priority=9)]
    node = [make_node("a", "4", "4Gi")]
    assert not optimised(node, pods, budgets=(budget(0, {"app": "x"}),)).moves
    assert optimised(node, pods, budgets=(budget(1, {"app": "x"}),)).moves


def test_a_service_that_has_not_opted_in_does_not_move_for_work_of_its_own_priority() -> None:
    pods = [pod("one", "2Gi", "a", disruption={}), pod("two", "2Gi", "b", disruption={}), pod("three", "3Gi")]
    assert not optimised(two_nodes(), pods).is_better
    higher = [*pods[:2], pod("three", "3Gi", priority=1)]
    assert optimised(two_nodes(), higher).is_better


def test_a_bare_pod_is_evicted_for_more_important_work_but_never_moved() -> None:
    pods = [pod("bare", "2Gi", "a", owner=None), pod("high", "3Gi", priority=1)]
    nodes = [make_node("a", "4", "4Gi"), make_node("b", "4", "2560Mi")]
    found = optimised(nodes, pods)
    assert [(shift.pod, shift.target) for shift in found.moves] == [("default/bare", None)]


@pytest.mark.parametrize(("owner", "method"), [("ReplicaSet", "checkpoint"), ("StatefulSet", "evict")])
def test_a_pod_is_moved_by_its_group_s_method_unless_it_must_keep_its_name(owner: str, method: str) -> None:
    group = NodeGroup("any", cleaning=CleaningRules(migration=MigrationMethod.CHECKPOINT))
    nodes = [owned_node("a", cpu="4", memory="4Gi"), owned_node("b", cpu="4", memory="4Gi")]
    owned = Owner(owner, "shop", "shop-uid", 2)
    pods = [pod("shop-0", "2Gi", "a", owner=owned), pod("shop-1", "2Gi", "b", owner=owned), pod("three", "3Gi")]
    found = optimise(make_snapshot(nodes, pods), make_policy([group]), NOW, SearchBudget(5.0), lambda: 0.0)
    assert [(shift.target is not None, shift.method) for shift in found.moves] == [(True, method)]


def test_nothing_moves_to_a_tainted_or_closed_node() -> None:
    nodes = [
        make_node("a", "4", "4Gi"),
        make_node("b", "4", "4Gi", taints=(no_schedule("only"),)),
        make_node("c", "4", "4Gi", is_ready=False),
    ]
    found = optimised(nodes, [pod("one", "2Gi", "a"), pod("two", "3Gi")])
    assert found.status is RearrangementStatus.ALREADY_OPTIMAL


def test_a_waiting_pod_with_a_host_port_is_seated_where_moves_made_room() -> None:
    port = Constraints(host_ports=(HostPort(80),))
    pods = [pod("low", "3Gi", "a"), pod("high", "3Gi", priority=9), pod("ported", "1Gi", priority=5, constraints=port)]
    found = optimised([make_node("a", "4", "4Gi")], pods)
    assert {seat.pod for seat in found.seats} == {"default/high", "default/ported"}


@pytest.mark.parametrize("pods", [[], [pod("one", "1Gi")]])
def test_no_nodes_and_no_pods_are_a_trivial_answer(pods: list[Pod]) -> None:
    found = optimised([], pods)
    assert found.status is RearrangementStatus.ALREADY_OPTIMAL
    assert not found.seats


def test_a_budget_of_no_time_still_seats_what_needs_no_search() -> None:
    found = optimised(two_nodes(), [pod("low", "3Gi", "a"), pod("high", "3Gi", priority=9)], seconds=0.0)
    assert found.seats[0].node == "b"


@pytest.mark.parametrize(("seconds", "workers", "share"), [(-1.0, 1, 0.8), (1.0, 0, 0.8), (1.0, 1, 1.5)])
def test_a_budget_that_makes_no_sense_is_refused_by_name(seconds: float, workers: int, share: float) -> None:
    with pytest.raises(ValueError, match="fallback"):
        SearchBudget(seconds, workers, share=share)


BOUND_ELSEWHERE = {"expected_binds": {"default/low": "b"}}
MOVING = {"moves": (make_move("default/low", "a", "b"),)}
DRAINED = {"drains": (Drain("a", "a", "Empty", NOW, (make_move("default/low", "a", "b"),)),)}


@pytest.mark.parametrize(
    "view",
    [pytest.param(MOVING, id="moved"), pytest.param(DRAINED, id="drained"), pytest.param(BOUND_ELSEWHERE, id="bound")],
)
def test_a_pod_that_is_being(view: dict[str, object]) -> None:
    """... is left to whoever does so."""
    nodes = [make_node("a", "4", "4Gi"), make_node("b", "4", "3Gi")]
    pods = [pod("low", "3Gi", "a"), pod("high", "4Gi", priority=9)]
    assert [(each.pod, each.target) for each in optimised(nodes, pods).moves] == [("default/low", "b")]
    assert not optimised(nodes, pods, **view).moves


def test_a_budget_is_spent_by_pods_that_are_on_their_way_already() -> None:
    covered = {"labels": {"app": "x"}}
    nodes = [make_node(name, "4", "4Gi") for name in ("a", "b", "c")]
    pods = [pod("low", "3Gi", "a", **covered), pod("other", "3Gi", "b", **covered), pod("high", "3Gi", priority=9)]
    pods.append(pod("high too", "3Gi", priority=9))
    held = budget(1, {"app": "x"})
    assert len(optimised(nodes[:2], pods, budgets=(held,)).moves) == 1
    under_way = (make_move("default/other", "b", "c"),)
    assert not optimised(nodes[:2], pods, budgets=(held,), moves=under_way).moves
    assert len(optimised(nodes[:2], pods, budgets=(budget(2, {"app": "x"}),)).moves) == 2


def figures(found: Rearrangement) -> list[tuple[int, ...]]:
    """Of each tier: priority, wanted, placed before, after and at most, stays and at most."""
    return [
        (
            tier.priority,
            tier.wanted,
            tier.placed_before,
            tier.placed_after,
            tier.placed_bound,
            tier.stays,
            tier.stays_bound,
        )
        for tier in found.tiers
    ]


def test_tiers_tell_what_was_found_and_what_is_possible_at_most() -> None:
    pods = [
        pod("low", "3Gi", "a", 1),
        pod("middle", "3Gi", "b", 5),
        pod("kept", "512Mi", "b", 5, disruption={MAY_MIGRATE: "false"}),
        pod("high", "3Gi", priority=9),
        pod("low too", "3Gi", priority=1),
    ]
    found = optimised(two_nodes(), pods)
    assert figures(found) == [(9, 1, 0, 1, 1, 0, 0), (5, 2, 2, 2, 3, 4, 4), (1, 2, 1, 0, 3, 4, 4)]
    assert [(tier.is_placing_proven, tier.is_staying_proven) for tier in found.tiers] == [(True, True)] * 3
    assert found.message == "3 of 5 pods placed (now 3, at most 3): 1 scheduled, 1 leave their nodes"


def test_pods_with_wishes_about_others_are_wanted_but_nothing_is_proven_of_them() -> None:
    ports = Constraints(host_ports=(HostPort(80),))
    nodes = [make_node("a", "4", "4Gi")]
    found = optimised(nodes, [pod("one", "1Gi", constraints=ports), pod("two", "1Gi", constraints=ports)])
    assert figures(found) == [(0, 2, 0, 1, 2, 0, 0)]
    assert (found.status, found.tiers[0].is_placing_proven) == (RearrangementStatus.IMPROVED, False)


def test_of_pods_that_are_alike_the_youngest_leaves() -> None:
    old, young = pod("old", "2Gi"), pod("young", "2Gi")
    pods = [running(young, "a", 60.0), running(old, "a", 600.0), pod("high", "2Gi", priority=9)]
    found = optimised([make_node("a", "4", "4Gi")], pods)
    assert [each.pod for each in found.moves] == ["default/young"]


def test_seats_with_wishes_go_to_the_more_important_then_to_the_older_onto_the_fullest_node() -> None:
    ports = Constraints(host_ports=(HostPort(80),))
    nodes = [make_node("a", "4", "8Gi"), make_node("b", "4", "4Gi")]
    pods = [
        pod("young", "1Gi", constraints=ports, created_at=NOW - 1),
        pod("old", "1Gi", constraints=ports, created_at=NOW - 9),
        pod("high", "1Gi", constraints=ports, priority=9, created_at=NOW),
    ]
    found = optimised(nodes, pods)
    assert {seat.pod: seat.node for seat in found.seats} == {"default/high": "b", "default/old": "a"}


def test_pods_of_other_schedulers_are_not_seated() -> None:
    ports = Constraints(host_ports=(HostPort(80),))
    pods = [pod("plain", "1Gi", scheduler="other"), pod("ported", "1Gi", scheduler="other", constraints=ports)]
    found = optimised([make_node("a", "4", "4Gi")], pods)
    assert (found.seats, found.tiers) == ((), ())
