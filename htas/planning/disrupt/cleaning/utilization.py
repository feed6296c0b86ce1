"""Utilisation as Cluster Autoscaler counts it: the greater of cpu and memory requests over allocatable, or the GPUs'.

Source: Cluster Autoscaler, simulator/utilization/info.go. DaemonSet and mirror pods, if not to be counted, are
taken off both sides; pods whose deletion is overdue ask for nothing any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.model.resources import CPU, MEMORY, Resources
from htas.planning.cluster.ending import is_overdue, must_leave

GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "microsoft.com/directx")
"""What nodes offer their GPUs as (Cluster Autoscaler, utils/gpu/gpu.go)."""


def utilization(node: Node, pods: Iterable[Pod], rules: CleaningRules, now: float = -math.inf) -> float:
    """From 0 (nothing runs) upwards; a node that offers nothing of a resource beside its DaemonSet pods is full.

    A node of 4 cores with 1 core of work and 1 core of DaemonSet pods: 1 ÷ (4 - 1) = 33% without DaemonSet pods,
    (1 + 1) ÷ 4 = 50% with them. Of a node with GPUs these alone count: one that is dear for its GPU is not in use while
    nothing asks for that, however busy its cores are. Without `now` no deletion is overdue.
    """
    asking, taken_off = _counted(pods, rules, now)
    resources = gpus_of(node) or (CPU, MEMORY)
    return max(_used(node, name, asking, taken_off) for name in resources)


def shares(node: Node, pods: Iterable[Pod], rules: CleaningRules, now: float = -math.inf) -> tuple[float, float]:
    """The same for cpu and for memory, each by itself."""
    asking, taken_off = _counted(pods, rules, now)
    return _used(node, CPU, asking, taken_off), _used(node, MEMORY, asking, taken_off)


def _counted(pods: Iterable[Pod], rules: CleaningRules, now: float) -> tuple[list[Resources], list[Resources]]:
    """What counts as asked for, and what is taken off the node before that."""
    asking: list[Resources] = []
    taken_off: list[Resources] = []
    ignores_daemons, ignores_mirrors = rules.ignore_daemonset_utilization, rules.ignore_mirror_utilization
    for pod in pods:
        if (ignores_daemons and pod.is_daemon) or (ignores_mirrors and pod.is_mirror):
            taken_off.append(pod.requests)
        elif pod.deleted_at is None or not is_overdue(pod, now):  # of 50,000 pods a handful is being deleted
            asking.append(pod.requests)
    return asking, taken_off


def _used(node: Node, name: str, asking: Iterable[Resources], taken_off: Iterable[Resources]) -> float:
    return _share(_sum(asking, name), _sum((node.allocatable,), name) - _sum(taken_off, name))


def gpus_of(node: Node) -> tuple[str, ...]:
    """The resources that a node offers its GPUs as; none: it has none."""
    return tuple(name for name, amount in node.allocatable.extended if name in GPUS and amount > 0)


def _sum(amounts: Iterable[Resources], name: str) -> int:
    if name == CPU:
        return sum([each.cpu_m for each in amounts])
    if name == MEMORY:
        return sum([each.memory_bytes for each in amounts])
    return sum(each.amount(name) for each in amounts)


def _share(asked: int, offered: int) -> float:
    return asked / offered if offered > 0 else 1.0


def is_empty(pods: Iterable[Pod], now: float) -> bool:
    """Whether nothing runs that would have to go elsewhere."""
    return not any(must_leave(pod, now) for pod in pods)
