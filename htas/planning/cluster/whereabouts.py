"""Where pods are: which node each is on, or will be in a moment; which are pending; which are being moved."""

from __future__ import annotations

from htas.model.moves import Move
from htas.model.pods import Pod
from htas.model.snapshot import ClusterSnapshot


def node_of(pod: Pod, snapshot: ClusterSnapshot) -> str | None:
    """The node that a pod runs on, or that it is being bound to: a bind that no watch has shown yet counts as done."""
    return pod.node or (snapshot.expected_binds.get(pod.key) if snapshot.expected_binds else None)


def is_pending(pod: Pod, node: str | None) -> bool:
    """Whether a pod waits for a node: it has none (`node` is what `node_of` tells), no gate, and is not ending."""
    return node is None and not pod.is_terminating and not pod.gates


def on_their_way(snapshot: ClusterSnapshot) -> set[str]:
    """Pods (their keys) that are moved, or will be, and those that are being bound."""
    return {move.pod for move in moves_under_way(snapshot)} | set(snapshot.expected_binds)


def moves_under_way(snapshot: ClusterSnapshot) -> list[Move]:
    """Moves of draining nodes, begun or not, and all others that have been asked for."""
    return [*(move for drain in snapshot.drains for move in drain.moves), *snapshot.moves]
