"""What If loses no pod: whoever waited has a node afterwards, or is told to wait."""

from __future__ import annotations

import msgspec
from hypothesis import given

from htas.documents.afterwards import carried_out
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots
from tests.laws.test_planner_laws import Law


@Law
@given(snapshots(), policies())
def test_who_has_no_node_once_a_plan_is_carried_out_is_told_to_wait(snapshot: ClusterSnapshot, policy: Policy) -> None:
    view = snapshot.cluster
    made = plan(msgspec.structs.replace(snapshot, expects_more=False, claims=()), policy, NOW)
    after = carried_out(view, made, policy)
    there, come = after.pods[: len(view.pods)], after.pods[len(view.pods) :]
    assert [pod.key for pod in there] == [pod.key for pod in view.pods]
    assert {pod.node for pod in come} <= {launch.claim for launch in made.launches}  # DaemonSet pods come with machines
    without = {pod.key for pod in after.pods if pod.node is None}
    assert without == {item.pod for item in made.unplaced}
