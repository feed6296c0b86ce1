"""Moves are charged what they add to other nodes' rentals, and what is left on a node goes to a smaller machine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.moves import MigrationMethod
from htas.model.nodes import SCALE_DOWN_DISABLED
from htas.model.policy import CleaningRules, Consolidation, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import Memory
from tests.builders import NOW, make_pod, owned_node, running
from tests.unit.planning.cleaning.world import cleaned, job_on, kept, message, moves, policy_with, quiet_snapshot

EARLY = CleaningRules.early(MigrationMethod.CHECKPOINT)


def early(**changes: Any) -> Policy:
    rules = msgspec.structs.replace(EARLY, **changes)
    return policy_with({name: getattr(rules, name) for name in rules.__struct_fields__})


STAYING = early(consolidation=Consolidation())
SHRINKING = early()


@pytest.mark.parametrize(
    ("flavour", "there_s", "is_moved"),
    [
        pytest.param("large", 9000, True, id="its other work ends later"),
        pytest.param("large", 5000, True, id="longer by 3000 s at twice the price, 8000 s saved"),
        pytest.param("large", 3000, False, id="longer by 5000 s at twice the price, 8000 s saved"),
        pytest.param("medium", 3000, True, id="longer by 5000 s at its own price, 8000 s saved"),
    ],
)
def test_a_node_is_emptied_where_others_are_not_rented_longer_for_more(
    flavour: str, there_s: float, is_moved: bool
) -> None:
    cpu = {"large": "8", "medium": "4"}[flavour]
    nodes = [owned_node("n1"), owned_node("busy", flavour=flavour, cpu=cpu, memory="16Gi")]
    pods = [job_on("n1", "a", left_s=8000.0), job_on("busy", "b", cpu=str(int(cpu) - 1), left_s=float(there_s))]
    found = cleaned(quiet_snapshot(nodes, pods), STAYING)
    assert moves(found) == ([("a", "n1", "busy")] if is_moved else [])
    if not is_moved:
        assert kept(found)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
        assert "have others rented longer for as much as" in message(found, "n1")


def test_pods_go_where_they_lengthen_nothing() -> None:
    """By time bins the job would go to the node whose work ends soonest after its own, or to the fuller one."""
    nodes = [owned_node("n1"), owned_node("short"), owned_node("long")]
    pods = [
        job_on("n1", "a", left_s=5000.0),
        job_on("short", "b", cpu="3", left_s=4990.0),
        job_on("long", "c", cpu="3", left_s=90_000.0),
    ]
    assert moves(cleaned(quiet_snapshot(nodes, pods), STAYING)) == [("a", "n1", "long")]


def test_a_node_that_is_not_given_back_is_not_lengthened() -> None:
    nodes = [owned_node("n1"), owned_node("stays", flavour="large", annotations={SCALE_DOWN_DISABLED: "true"})]
    assert moves(cleaned(quiet_snapshot(nodes, [job_on("n1", "a", left_s=8000.0)]), STAYING)) == [("a", "n1", "stays")]


def lonely(left_s: float = 8000.0, cpu: str = "1", node: str = "large") -> Any:
    """A job that has a large machine to itself; a medium one at half the price would hold it."""
    machine = owned_node("n1", flavour=node, cpu="8" if node == "large" else "4", memory="16Gi")
    return quiet_snapshot([machine], [job_on("n1", "a", cpu, left_s)])


@pytest.mark.parametrize(
    ("snapshot", "low_s", "machines"),
    [
        pytest.param(lonely(), 3600, ["medium"], id="half the price"),
        pytest.param(
            lonely(),
            119,
            [],
            id="not wasted enough yet: both are paid for 120 s, at a price as great as the difference",
        ),
        pytest.param(lonely(), 120, ["medium"], id="wasted as much as the change costs"),
        pytest.param(lonely(left_s=500.0), 3600, ["medium"], id="ends after the change has paid"),
        pytest.param(lonely(left_s=300.0), 3600, [], id="ends before it has"),
        pytest.param(lonely(cpu="5"), 3600, [], id="holds it no smaller one"),
        pytest.param(lonely(node="medium"), 3600, [], id="is the smallest"),
    ],
)
def test_what_is_left_goes_to_a_smaller_machine_once_that_pays(
    snapshot: Any, low_s: float, machines: list[str]
) -> None:
    since = {"n1": NOW - low_s}
    memory = Memory(since, {}, NOW - 3600.0)
    snapshot = msgspec.structs.replace(snapshot, memory=memory)
    found = cleaned(snapshot, SHRINKING, may_replace=True)
    assert [launch.flavour for launch in found.launch] == machines
    assert all(launch.replaces == ("n1",) for launch in found.launch)


def test_nothing_shrinks_beside_other_changes_or_where_it_is_off_or_for_a_service() -> None:
    assert not cleaned(lonely(), SHRINKING).launch
    assert not cleaned(lonely(), STAYING, may_replace=True).launch
    served = running(make_pod("web"), "n1")
    with_service = quiet_snapshot([owned_node("n1", flavour="large", cpu="8", memory="16Gi")], [served])
    assert not cleaned(with_service, SHRINKING, may_replace=True).launch


def test_nodes_shrink_together() -> None:
    """Each holds what the other has no room for."""
    nodes = [owned_node(name, flavour="large", cpu="7", memory="16Gi") for name in ("n1", "n2")]
    pods = [job_on(node.name, f"on-{node.name}", "4", 8000.0, memory="7Gi") for node in nodes]
    found = cleaned(quiet_snapshot(nodes, pods), SHRINKING, may_replace=True)
    assert sorted(launch.replaces for launch in found.launch) == [("n1",), ("n2",)]
