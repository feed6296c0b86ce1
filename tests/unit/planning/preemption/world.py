"""Small clusters for preemption: nodes of four cores, and pods of so many of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits, Policy, Promises
from htas.planning.disrupt.preemption.candidates import PreemptionCandidate
from htas.planning.disrupt.preemption.preemptor import Preemptor
from htas.planning.planner import plan
from tests.builders import NOW, labels_are, make_node, make_pod, make_policy, make_snapshot, opened, running

LOW, MIDDLE, HIGH = 0, 100, 1000


def machine(name: str, cpu: str = "4", **how: Any) -> Node:
    return make_node(name, cpu, "64Gi", **how)


def on(node: str, name: str, cpu: str = "4", priority: int = LOW, since_s: float = 60.0, **how: Any) -> Pod:
    return running(make_pod(name, cpu, "1Gi", priority=priority, **how), node, since_s)


def incoming(cpu: str = "4", priority: int = HIGH, name: str = "p", **how: Any) -> Pod:
    return make_pod(name, cpu, "1Gi", priority=priority, **how)


def ending(pod: Pod, since_s: float = 1.0) -> Pod:
    return msgspec.structs.replace(pod, deleted_at=NOW - since_s)


def policy(promises: Promises = Promises.AS_KUBE_SCHEDULER, mode: FallbackMode = FallbackMode.PREEMPT) -> Policy:
    return make_policy(limits=Limits(max_nodes=0), fallback=Fallback(mode=mode, promises=promises))


def budget(allowed: int, app: str = "foo", name: str = "budget") -> DisruptionBudget:
    return DisruptionBudget("default", name, labels_are(app=app), allowed)


def chosen(
    pod: Pod,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    budgets: Iterable[DisruptionBudget] = (),
    promises: Promises = Promises.AS_KUBE_SCHEDULER,
) -> tuple[str, set[str]] | str:
    """The node chosen for a pod and the names of its victims; or why there is none."""
    how, there, here = policy(promises), tuple(nodes), (*pods, pod)
    snapshot = make_snapshot(there, here, budgets=tuple(budgets))
    simulated = opened(there, here, how, budgets=tuple(budgets))
    found = Preemptor(simulated, snapshot, how, NOW).preempt(pod)
    return found if isinstance(found, str) else told(found)


def told(found: PreemptionCandidate) -> tuple[str, set[str]]:
    return found.node, {victim.name for victim in found.victims}


def planned(nodes: Iterable[Node], pods: Iterable[Pod], how: Policy | None = None, **snapshot: Any) -> Plan:
    """The plan of a cluster whose limits let nothing be bought."""
    return plan(make_snapshot(nodes, pods, **snapshot), how or policy(), NOW)
