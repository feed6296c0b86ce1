"""Utilisation as Cluster Autoscaler counts it: the greater of cpu and memory requests over allocatable.

Source: Cluster Autoscaler, simulator/utilization/info.go. Pods that are not counted (DaemonSet or mirror pods, if so
configured) are taken off both sides.
"""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.model.resources import NOTHING


def utilization(node: Node, pods: Iterable[Pod], rules: CleaningRules) -> float:
    """From 0 (nothing runs) upwards; a node that offers nothing counts as full."""
    asked, ignored = NOTHING, NOTHING
    for pod in pods:
        if (pod.is_daemon and rules.ignore_daemonset_utilization) or (
            pod.is_mirror and rules.ignore_mirror_utilization
        ):
            ignored += pod.requests
        else:
            asked += pod.requests
    offered = node.allocatable - ignored
    shares = [
        used / there if there > 0 else 1.0
        for used, there in ((asked.cpu_m, offered.cpu_m), (asked.memory_bytes, offered.memory_bytes))
    ]
    return max(shares)


def is_empty(pods: Iterable[Pod]) -> bool:
    """Whether nothing runs that would have to go elsewhere."""
    return all(pod.is_daemon or pod.is_mirror for pod in pods)
