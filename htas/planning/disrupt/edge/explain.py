"""Why a pod is in the cloud and not on its way to the edge: the reasons of `moving` and `suggesting`, in words."""

from __future__ import annotations

from collections import Counter

from htas.model.plan import Plan
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.feasibility.message import summary
from htas.planning.cluster.services import is_served
from htas.planning.cluster.simulated import open_simulation
from htas.planning.disrupt.edge.candidates import EdgeCandidates
from htas.planning.disrupt.edge.targets import unfit_targets
from htas.planning.place.edge_present import edge_nodes, present
from htas.planning.place.edge_view import edge_rows
from htas.planning.solvers.edge.making_room import LEAST_GAIN
from htas.planning.solvers.edge.search import Qualities
from htas.planning.solvers.edge.state import Layout


def why_it_stays(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> str:
    """Of a pod on a cloud node that `plan`, made of the snapshot with every stage due, does not move to the edge.

    What lasts is told first: who has no share of the edge, the policy, the pod's own wishes, the nodes; then what
    another period may change.
    """
    if not is_served(pod):
        return _without_share(pod)
    if not policy.edge.cloud_to_edge_moves:
        return "nothing is moved to the edge: edge.cloudToEdgeMoves is 0"
    why_not = EdgeCandidates(snapshot, policy, snapshot.taken_at).why_not(pod)
    refusals, nodes = _refusals(pod, snapshot, policy)
    if nodes:
        kept = f" Nor may it be moved: {why_not}" if why_not else ""
        return f"no edge node takes it: {summary(refusals, nodes)}{kept}"
    if why_not:
        return f"it may not be moved: {why_not}"
    if not _is_worth_something(pod, snapshot, policy):
        beta = policy.edge.beta
        return f"its service has met its target, and with edge.beta {beta:g} more of its pods there gain nothing"
    return _of_now(snapshot, plan, policy)


def _without_share(pod: Pod) -> str:
    if pod.is_terminating:
        return "it ends already"
    if pod.gates:
        return f"it is gated ({', '.join(pod.gates)})"
    if pod.kind is WorkKind.BATCH:
        return "batch work has no share of the edge"
    return "a pod without a controller has no share of the edge: it only starts there, where there is room"


def _refusals(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Counter[str], int]:
    """Why each edge node refuses the pod, counted, and how many there are; 0 where one would take it."""
    simulated = open_simulation(snapshot, policy, snapshot.taken_at)
    sim, cls = simulated.sim, simulated.book.class_of(pod)
    row = sim.table.row_of.get(pod.node or "")
    if row is not None:
        sim.unplace(cls, row)
    refusals: Counter[str] = Counter()
    unfit = unfit_targets(snapshot.cluster, policy.edge, snapshot.taken_at)
    rows = edge_rows(simulated, policy)
    for at in rows:
        here = sim.diagnose(cls, slice(at, at + 1))
        why_not_now = unfit.get(sim.table.nodes[at].name)
        if not here and sim.table.is_open[at] and why_not_now is None:
            return Counter(), 0
        refusals.update(here or {why_not_now or "node(s) took no pods": 1})
    return refusals, len(rows)


def _is_worth_something(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> bool:
    """Whether its service gains by as many of its pods more on the edge as may be moved at once."""
    state = present(snapshot.cluster, policy)
    service = [each.name for each in state.services].index(pod.service or "")
    qualities, near = Qualities(state, policy.edge), Layout(state).near[service]
    most = min(policy.edge.cloud_to_edge_moves, qualities.count[service] - near)
    return any(qualities.gain(service, near, pods) > LEAST_GAIN for pods in range(1, most + 1))


def _of_now(snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> str:
    if snapshot.rearrangement is not None:
        return "it may be moved to the edge once the rearrangement under way is over"
    if snapshot.search.is_under_way or plan.optimize or plan.preempt:
        return "it may be moved to the edge once room is made for pending pods"
    near = {node.name for node in edge_nodes(snapshot.cluster.nodes, policy)}
    lifted = sum(move.source not in near and move.target in near for move in plan.suggest)
    if lifted >= policy.edge.cloud_to_edge_moves:
        return f"it may be moved to the edge; others are first now, as many as edge.cloudToEdgeMoves allows ({lifted})"
    if lifted:
        return "it may be moved to the edge, but others are moved there now, which gains as much or more"
    return "it may be moved to the edge, but pods that are placed now take the room"
