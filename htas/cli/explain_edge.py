"""Why a pod of a service is in the cloud, where there is an edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.edge.movers import Movers
from htas.planning.edge.present import edge_nodes, is_served, present
from htas.planning.edge.quality import edge_ratios
from htas.planning.edge.targets import unfit_targets
from htas.planning.edge.view import edge_rows
from htas.planning.feasibility.message import summary
from htas.planning.opening import open_simulation


def explain_tier(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Nothing where no node is of tier edge."""
    near = {node.name for node in edge_nodes(snapshot.cluster.nodes, policy)}
    if not near or pod.is_daemon or pod.is_mirror:
        return
    if is_served(pod):
        yield _share(pod, snapshot, policy)
    if pod.node is None or pod.node in near:
        return
    yield f"is in the cloud: {_why(pod, snapshot, plan, policy)}"


def _share(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> str:
    state = present(snapshot.cluster, policy)
    names = [service.name for service in state.services]
    number = names.index(pod.service or "")
    ratio, target = edge_ratios(state)[number], state.services[number].target
    return f"is of service {names[number]}: {ratio:.0%} of its pods are on the edge, {target:.0%} should be"


def _why(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> str:
    for shift in plan.carry.suggest:
        if shift.uid == pod.uid:
            return f"it is to move to {shift.target}"
    for slot in snapshot.rearrangement.slots if snapshot.rearrangement is not None else ():
        if slot.pod.uid == pod.uid:
            return f"its move to {slot.node} is under way"
    if not is_served(pod):
        return "batch work, and pods without a controller, have no share of the edge"
    why_not = Movers(snapshot, policy, snapshot.taken_at).why_not(pod)
    refusals, nodes = _refusals(pod, snapshot, policy)
    if nodes == 0:
        return (
            f"it may not be moved: {why_not}" if why_not else "it may be moved to the edge, in one of the next periods"
        )
    kept = f" Nor may it be moved: {why_not}" if why_not else ""
    return f"no edge node takes it: {summary(refusals, nodes)}{kept}"


def _refusals(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Counter[str], int]:
    """Why each edge node refuses the pod, counted, and how many there are; 0 where one would take it."""
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    sim, cls = opening.sim, opening.book.class_of(pod)
    row = sim.table.row_of.get(pod.node or "")
    if row is not None:
        sim.unplace(cls, row)
    refusals: Counter[str] = Counter()
    unfit = unfit_targets(snapshot.cluster, policy.edge, snapshot.taken_at)
    rows = edge_rows(opening, policy)
    for at in rows:
        here = sim.diagnose(cls, slice(at, at + 1))
        why_not_now = unfit.get(sim.table.nodes[at].name)
        if not here and sim.table.is_open[at] and why_not_now is None:
            return Counter(), 0
        refusals.update(here or {why_not_now or "node(s) took no pods": 1})
    return refusals, len(rows)
