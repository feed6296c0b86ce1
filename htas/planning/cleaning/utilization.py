"""Utilisation as Cluster Autoscaler counts it: the greater of cpu and memory requests over allocatable.

Source: Cluster Autoscaler, simulator/utilization/info.go. DaemonSet and mirror pods, if not to be counted, are
taken off both sides; pods whose deletion is overdue ask for nothing any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.planning.cleaning.drain_rules.long_terminating import is_overdue


def utilization(node: Node, pods: Iterable[Pod], rules: CleaningRules, now: float = -math.inf) -> float:
    """From 0 (nothing runs) upwards; a node that offers no cpu or no memory counts as full.

    A node of 4 cores with 1 core of work and 1 core of DaemonSet pods: 1 ÷ (4 - 1) = 33% without DaemonSet pods,
    (1 + 1) ÷ 4 = 50% with them. Without `now` no deletion is overdue.
    """
    return max(shares(node, pods, rules, now))


def shares(node: Node, pods: Iterable[Pod], rules: CleaningRules, now: float = -math.inf) -> tuple[float, float]:
    """The same for cpu and for memory, each by itself."""
    offered_cpu_m, offered_bytes = node.allocatable.cpu_m, node.allocatable.memory_bytes
    asked_cpu_m = asked_bytes = 0
    ignores_daemons, ignores_mirrors = rules.ignore_daemonset_utilization, rules.ignore_mirror_utilization
    for pod in pods:
        requests = pod.requests
        if (ignores_daemons and pod.is_daemon) or (ignores_mirrors and pod.is_mirror):
            offered_cpu_m -= requests.cpu_m
            offered_bytes -= requests.memory_bytes
        elif not is_overdue(pod, now):
            asked_cpu_m += requests.cpu_m
            asked_bytes += requests.memory_bytes
    return _share(asked_cpu_m, offered_cpu_m), _share(asked_bytes, offered_bytes)


def _share(asked: int, offered: int) -> float:
    return asked / offered if offered > 0 else 1.0


def is_empty(pods: Iterable[Pod], now: float) -> bool:
    """Whether nothing runs that would have to go elsewhere."""
    return all(pod.is_daemon or pod.is_mirror or is_overdue(pod, now) for pod in pods)
