"""DaemonSets: one pod on each node they suit, bound by their controller as soon as the node registers."""

from __future__ import annotations

import msgspec

from htas.model.constraints import untolerated
from htas.model.nodes import Node
from htas.model.pods import Owner, Phase, Pod
from htas.sandbox.workload import Task


def suits(task: Task, node: Node) -> bool:
    """Whether a DaemonSet wants a pod on a node: by its selector, required node affinity and tolerations.

    A cordon does not matter: the controller lets every DaemonSet pod tolerate it (Kubernetes documentation, DaemonSet,
    "Taints and tolerations").
    """
    constraints = task.constraints
    if any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    terms = constraints.node_affinity
    if terms is not None and not any(term.holds_for(node.labels, node.name) for term in terms):
        return False
    return untolerated(node.taints, constraints.tolerations) is None


def template_pod(task: Task) -> Pod:
    """What a node that suits it will run of a DaemonSet."""
    made = daemon_pod(task, "", 0, 0.0)
    return msgspec.structs.replace(made, phase=Phase.PENDING, node=None, started_at=None)


def daemon_pod(task: Task, node: str, serial: int, now: float) -> Pod:
    """The pod of a DaemonSet on a node, running."""
    name = f"{task.name}-{node}"
    return Pod(
        namespace=task.namespace,
        name=name,
        requests=task.requests,
        uid=f"uid-{name}-{serial}",
        labels=task.labels,
        owner=Owner("DaemonSet", task.name),
        constraints=task.constraints,
        phase=Phase.RUNNING,
        node=node,
        created_at=now,
        started_at=now,
    )
