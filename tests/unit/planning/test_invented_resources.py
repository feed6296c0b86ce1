"""Pods that ask for resources nobody offers cost no more than a pod each, and are told what they lack."""

from __future__ import annotations

import msgspec
import pytest

from htas.planning.cluster.classes import MOST_UNOFFERED, UNOFFERED, ResourceAxis
from htas.planning.cluster.opening import open_simulation
from htas.planning.planner import plan
from tests.builders import amounts, make_node, make_pod, make_policy, make_snapshot


def invented(pods: int, names_each: int) -> list[str]:
    return [f"tenant.example/{pod}-{name}" for pod in range(pods) for name in range(names_each)]


@pytest.mark.parametrize(
    ("names", "columns", "lacks"),
    [
        pytest.param(["example.com/foo"], 5, "Insufficient example.com/foo", id="one has its name in the reason"),
        pytest.param(
            invented(1, MOST_UNOFFERED), 12, "Insufficient tenant.example/0-0", id="as many as have a column each"
        ),
        pytest.param(invented(1, MOST_UNOFFERED + 1), 5, f"Insufficient {UNOFFERED}", id="more share one"),
        pytest.param(invented(24, 300), 5, f"Insufficient {UNOFFERED}", id="thousands share one"),
    ],
)
def test_what_nobody_offers_has_few_columns(names: list[str], columns: int, lacks: str) -> None:
    requests = msgspec.structs.replace(amounts("100m", "128Mi", 1), extended=tuple((name, 1) for name in sorted(names)))
    greedy = make_pod("greedy", requests=requests)
    snapshot = make_snapshot([make_node("a")], [greedy, make_pod("plain")])
    policy = make_policy()
    assert len(open_simulation(snapshot, policy, snapshot.taken_at).sim.table.axis) == columns
    made = plan(snapshot, policy, snapshot.taken_at)
    assert [bind.pod for bind in made.bind] == ["default/plain"]
    assert [lacks in item.message for item in made.unplaced] == [True]


def test_what_a_node_offers_has_a_column_of_its_own_among_thousands_that_are_invented() -> None:
    axis = ResourceAxis(["nvidia.com/gpu"], ["nvidia.com/gpu", *invented(2, 50)])
    assert axis.names[4:] == ("nvidia.com/gpu", UNOFFERED)
    assert axis.row("tenant.example/0-0") == axis.row("tenant.example/1-49") == 5
    with pytest.raises(KeyError):
        axis.row("never.asked/for")
