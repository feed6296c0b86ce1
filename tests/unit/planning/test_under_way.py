"""What a rearrangement under way needs is not given back, and whom it evicts is counted."""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.model.reasons import Kept
from htas.planning.planner import plan
from tests.builders import NOW, budget, make_job, owned_node
from tests.unit.planning.cleaning.world import job_on, policy_with, quiet_snapshot

WEB = {"app": "web"}
MOVED = job_on("n1", "moved", cpu="3", labels=WEB)
WAITING = make_job("work", cpu="3", priority=10)
UNDER_WAY = OpenRearrangement(NOW - 10, 10, (Slot(MOVED, "n2", "n1", MigrationMethod.EVICT), Slot(WAITING, "n1")))


def planned(others: Iterable[Node] = (), pods: Iterable[Pod] = (), allowed: int = 1) -> Plan:
    """A job of 3 cores leaves n1 for the empty n2, so that more important work has n1."""
    nodes = [owned_node("n1"), owned_node("n2"), *others]
    snapshot = quiet_snapshot(nodes, [MOVED, WAITING, *pods], rearrangement=UNDER_WAY, budgets=(budget(allowed, WEB),))
    policy = policy_with(limits=Limits(max_nodes=len(nodes)), fallback=Fallback(mode=FallbackMode.OFF))
    return plan(snapshot, policy, NOW)


def test_an_empty_node_that_it_fills_is_not_given_back() -> None:
    made = planned()
    assert [step.uid for step in made.carry.steps] == ["moved"]
    assert {item.node: item.reason for item in made.kept}["n2"] is Kept.NEEDED
    assert not made.remove


def test_whom_it_evicts_now_is_spent_on_the_budget() -> None:
    """The budget allows one of the two to leave: the one that the rearrangement takes, so n3 is not emptied as well."""
    others = [owned_node("n3"), owned_node("n4")]
    pods = [job_on("n3", "second", labels=WEB), job_on("n4", "large", cpu="3")]
    both, one = planned(others, pods, allowed=2), planned(others, pods, allowed=1)
    assert [removing.node for removing in both.remove] == ["n3"]
    assert not one.remove
    assert {item.node: item.reason for item in one.kept}["n3"] is Kept.BLOCKED_BY_POD
