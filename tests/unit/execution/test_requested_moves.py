"""Moves by hand: what is nobody's to move, and whose wish an operator may pass over."""

from __future__ import annotations

from typing import Any

import pytest

from htas.execution.requested_moves import MoveRequest, proposed
from htas.execution.validation import Refused, Validator
from htas.model.budgets import DisruptionBudget
from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod, MoveReason
from htas.model.nodes import DO_NOT_DISRUPT, GROUP_LABEL
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Owner, Phase, WorkKind
from htas.model.policy import CleaningRules, NodeGroup
from htas.model.snapshot import ClusterSnapshot, ClusterView
from tests.builders import NOW, budget, make_node, make_pod, make_policy

SERVICE = {"disruption": {MAY_MIGRATE: "true"}}
BATCH: dict[str, Any] = {"kind": WorkKind.BATCH, "owner": Owner("Job", "train")}


def refused(fields: dict[str, Any], is_forced: bool, *budgets: DisruptionBudget) -> tuple[Refusal, str] | None:
    """Why a pod is not moved from a to b, on nodes that simulate moves."""
    pod = make_pod("x", **{"node": "a", "phase": Phase.RUNNING, **fields})
    view = ClusterView((make_node("a"), make_node("b")), (pod,), budgets)
    request = MoveRequest("1", pod.key, "b", MigrationMethod.CHECKPOINT, is_forced=is_forced)
    proposal = proposed(request, view, make_policy())
    [move] = proposal.moves
    assert (move.uid, move.method, move.reason) == (pod.uid, MigrationMethod.CHECKPOINT, MoveReason.REQUESTED)
    why = Validator(view, make_policy(), NOW, (), snapshot=ClusterSnapshot(NOW, view)).why_not(proposal)
    assert why is None or isinstance(why, Refused)
    return (why.refusal, why.message) if why is not None else None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"owner": Owner("DaemonSet", "agent")}, "a DaemonSet's pod belongs to its node", id="of a DaemonSet"),
        pytest.param({"is_mirror": True, "owner": Owner("Node", "a")}, "it is the kubelet's own", id="static"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_forced", [False, True])
def test_pods_that_belong_to_their_node_are_not_moved(fields: dict[str, Any], words: str, is_forced: bool) -> None:
    found = refused({**SERVICE, **fields}, is_forced)
    assert found is not None
    assert (found[0], words in found[1]) == (Refusal.OWNER_UNKNOWN, True)


WISHES = [
    pytest.param({}, "ServiceNotOptedIn: ", id="a service without opt-in"),
    pytest.param({**BATCH, "disruption": {SAFE_TO_EVICT: "false"}}, "NotSafeToEvictAnnotation: ", id="not safe to evict"),
    pytest.param({**BATCH, "disruption": {DO_NOT_DISRUPT: "true"}}, "DoNotDisrupt: ", id="not to be disrupted"),
    pytest.param({**BATCH, "namespace": "kube-system"}, "UnmovableKubeSystemPod: ", id="of the system"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), WISHES)
def test_a_wish_that_a_pod_stay_is_heeded_unless_the_operator_insists(fields: dict[str, Any], words: str) -> None:
    found = refused(fields, False)
    assert found is not None
    assert (found[0], words in found[1], "--force" in found[1]) == (Refusal.PROTECTED, True, True)
    assert refused(fields, True) is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(SERVICE, id="a service that opted in"),
        pytest.param(BATCH, id="batch work"),
        pytest.param({**BATCH, "namespace": "kube-system", "disruption": {SAFE_TO_EVICT: "true"}}, id="of the system, but safe"),
    ],
)  # fmt: skip
def test_what_the_cleaner_would_move_is_moved_by_hand(fields: dict[str, Any]) -> None:
    assert refused(fields, False) is None


def test_a_budget_that_allows_no_eviction_allows_a_move() -> None:
    pod = {**SERVICE, "labels": {"app": "web"}}
    assert refused(pod, False, budget(0, {"app": "web"})) is None


def test_who_opted_out_altogether_is_not_moved_by_force() -> None:
    found = refused({**BATCH, "disruption": {MAY_MIGRATE: "false"}}, True)
    assert found is not None
    assert found[0] is Refusal.OPTED_OUT


@pytest.mark.parametrize(
    ("group", "is_moved"),
    [
        pytest.param("relaxed", True, id="of a group that moves the system's pods"),
        pytest.param("strict", False, id="of one that does not"),
        pytest.param(None, False, id="of no group: as where nothing is said"),
    ],
)
def test_the_rules_of_its_nodes_group_say_what_is_promised(group: str | None, is_moved: bool) -> None:
    rules = CleaningRules(skip_system_pods=False, migration=MigrationMethod.CHECKPOINT)
    policy = make_policy([NodeGroup("strict"), NodeGroup("relaxed", cleaning=rules)])
    pod = make_pod("x", **{**BATCH, "namespace": "kube-system", "node": "a", "phase": Phase.RUNNING})
    source = make_node("a", labels={GROUP_LABEL: group} if group is not None else {})
    view = ClusterView((source, make_node("b")), (pod,))
    proposal = proposed(MoveRequest("1", pod.key, "b", MigrationMethod.CHECKPOINT), view, policy)
    why = Validator(view, policy, NOW, (), snapshot=ClusterSnapshot(NOW, view)).why_not(proposal)
    if is_moved:
        assert why is None
    else:
        assert isinstance(why, Refused)
        assert "UnmovableKubeSystemPod" in why.message
