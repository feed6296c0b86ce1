"""What holds for every rearrangement the optimiser gives, on random clusters; on tiny ones it equals brute force."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htas.model.nodes import Node
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import Engine
from htas.model.rearrangement import Rearrangement
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.optimize.optimise import optimise, problem_of
from htas.planning.solvers.placement.budget import SearchBudget
from htas.planning.solvers.placement.problem import PlacementProblem
from tests.builders import (
    NOW,
    amounts,
    budget,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    running,
)
from tests.laws.strategies import policies, snapshots
from tests.unit.planning.feasibility import reference

LAWS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
POLICY = make_policy()
DETERMINISTIC = SearchBudget(seconds=2.0, workers=1, is_deterministic=True)
ENGINES = st.sampled_from([msgspec.structs.replace(DETERMINISTIC, engine=engine) for engine in Engine])


def optimised(snapshot: ClusterSnapshot, policy: Any = POLICY, search: SearchBudget = DETERMINISTIC) -> Rearrangement:
    return optimise(snapshot, policy, NOW, search, lambda: 0.0)


@st.composite
def tiny(draw: Any) -> ClusterSnapshot:
    """Up to three nodes and six pods: small enough to try every placement."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, 3))):
        taints = (no_schedule("only"),) if draw(st.integers(0, 5)) == 0 else ()
        nodes.append(make_node(f"n{i}", f"{draw(st.integers(2, 4))}", f"{draw(st.integers(2, 4))}Gi", taints=taints))
    room = [node.allocatable for node in nodes]
    pods: list[Pod] = []
    for i in range(draw(st.integers(1, 6))):
        pod = make_pod(
            f"p{i}",
            f"{draw(st.integers(1, 4)) * 500}m",
            f"{draw(st.integers(1, 4)) * 512}Mi",
            priority=draw(st.sampled_from([0, 0, 5, 2**40])),
            labels={"app": draw(st.sampled_from("ab"))},
            owner=draw(st.sampled_from([Owner("ReplicaSet", "web", "web-uid", 3), None])),
            disruption=draw(
                st.sampled_from([{MAY_MIGRATE: "true"}, {MAY_MIGRATE: "true"}, {}, {MAY_MIGRATE: "false"}])
            ),
        )
        target = draw(st.integers(0, len(nodes)))
        if target < len(nodes) and not nodes[target].taints and pod.requests.fits_in(room[target]):
            room[target] = room[target] - pod.requests
            pod = running(pod, nodes[target].name)
        pods.append(pod)
    return make_snapshot(nodes, pods, budgets=(budget(draw(st.integers(0, 2)), {"app": "a"}),))


def the_problem(snapshot: ClusterSnapshot) -> PlacementProblem:
    return problem_of(open_simulation(snapshot, POLICY, NOW), snapshot, POLICY, NOW)


def best_by_trying_all(problem: PlacementProblem) -> tuple[int, ...]:
    """The best score there is: every way of putting each kind's pods on nodes or nowhere."""
    ways = []
    for kind in range(problem.kinds):
        counts = product(range(int(problem.count[kind]) + 1), repeat=problem.nodes)
        ways.append([row for row in counts if sum(row) <= problem.count[kind]])
    best: tuple[int, ...] = ()
    for rows in product(*ways):
        x = np.array(rows, dtype=np.int64).reshape(problem.kinds, problem.nodes)
        if problem.is_valid(x):
            best = max(best, problem.score(x))
    return best


@LAWS
@given(tiny(), ENGINES)
def test_a_tiny_cluster_gets_what_trying_all_placements_finds_in_placing_and_in_staying(
    snapshot: ClusterSnapshot, search: SearchBudget
) -> None:
    problem = the_problem(snapshot)
    found = optimised(snapshot, search=search)
    best = best_by_trying_all(problem)
    settled = np.cumsum([placed for _, placed in problem.settled])
    placed = np.cumsum([tier.placed_after for tier in found.tiers]) - settled
    stays = [tier.stays - 2 * rest for tier, rest in zip(found.tiers, settled, strict=True)]
    assert [value for pair in zip(placed.tolist(), stays, strict=True) for value in pair] == list(best)
    assert all(tier.is_placing_proven and tier.is_staying_proven for tier in found.tiers)


@LAWS
@given(tiny(), ENGINES, st.sampled_from([0.0, 1e-5, 1e-4, 1e-3]))
def test_whatever_little_time_there_was_what_is_called_proven_is_the_best(
    snapshot: ClusterSnapshot, search: SearchBudget, seconds: float
) -> None:
    problem = the_problem(snapshot)
    found = optimised(snapshot, search=msgspec.structs.replace(search, seconds=seconds))
    best = best_by_trying_all(problem)
    settled = np.cumsum([placed for _, placed in problem.settled]).tolist()
    placed = np.cumsum([tier.placed_after for tier in found.tiers]) - np.array(settled)
    is_best_above = True
    for number, tier in enumerate(found.tiers):
        assert tier.is_placing_proven or not tier.is_staying_proven
        stays = tier.stays - 2 * settled[number]
        if tier.is_placing_proven and is_best_above:
            assert placed[number] == best[2 * number]
        if tier.is_staying_proven and is_best_above:
            assert stays == best[2 * number + 1]
        is_best_above &= (placed[number], stays) == best[2 * number : 2 * number + 2]


@LAWS
@given(snapshots(), policies(), ENGINES)
def test_no_tier_is_worse_than_before_unless_a_higher_one_is_better(
    snapshot: ClusterSnapshot, policy: Any, search: SearchBudget
) -> None:
    found = optimised(snapshot, policy, search)
    before = [tier.placed_before for tier in found.tiers]
    after = [tier.placed_after for tier in found.tiers]
    assert after >= before
    assert found.is_better == (after > before)
    assert found.is_better or not (found.moves or found.seats)


@LAWS
@given(snapshots(), policies(), ENGINES)
def test_what_comes_out_is_within_its_bounds(snapshot: ClusterSnapshot, policy: Any, search: SearchBudget) -> None:
    placed = 0
    for tier in optimised(snapshot, policy, search).tiers:
        placed += tier.placed_after
        assert placed <= tier.placed_bound
        assert tier.stays <= tier.stays_bound
        assert tier.placed_after <= tier.wanted


@LAWS
@given(snapshots(), policies(), ENGINES)
def test_every_filter_accepts_each_pod_where_it_is_put(
    snapshot: ClusterSnapshot, policy: Any, search: SearchBudget
) -> None:
    found = optimised(snapshot, policy, search)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    gone = {shift.pod for shift in found.moves}
    placed = [pod for pod in snapshot.cluster.pods if pod.node is not None and pod.key not in gone]
    targets = [(shift.pod, shift.target) for shift in found.moves if shift.target is not None]
    targets += [(seat.pod, seat.node) for seat in found.seats]
    nodes = {node.name: node for node in snapshot.cluster.nodes}
    load = {name: [pod for pod in placed if pod.node == name] for name in nodes}
    for key, target in targets:
        load[target].append(pods[key])
    for name in {target for _, target in targets}:
        total = sum((pod.requests for pod in load[name]), amounts())
        assert total.fits_in(nodes[name].allocatable)
    final = [(pod, nodes[pod.node]) for pod in placed if pod.node is not None]
    final += [(pods[key], nodes[target]) for key, target in targets]
    for key, target in targets:
        others = [(pod, node) for pod, node in final if pod.key != key]
        assert reference.tolerates_node(pods[key], nodes[target])
        assert reference.affinity_admits(pods[key], nodes[target])
        assert reference.inter_pod_verdict(pods[key], nodes[target], others, {}) not in ("near", "unwilling")


@LAWS
@given(snapshots(), policies(), ENGINES)
def test_budgets_are_held(snapshot: ClusterSnapshot, policy: Any, search: SearchBudget) -> None:
    found = optimised(snapshot, policy, search)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    for disruption_budget in snapshot.cluster.budgets:
        disrupted = [shift for shift in found.moves if disruption_budget.covers(pods[shift.pod])]
        assert len(disrupted) <= disruption_budget.disruptions_allowed


@LAWS
@given(snapshots(), policies(), ENGINES, st.integers(0, 3))
def test_the_same_seed_gives_the_same_answer(
    snapshot: ClusterSnapshot, policy: Any, search: SearchBudget, seed: int
) -> None:
    search = msgspec.structs.replace(search, seed=seed)
    assert optimised(snapshot, policy, search) == optimised(snapshot, policy, search)


@LAWS
@given(tiny(), ENGINES)
def test_a_service_that_has_not_opted_in_leaves_only_for_more_important_work(
    snapshot: ClusterSnapshot, search: SearchBudget
) -> None:
    found = optimised(snapshot, search=search)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    arrivals = [(seat.node, pods[seat.pod].priority) for seat in found.seats]
    arrivals += [(shift.target, pods[shift.pod].priority) for shift in found.moves if shift.target is not None]
    for shift in found.moves:
        pod = pods[shift.pod]
        assert pod.disruption.get(MAY_MIGRATE) != "false"
        if pod.disruption.get(MAY_MIGRATE) != "true" or pod.owner is None:
            assert any(node == shift.source and priority > pod.priority for node, priority in arrivals)
        if pod.owner is None:
            assert shift.target is None
