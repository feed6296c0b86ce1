"""Which nodes pods may be moved to: those that have been Ready for a while, and on which pods start."""

from __future__ import annotations

from htas.model.edge import EdgePolicy
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.snapshot import ClusterView
from htas.planning.cluster.services import served

START_PATIENCE_S = 60.0
"""A pod whose containers have not started for so long after it was bound (an image that cannot be pulled, a volume that
cannot be mounted) says that its node starts no pods. An image of 1 GB takes a minute at 140 Mbit/s."""


def unfit_targets(view: ClusterView, edge: EdgePolicy, now: float) -> dict[str, str]:
    """Nodes that no pod is to be moved to for now, and why. What waits is placed there all the same.

    So no failure has to be remembered: the pod that does not start stands there for all to see, and bars its node until
    it starts or is gone.
    """
    found = {
        node.name: f"node that has only just become Ready ({node.name})"
        for node in view.nodes
        if _is_new(node, edge, now)
    }
    copies = [pod for pod in view.pods if pod.twin_of and not pod.is_terminating]  # nobody's yet, so no service's
    for pod in (*served(view), *copies):
        if pod.node is not None and _hangs(pod, now):
            found[pod.node] = f"node that {pod.key} does not start on ({pod.node})"
    return found


def _is_new(node: Node, edge: EdgePolicy, now: float) -> bool:
    return node.ready_since is not None and now - node.ready_since < edge.settle_s


def _hangs(pod: Pod, now: float) -> bool:
    return pod.phase is Phase.PENDING and pod.ready_since is None and now - pod.since >= START_PATIENCE_S
