"""Why a pod in the cloud is not on its way to the edge: nothing is promised that the policy forbids."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.edge import EdgePolicy
from htas.model.pods import Pod
from htas.model.snapshot import OptimizerState
from htas.planning.disrupt.edge.explain import why_it_stays
from htas.planning.planner import plan
from tests.builders import NOW, make_job, make_node, make_pod, make_snapshot, running
from tests.unit.planning.edge.test_stage import near, of, policy

DEFAULT = EdgePolicy()
LONG_S = 3600.0
"""Long enough to have settled."""
LATER = "it may be moved to the edge"


def told(pod: Pod, *others: Pod, edge: EdgePolicy = DEFAULT, cores: str = "2", **snapshot: Any) -> str:
    the_policy, pods = policy(edge=edge), (running(pod, "far", LONG_S), *others)
    seen = make_snapshot([near("e", cores), make_node("far", "16")], pods, **snapshot)
    return why_it_stays(seen.cluster.pods[0], seen, plan(seen, the_policy, NOW), the_policy)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(make_job("batch", cpu="1"), "batch work has no share of the edge", id="batch work"),
        pytest.param(make_pod("alone", "1", owner=None), "a pod without a controller has no share of the edge: it only starts there, where there is room", id="nobody's"),
        pytest.param(of("web", "1", deleted_at=NOW), "it ends already", id="one that ends"),
        pytest.param(of("web", "1", gates=("a", "b")), "it is gated (a, b)", id="one that is held"),
    ],
)  # fmt: skip
def test_who_has_no_share(pod: Pod, why: str) -> None:
    assert told(pod) == why


def test_what_the_policy_forbids() -> None:
    none = EdgePolicy(cloud_to_edge_moves=0)
    assert told(of("web", "1"), edge=none) == "nothing is moved to the edge: edge.cloudToEdgeMoves is 0"


def test_a_target_that_is_met_is_enough_where_more_is_worth_nothing() -> None:
    met = "its service has met its target, and with edge.beta 0 more of its pods there gain nothing"
    half = of("web", "1", qos=0.5)
    near_already = running(of("web", "2", qos=0.5), "e", LONG_S)
    assert told(half, near_already, edge=EdgePolicy(beta=0.0)) == met
    assert told(of("web", "1", qos=0.0), edge=EdgePolicy(beta=0.0)) == met
    assert not told(half, near_already, edge=EdgePolicy(beta=0.5)).startswith("its service")
    assert not told(of("web", "1"), edge=EdgePolicy(beta=0.0)).startswith("its service"), "its target is all of it"


def test_what_another_period_may_change() -> None:
    assert (
        told(of("web", "1"), search=OptimizerState(is_under_way=True)) == f"{LATER} once room is made for pending pods"
    )
    first = running(of("web", "2", created_at=NOW - 999), "far", LONG_S)
    one = EdgePolicy(cloud_to_edge_moves=1)
    assert (
        told(of("web", "1"), first, edge=one)
        == f"{LATER}; others are first now, as many as edge.cloudToEdgeMoves allows (1)"
    )
    for_others = f"{LATER}, but others are moved there now, which gains as much or more"
    assert told(of("web", "1"), first, cores="1") == for_others
    assert told(of("web", "1"), of("api", "1"), cores="1") == f"{LATER}, but pods that are placed now take the room"
