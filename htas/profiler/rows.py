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
    was = _by_node(before.cluster.pods) if before is not None else {}
    now = _by_node(after.cluster.pods)
    old_nodes = {node.name: node for node in before.cluster.nodes} if before is not None else {}
    nodes = {node.name: node for node in after.cluster.nodes}
    lived_on = {pod.uid: pod.node for pods in was.values() for pod in pods}
    events: list[tuple[ProfileEvent, Node]] = []
    for name, node in nodes.items():
        if node.is_ready and (name not in old_nodes or not old_nodes[name].is_ready):
            events.append((ProfileEvent.PROVISIONING, node))
        come = [pod for pod in now.get(name, ()) if lived_on.get(pod.uid) != name]
        gone = {pod.uid for pod in was.get(name, ())} - {pod.uid for pod in now.get(name, ())}
        if any(pod.uid not in lived_on for pod in come):
            events.append((ProfileEvent.DEPLOYMENT, node))
        if any(pod.uid in lived_on for pod in come):
            events.append((ProfileEvent.RESCHEDULING, node))
        if gone:
            events.append((ProfileEvent.TERMINATION, node))
    events += [(ProfileEvent.DEPROVISIONING, node) for name, node in old_nodes.items() if name not in nodes]
    return [_row(event, node, now.get(node.name, []), after.taken_at, policy) for event, node in events]


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node is not None:
            found.setdefault(pod.node, []).append(pod)
    return found


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
