"""Why a pod of a service is in the cloud, where there is an edge."""

from __future__ import annotations

from collections.abc import Iterator

from htas.model.edge import TIER_LABEL, Tier
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import is_served
from htas.planning.disrupt.edge.explain import why_it_stays
from htas.planning.place.edge_present import edge_nodes, present
from htas.planning.solvers.edge.search import edge_ratios


def explain_tier(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Nothing where no node is of tier edge."""
    near = {node.name for node in edge_nodes(snapshot.cluster.nodes, policy)}
    if not near or not pod.is_work:
        return
    if is_served(pod):
        yield _share(pod, snapshot, policy)
    if pod.node is None or pod.node in near:
        return
    yield f"is in the cloud: {_why(pod, snapshot, plan, policy)}"


def tier_line(node: Node, snapshot: ClusterSnapshot, policy: Policy) -> list[str]:
    """The tier of a node and who says it; nothing where no node is of tier edge."""
    if not edge_nodes(snapshot.cluster.nodes, policy):
        return []
    stated = node.labels.get(TIER_LABEL)
    if stated in tuple(Tier):
        why = f"its label {TIER_LABEL}"
    else:
        why = (
            f"its group {node.group}"
            if policy.group(node.group) is not None
            else "no label and no group states another tier"
        )
    return [f"is of tier {policy.tier_of(node)} ({why})"]


def _share(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> str:
    state = present(snapshot.cluster, policy)
    names = [service.name for service in state.services]
    number = names.index(pod.service or "")
    ratio, target = edge_ratios(state)[number], state.services[number].target
    return f"is of service {names[number]}: {ratio:.0%} of its pods are on the edge, {target:.0%} should be"


def _why(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> str:
    for shift in plan.suggest:
        if shift.uid == pod.uid:
            return f"it is to move to {shift.target}"
    for slot in snapshot.rearrangement.slots if snapshot.rearrangement is not None else ():
        if slot.pod.uid == pod.uid:
            return f"its move to {slot.node} is under way"
    return why_it_stays(pod, snapshot, plan, policy)
