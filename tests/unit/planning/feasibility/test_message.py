"""The sentence, after kube-scheduler's FitError."""

from __future__ import annotations

import pytest

from htas.planning.cluster.feasibility.message import summary
from tests.builders import make_node, no_schedule, opened, verdicts
from tests.unit.planning.feasibility.situations import on, pod


@pytest.mark.parametrize(
    ("counts", "nodes", "sentence"),
    [
        pytest.param({}, 0, "0/0 nodes are available", id="no nodes"),
        pytest.param({"Insufficient cpu": 3}, 3, "0/3 nodes are available: 3 Insufficient cpu.", id="one reason"),
        pytest.param(
            {"Insufficient cpu": 3, "Too many pods": 1},
            4,
            "0/4 nodes are available: 1 Too many pods, 3 Insufficient cpu.",
            id="sorted with their counts",
        ),
        pytest.param(
            {"Insufficient memory": 10, "Insufficient cpu": 2},
            12,
            "0/12 nodes are available: 10 Insufficient memory, 2 Insufficient cpu.",
            id="sorted as text, so that 10 comes before 2",
        ),
        pytest.param(
            {"Insufficient memory": 1, "Insufficient cpu": 1},
            1,
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
            id="two reasons of one node",
        ),
        pytest.param(
            {'persistentvolumeclaim "data" not found': 5},
            5,
            '0/5 nodes are available: persistentvolumeclaim "data" not found.',
            id="what lies in the pod has no count",
        ),
        pytest.param(
            {"pod has unbound immediate PersistentVolumeClaims": 2, "Insufficient cpu": 1},
            3,
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            id="and stands alone",
        ),
    ],
)
def test_summary(counts: dict[str, int], nodes: int, sentence: str) -> None:
    assert summary(counts, nodes) == sentence


def test_each_node_is_counted_by_the_first_filter_that_refuses_it() -> None:
    nodes = [
        make_node("cordoned", "50m", is_unschedulable=True, taints=(no_schedule("x"),)),
        make_node("tainted", "50m", pods=1, taints=(no_schedule("x"),)),
        make_node("unselected", "50m"),
        make_node("small", "50m", "64Mi", labels={"disk": "ssd"}),
        make_node("busy", pods=1, labels={"disk": "ssd"}),
    ]
    incoming = pod(node_selector=(("disk", "ssd"),))
    simulated = opened(nodes, [incoming, on("busy")])
    counts = simulated.sim.diagnose(simulated.book.class_of(incoming))
    assert summary(counts, 5) == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )


def test_what_is_kept_of_nodes_holds_while_machines_come_and_go() -> None:
    """Nodes are judged once for all pods alike: those added in a fork are judged too, and others in their rows anew."""
    incoming = pod()
    simulated = opened([make_node("tainted", taints=(no_schedule("x"),))], [incoming])
    sim, cls = simulated.sim, simulated.book.class_of(incoming)
    tainted, cordoned = "node(s) had untolerated taint(s)", "node(s) were unschedulable"
    assert sim.diagnose(cls) == {tainted: 1}
    with sim.fork():
        sim.add_nodes([make_node("cordoned", is_unschedulable=True), make_node("free")])
        assert sim.diagnose(cls) == {tainted: 1, cordoned: 1}
        assert sim.feasible(cls).tolist() == [False, False, True]
    assert sim.diagnose(cls) == {tainted: 1}
    sim.add_nodes([make_node("other", taints=(no_schedule("x"),))])
    assert sim.diagnose(cls) == {tainted: 2}, "not what had stood in that row"


def test_what_is_not_understood_is_refused_everywhere_with_a_reason_for_each_feature() -> None:
    incoming = pod(unsupported=("resourceClaims", "topology spread policy Perhaps", "resourceClaims"))
    reason = "resourceClaims is not supported by htas; topology spread policy Perhaps is not supported by htas"
    assert verdicts([make_node("a"), make_node("b")], incoming) == {"a": reason, "b": reason}
