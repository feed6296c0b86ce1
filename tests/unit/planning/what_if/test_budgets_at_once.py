"""Budgets that let some pods go, but not all of a node at once: the node is emptied by no way that HTAS has."""

from __future__ import annotations

import pytest

from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL
from htas.model.pods import Owner
from htas.model.snapshot import ClusterView
from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.answer import what_if
from htas.planning.what_if.lifting import lifts, slowed
from tests.builders import NOW, budget, make_flavour, make_node, make_pod, make_policy, running

POLICY = make_policy(flavours=[make_flavour("large", "4", "8Gi", "0.40"), make_flavour("small", "2", "4Gi", "0.15")])


def cluster(at: tuple[str, ...], allowed: int | None) -> ClusterView:
    """Small pods of one service on these nodes, one of another on a node of its own; `allowed`: by a budget of the first."""
    nodes = [
        make_node(name, labels={INSTANCE_TYPE_LABEL: "large", HOSTNAME_LABEL: name}) for name in sorted({*at, "z"})
    ]
    pods = [running(make_pod(f"web-{i}", labels={"app": "web"}), node) for i, node in enumerate(at)]
    pods.append(running(make_pod("other", owner=Owner("ReplicaSet", "other", "o", 3)), "z"))
    budgets = () if allowed is None else (budget(allowed, {"app": "web"}),)
    return ClusterView(tuple(nodes), tuple(pods), budgets)


@pytest.mark.parametrize(
    ("at", "allowed", "held"),
    [
        pytest.param(("a", "a"), 1, ("a",), id="two on one node, one may go: packing kept it, and it was bought anew"),
        pytest.param(("a", "a"), 2, (), id="both may go"),
        pytest.param(("a", "a"), None, (), id="no budget covers them"),
        pytest.param(("a", "b"), 1, (), id="one on each of two nodes, one may go: one after the other"),
        pytest.param(("a", "a", "b"), 1, ("a",), id="the node with one of them goes"),
    ],
)
def test_a_node_with_more_pods_than_may_go_at_once_stays(
    at: tuple[str, ...], allowed: int | None, held: tuple[str, ...]
) -> None:
    answer = what_if(cluster(at, allowed), POLICY, NOW)
    assert tuple(each.node for each in answer.held) == held
    assert all(name in answer.packed.kept and name in answer.anew.kept for name in held)
    if held:
        [rule] = [each for each in answer.rules if each.rule == "NotEnoughPdb"]
        assert (rule.pods, rule.nodes, rule.such_as) == (2, 1, "default/web-0")
        assert answer.held[0].message == "default/web-0: budget default/budget lets 1 go at once, and 2 are on its node"
    else:
        assert answer.anew.flavours == {"small": 1}


@pytest.mark.parametrize(
    ("allowed", "pods"),
    [
        pytest.param(1, ["default/web-0", "default/web-1"], id="the row of a rule that holds no node named no pod"),
        pytest.param(2, [], id="all may go in one cycle"),
        pytest.param(0, [], id="none may go: each is held by itself"),
    ],
)
def test_pods_of_which_fewer_may_go_in_one_cycle_than_there_are(allowed: int, pods: list[str]) -> None:
    found = slowed(adopt(cluster(("a", "b"), allowed), POLICY, NOW))
    assert [each.pod for each in found] == pods


def test_a_budget_that_holds_no_node_is_still_told_how_it_is_lifted() -> None:
    view = cluster(("a", "b"), 1)
    present = adopt(view, POLICY, NOW)
    [remedy] = [lift.remedy for lift in lifts(present, ()) if lift.rule == "NotEnoughPdb"]
    assert remedy.startswith("budgets that allow more disruptions at once")
