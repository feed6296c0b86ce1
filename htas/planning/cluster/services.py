"""Services, as far as their users see them: pods that serve, and those that are missed."""

from __future__ import annotations

from htas.model.pods import Pod, WorkKind
from htas.model.snapshot import ClusterView


def is_served(pod: Pod) -> bool:
    """Whether a pod is one of a service's, as far as it is known to users: targets count those."""
    return pod.kind is WorkKind.SERVICE and pod.service is not None and not pod.is_terminating and not pod.gates


def served(view: ClusterView) -> list[Pod]:
    return sorted(filter(is_served, view.pods), key=lambda pod: (pod.created_at, pod.key))


def services_starting(view: ClusterView) -> dict[str, Pod]:
    """Services with a pod that is on a node and not Ready, and that pod: users miss it already."""
    return {pod.service or "": pod for pod in served(view) if pod.node is not None and pod.ready_since is None}
