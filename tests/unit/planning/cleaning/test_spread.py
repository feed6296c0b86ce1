"""What is being emptied bears a taint: whether it stays a domain to spread over is the constraint's to say."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, SpreadConstraint, Toleration
from htas.model.disruptions import Drain
from htas.model.nodes import DRAINING_TAINT, HOSTNAME_LABEL
from htas.model.pods import Pod
from htas.model.reasons import Kept
from htas.planning.planner import plan
from tests.builders import NOW, labels_are, make_job, make_policy, make_snapshot, owned_node
from tests.unit.planning.cleaning.world import cleaned, job_on, kept, message, moves, quiet_snapshot

TOLERANT = (Toleration(DRAINING_TAINT.key, "Exists"),)


def spread(*, honours: bool, tolerations: tuple[Toleration, ...] = ()) -> dict[str, Any]:
    """At most one more on a host than on any other."""
    constraint = SpreadConstraint(HOSTNAME_LABEL, 1, labels_are(app="a"), honors_node_taints=honours)
    return {"labels": {"app": "a"}, "constraints": Constraints(spread=(constraint,), tolerations=tolerations)}


CASES = [
    pytest.param(spread(honours=True), True, id="Honor: a tainted node is no domain, and n2 may have two"),
    pytest.param(spread(honours=False), False, id="Ignore: it is one, and empty"),
    pytest.param(spread(honours=True, tolerations=TOLERANT), False, id="Honor, with the taint tolerated"),
]


@pytest.mark.parametrize(("spread_out", "goes"), CASES)
def test_a_pod_joins_its_like_where_its_own_node_is_no_domain_any_more(spread_out: dict[str, Any], goes: bool) -> None:
    """kube-scheduler would see n1 tainted: it may put the pod on n2 only where n1 does not count."""
    pods = [job_on("n1", "one", **spread_out), job_on("n2", "two", cpu="3", **spread_out)]
    cleaning = cleaned(quiet_snapshot([owned_node("n1"), owned_node("n2")], pods))
    assert moves(cleaning) == ([("one", "n1", "n2")] if goes else [])
    if not goes:
        assert kept(cleaning)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS
        why = "fits on no other node: 1 node(s) didn't match pod topology spread constraints"
        assert message(cleaning, "n1") == f"default/one (1000m cpu, 128 Mi memory) {why}"


@pytest.mark.parametrize(("spread_out", "goes"), CASES)
def test_nor_is_a_node_whose_taint_nobody_has_seen_yet(spread_out: dict[str, Any], goes: bool) -> None:
    """The drain is journalled before the taint is set, and the watch shows that later still."""
    waiting: Pod = make_job("new", **spread_out)
    snapshot = make_snapshot(
        [owned_node("n1"), owned_node("n2")],
        [job_on("n2", "two", **spread_out), waiting],
        drains=(Drain("n1", "n1", "Underutilized", NOW),),
    )
    assert [bind.node for bind in plan(snapshot, make_policy(), NOW).bind] == (["n2"] if goes else [])


def test_a_node_that_could_not_be_emptied_is_a_domain_again() -> None:
    """n1 is tried first, in vain. Then n2's job may not join n3's while n1, too small for it, has none."""
    pinned = job_on("n1", "pinned", "100m", constraints=Constraints(node_selector=((HOSTNAME_LABEL, "n1"),)))
    spread_out = spread(honours=True)
    pods = [pinned, job_on("n2", "two", **spread_out), job_on("n3", "three", cpu="3", **spread_out)]
    nodes = [owned_node("n1", cpu="1"), owned_node("n2"), owned_node("n3")]
    cleaning = cleaned(quiet_snapshot(nodes, pods))
    reasons = {"n1": Kept.NO_PLACE_TO_MOVE_PODS, "n2": Kept.NO_PLACE_TO_MOVE_PODS, "n3": Kept.NOT_UNDERUTILIZED}
    assert kept(cleaning) == reasons
