"""Laws of moving instead of launching: nobody is disturbed who may not be, all fits, and it costs less than was to be paid."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.proposals import Proposal
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot, RoomMade
from htas.planning.disrupt.making_room.thrift import may_move, saved, with_moves
from htas.planning.disrupt.rearrangement.validity import open_rearrangement
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    budget,
    make_flavour,
    make_job,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

LAWS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
FLAVOURS = (make_flavour("small", "4", "8Gi", "0.10"), make_flavour("dear", "4", "8Gi", "0.30"))


@st.composite
def crowded(draw: st.DrawFn) -> tuple[ClusterSnapshot, Policy]:
    """Nodes of 4 cores whose free room is in pieces, and jobs of 2 to 4 cores that wait."""
    method = draw(st.sampled_from([*MigrationMethod, MigrationMethod.CHECKPOINT]))
    there = [owned_node(f"n{i}", flavour=FLAVOURS[i % 2].name) for i in range(draw(st.integers(2, 4)))]
    pods = [each for i, node in enumerate(there) for each in draw(residents(node.name, i))]
    for i in range(draw(st.integers(1, 2))):
        fields: dict[str, Any] = {
            "cpu": str(draw(st.sampled_from([3, 3, 4]))),
            "priority": draw(st.sampled_from([0, 10])),
        }
        pods.append(make_job(f"w{i}", draw(st.sampled_from([300, 3600])), **fields))
    group = NodeGroup("any", cleaning=CleaningRules(migration=method), startup_s=120.0)
    budgets = (budget(draw(st.integers(0, 2)), {"app": "a"}),)
    snapshot = make_snapshot(there, pods, claims=tuple(map(ready_claim, there)), budgets=budgets)
    return snapshot, make_policy([group], FLAVOURS, look_ahead_s=0.0)


@st.composite
def residents(draw: st.DrawFn, node: str, number: int) -> list[Pod]:
    left, found = 4, []
    for i in range(draw(st.integers(1, 2))):
        cores = draw(st.integers(1, 2))
        if cores > left:
            break
        left -= cores
        fields: dict[str, Any] = {
            "cpu": str(cores),
            "labels": {"app": draw(st.sampled_from("ab"))},
            "priority": draw(st.sampled_from([0, 0, 0, 10])),
            "disruption": {MAY_MIGRATE: draw(st.sampled_from(["true", "true", "true", "false"]))},
        }
        pod = make_job(f"r{number}-{i}", 7200, **fields)
        if draw(st.booleans()):
            pod = make_pod(f"r{number}-{i}", owner=Owner("ReplicaSet", "rs", "rs", 9), **fields)
        found.append(running(pod, node, draw(st.integers(1, 7000))))
    return found


def decided(snapshot: ClusterSnapshot, policy: Policy) -> tuple[Plan, Plan]:
    """Plans with the rule and without it."""
    without = msgspec.structs.replace(policy, moves_instead_of_buying=False)
    return plan(snapshot, policy, NOW), plan(snapshot, without, NOW)


@LAWS
@given(crowded())
def test_less_is_bought_and_nobody_is_disturbed_who_may_not_be(case: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = case
    made, before = decided(snapshot, policy)
    assume(made.instead_of_buying is not None)
    found = made.instead_of_buying or Proposal(ProposalReason.INSTEAD_OF_LAUNCH)
    assert sum(each.nanos_per_hour for each in made.launch) < sum(each.nanos_per_hour for each in before.launch)
    pods = {pod.uid: pod for pod in snapshot.cluster.pods}
    moved = [pods[move.uid] for move in found.moves]
    terms = DisruptionPolicy(snapshot.cluster, policy, NOW)
    for move in found.moves:
        assert terms.terms(pods[move.uid], DisruptionKind.MOVE, move.target).allowed_for is AllowedFor.ANYBODY
    assert max(pod.priority for pod in moved) <= max(pods[seat.uid].priority for seat in found.seats)
    assert ledger_of(snapshot).try_spend(moved) is None
    assert 1 <= len(moved) <= 6


@LAWS
@given(crowded())
def test_what_is_decided_can_be_carried_out(case: tuple[ClusterSnapshot, Policy]) -> None:
    """By the check that every rearrangement passes before it is journalled, beside all else that the plan binds."""
    snapshot, policy = case
    made, _ = decided(snapshot, policy)
    assume(made.instead_of_buying is not None)
    found = made.instead_of_buying or Proposal(ProposalReason.INSTEAD_OF_LAUNCH)
    bound = msgspec.structs.replace(snapshot, expected_binds={bind.pod: bind.node for bind in made.bind})
    opened = open_rearrangement(found, bound, policy, NOW)
    assert isinstance(opened, OpenRearrangement), opened
    placed = {bind.pod for bind in made.bind} | {pod for each in made.launch for pod in each.pods}
    placed |= {item.pod for item in made.unplaced} | {each.pod for each in made.nominate}
    waiting = {pod.key for pod in snapshot.cluster.pods if pod.node is None}
    assert waiting <= placed, "nobody is forgotten"


COSTS = st.integers(1, 10**6)


@given(st.lists(st.tuples(COSTS, COSTS, st.integers(1, 1000), st.integers(1, 3600), st.integers(0, 600)), max_size=12))
def test_moves_off_a_machine_never_cost_more_than_they_save(asked: list[tuple[int, int, int, int, int]]) -> None:
    """Whatever is asked for and whenever: what was spent is at most what was saved and what the last is to save."""
    made: RoomMade | None = None
    now, expected = NOW, 0
    for cost, saving, price, held_s, later_s in asked:
        now += later_s
        if may_move(made, cost, saving, now):
            made, expected = with_moves(made, cost, price, held_s, now), saving
        if made is not None:
            assert made.cost <= saved(made, now) + expected
            assert saved(made, now + 60) >= saved(made, now)
