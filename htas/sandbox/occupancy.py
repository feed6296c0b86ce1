"""Who is on which node, and how much of its room is taken."""

from __future__ import annotations

from htas.model.nodes import Node
from htas.model.resources import NOTHING, Resources


class Occupancy:
    """Room is taken by pods, under their keys, and kept for those that are moving, until they are there or gone."""

    def __init__(self) -> None:
        self._pods: dict[str, set[str]] = {}
        self._taken: dict[str, dict[str, Resources]] = {}
        self._moving_to: dict[str, str] = {}

    def open(self, node: str) -> None:
        self._pods[node], self._taken[node] = set(), {}

    def close(self, node: str) -> None:
        del self._pods[node], self._taken[node]

    def pods(self, node: str) -> list[str]:
        """Keys of the pods on a node, in order; none where there is no such node."""
        return sorted(self._pods.get(node, ()))

    def seat(self, node: str, pod: str, requests: Resources) -> None:
        self._pods[node].add(pod)
        self._taken[node][pod] = requests

    def leave(self, node: str, pod: str) -> None:
        """A node that is gone has been left by everybody."""
        self._pods.get(node, set()).discard(pod)
        self._taken.get(node, {}).pop(pod, None)

    def keep(self, node: str, pod: str, requests: Resources) -> None:
        """Keep room on the node that a pod is moving to."""
        self._moving_to[pod] = node
        self._taken[node][_move_of(pod)] = requests

    def give_back(self, pod: str) -> None:
        """What was kept for a pod that is moving, if anything."""
        self._taken.get(self._moving_to.pop(pod, ""), {}).pop(_move_of(pod), None)

    def has_room(self, node: Node, requests: Resources) -> bool:
        taken = sum(self._taken[node.name].values(), start=NOTHING)
        return requests.fits_in(node.allocatable - taken)


def _move_of(pod: str) -> str:
    return f"move of {pod}"
