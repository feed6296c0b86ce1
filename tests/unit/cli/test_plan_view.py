"""What `htas plan` says first: how many pods stay pending, and why nothing is told that is not so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.console import Console

from htas.cli.plan_view import plan_view
from htas.documents.least import Least
from htas.model.plan import Cost, Plan
from htas.model.pods import Pod
from htas.model.policy import Limits
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_pod, make_policy, make_snapshot, owned_node
from tests.unit.planning.cleaning.test_consolidating import consolidating, web
from tests.unit.planning.cleaning.world import LARGE, quiet_snapshot


def shown(made: Plan, width: int = 160) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(plan_view(made))
    return [line.rstrip() for line in captured.get().splitlines()]


def shown_with(made: Plan, least: Least) -> list[str]:
    console = Console(width=160, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(plan_view(made, least=least))
    return [line.rstrip() for line in captured.get().splitlines()]


def planned(*pods: Pod, nodes: Any = (), most: int = 5) -> Plan:
    return plan(make_snapshot(nodes, pods), make_policy(limits=Limits(max_nodes=most)), NOW)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        pytest.param(planned(), "0 machines to launch, 0 pods to preempt, 0 to move, 0 nodes to delete, 0 pods pending", id="nothing"),
        pytest.param(planned(make_pod("p")), "1 machine to launch", id="one machine"),
        pytest.param(planned(make_pod("p")), "1 pod pending (1 until a machine is Ready)", id="a machine is to come"),
        pytest.param(planned(make_pod("p"), most=0), "0 nodes to delete, 1 pod pending", id="nothing may be launched"),
        pytest.param(
            planned(make_pod("p"), nodes=[owned_node("n")]), "1 to bind, 0 reservations", id="bound: it is not pending"
        ),
        pytest.param(planned(make_pod("p"), nodes=[owned_node("n")]), "0 pods pending", id="bound"),
        pytest.param(
            planned(make_pod("p", scheduler="other", is_unschedulable=True), nodes=[owned_node("n")]),
            "1 reservation, 0 machines to launch, 0 pods to preempt, 0 to move, 0 nodes to delete, 1 pod pending (1 with a reservation)",
            id="another scheduler binds it",
        ),
        pytest.param(
            planned(make_pod("p", "0", "0"), make_pod("q")),
            "1 of 2 pods states no cpu or no memory request; where machines are launched or saved, 100m cpu and 200 MiB of memory count instead (scheduling.defaultRequests)",
            id="a pod without requests",
        ),
    ],
)  # fmt: skip
def test_the_head_says_how_many_pods_stay_pending(made: Plan, says: str) -> None:
    assert says in " ".join(shown(made)[:4])


def consolidated() -> Plan:
    """Three nodes of 0.40, each with half their cores in use: three of 0.10 hold their pods."""
    nodes = [owned_node(f"worker-{i}", flavour="large", cpu="8", memory="16Gi") for i in range(3)]
    pods = [web(3 * i + j, f"worker-{i}", "1200m") for i in range(3) for j in range(3)]
    small = make_flavour("medium", "4", "8Gi", "0.10")
    return plan(quiet_snapshot(nodes, pods), consolidating(LARGE, small), NOW)


@pytest.mark.parametrize("width", [80, 160])
def test_a_consolidation_names_the_nodes_that_go_what_replaces_them_and_what_it_saves(width: int) -> None:
    lines = shown(consolidated(), width)
    told = " ".join(" ".join(lines).split())
    assert "1.2000 → 1.5000 USD/h, 0.3000 once replaced" in told
    assert "3 nodes to replace, 0 nodes to delete" in told
    assert max(map(len, lines)) <= width
    [row] = [line.split() for line in lines if line.startswith("worker-0")]
    assert row[-6:] == ["medium", "(group", "any)", "0.3000", "0.9000", "Consolidated"]
    assert "Kept" not in lines, "what is replaced is not told as kept"


@pytest.mark.parametrize(
    ("bound", "says"),
    [
        pytest.param(
            110, "USD/h  (the pods that then run cost at least 0.1100, which may be out of reach)", id="below"
        ),
        pytest.param(150, "USD/h", id="no less than the plan"),
        pytest.param(60, "USD/h", id="below half: it leaves out too much"),
    ],
)
def test_a_lower_bound_is_said_to_be_one(bound: int, says: str) -> None:
    made = msgspec.structs.replace(planned(), cost=Cost(before_nanos=100 * 10**6, after_nanos=150 * 10**6))
    assert shown_with(made, Least(bound * 10**6))[0].endswith(says)


def test_a_table_is_of_what_is_done() -> None:
    """Nothing is bound: there is no table of it, and the room that is kept has one of its own."""
    reserved = shown(planned(make_pod("p", scheduler="other", is_unschedulable=True), nodes=[owned_node("n")]))
    assert "Bind" not in reserved
    assert "Reserve" in reserved
    bound = shown(planned(make_pod("p"), nodes=[owned_node("n")]))
    assert "Bind" in bound
    assert "Reserve" not in bound


@pytest.mark.parametrize("width", [80, 160])
def test_it_fits_the_window(width: int) -> None:
    assert max(map(len, shown(planned(make_pod("p"), make_pod("q", "0", "0")), width))) <= width
