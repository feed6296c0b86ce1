"""Rows of the paper's Table 3, written on its five events. Pure: two snapshots in, rows out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.record import ProfileEvent, ProfileRow
from htas.model.resources import NOTHING
from htas.model.snapshot import ClusterSnapshot
from htas.planning.run_length import remaining_s


def profile_rows(before: ClusterSnapshot | None, after: ClusterSnapshot, policy: Policy) -> list[ProfileRow]:
    """One row for each event and node between two snapshots (before None: everything there is new)."""
    lived_on = _places(before.cluster.pods) if before is not None else {}
    live_on = _places(after.cluster.pods)
    come: dict[str, list[str]] = {}
    for uid, name in live_on.items():
        if lived_on.get(uid) != name:
            come.setdefault(name, []).append(uid)
    left = {name for uid, name in lived_on.items() if live_on.get(uid) != name}
    old_nodes = {node.name: node for node in before.cluster.nodes} if before is not None else {}
    nodes = {node.name: node for node in after.cluster.nodes}
    events: list[tuple[ProfileEvent, Node]] = []
    for name, node in nodes.items():
        if node.is_ready and (name not in old_nodes or not old_nodes[name].is_ready):
            events.append((ProfileEvent.PROVISIONING, node))
        if any(uid not in lived_on for uid in come.get(name, ())):
            events.append((ProfileEvent.DEPLOYMENT, node))
        if any(uid in lived_on for uid in come.get(name, ())):
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
    """The node of each pod that has one, by its uid."""
    return {pod.uid: pod.node for pod in pods if pod.node is not None}


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
        ramavailable=node.allocatable.memory_bytes - used.memory_bytes,
        cpuavailable=node.allocatable.cpu_m - used.cpu_m,
    )
