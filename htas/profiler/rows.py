"""Rows of the paper's Table 3, written on its five events. Pure: two snapshots in, rows out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.quantity import MAX_AMOUNT
from htas.model.record import ProfileEvent, ProfileRow
from htas.model.resources import NOTHING
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.run_length import remaining_s


def profile_rows(before: ClusterSnapshot | None, after: ClusterSnapshot, policy: Policy) -> list[ProfileRow]:
    """One row for each event and node between two snapshots (before None: everything there is new).

    A twin, the pod that will take the place of one that is moved, is no event before it has that place; then it was
    rescheduled, not deployed. A move that is taken back leaves no row.
    """
    lived_on = _places(before.cluster.pods) if before is not None else {}
    live_on = _places(after.cluster.pods)
    moved = _moved_here(before, after)
    deployed, rescheduled = set[str](), set[str]()
    for uid, name in live_on.items():
        if lived_on.get(uid) != name:
            (rescheduled if uid in lived_on or uid in moved else deployed).add(name)
    left = {name for uid, name in lived_on.items() if live_on.get(uid) != name}
    old_nodes = {node.name: node for node in before.cluster.nodes} if before is not None else {}
    nodes = {node.name: node for node in after.cluster.nodes}
    events: list[tuple[ProfileEvent, Node]] = []
    for name, node in nodes.items():
        if node.is_ready and (name not in old_nodes or not old_nodes[name].is_ready):
            events.append((ProfileEvent.PROVISIONING, node))
        if name in deployed:
            events.append((ProfileEvent.DEPLOYMENT, node))
        if name in rescheduled:
            events.append((ProfileEvent.RESCHEDULING, node))
        if name in left:
            events.append((ProfileEvent.TERMINATION, node))
    events += [(ProfileEvent.DEPROVISIONING, node) for name, node in old_nodes.items() if name not in nodes]
    there: dict[str, list[Pod]] = {node.name: [] for _, node in events}
    for pod in after.cluster.pods if events else ():
        if pod.node in there:
            there[pod.node].append(pod)
    return [_row(event, node, there[node.name], after.taken_at, policy) for event, node in events]


def _places(pods: Iterable[Pod]) -> dict[str, str]:
    """The node of each pod that has one, by its uid; of one that is being moved, the source's alone."""
    return {pod.uid: pod.node for pod in pods if pod.node is not None and not pod.twin_of}


def _moved_here(before: ClusterSnapshot | None, after: ClusterSnapshot) -> set[str]:
    """The uids of pods that have come to their nodes by a move: twins when they were seen last, or annotated so since.

    The annotation is on a source, too, while its move is under way: that one has come as any pod comes.
    """
    if before is None:
        return set()
    twins = {pod.uid for pod in before.cluster.pods if pod.twin_of}
    leaving = {move.pod for move in after.moves}
    return {pod.uid for pod in after.cluster.pods if pod.uid in twins or (pod.is_moved and pod.key not in leaving)}


def _row(event: ProfileEvent, node: Node, pods: list[Pod], at: float, policy: Policy) -> ProfileRow:
    used = NOTHING
    for pod in pods:
        used += pod.requests
    left = [remaining_s(pod, policy, at) for pod in pods if pod.kind is WorkKind.BATCH]
    return ProfileRow(
        event_time=at,
        event=event,
        instance_name=node.name,
        instance_type=node.flavour or "",
        runtime=math.ceil(max(left, default=0.0)),
        ramcapacity=node.allocatable.memory_bytes,
        cpucapacity=node.allocatable.cpu_m,
        ramavailable=max(node.allocatable.memory_bytes - used.memory_bytes, -MAX_AMOUNT),
        cpuavailable=max(node.allocatable.cpu_m - used.cpu_m, -MAX_AMOUNT),
    )
