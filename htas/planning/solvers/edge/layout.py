"""A working copy of a state, to try decisions on."""

from __future__ import annotations

from htas.planning.solvers.edge.state import CLOUD, EdgeState, fits, minus, plus


class Layout:
    """A working copy of a state: where each pod is, what each edge node has left, and who of each service is near."""

    __slots__ = ("free", "near", "state", "where")

    def __init__(self, state: EdgeState) -> None:
        self.state = state
        self.where = [pod.where for pod in state.pods]
        self.free = [node.free for node in state.nodes]
        self.near = [0] * len(state.services)
        for pod in state.pods:
            self.near[pod.service] += pod.where != CLOUD

    def copy(self) -> Layout:
        other = object.__new__(Layout)
        other.state = self.state
        other.where, other.free, other.near = self.where.copy(), self.free.copy(), self.near.copy()
        return other

    def put(self, pod: int, node: int) -> None:
        """Have a pod on an edge node or in the cloud, whether it fits or not."""
        it, source = self.state.pods[pod], self.where[pod]
        if source != CLOUD:
            self.free[source] = plus(self.free[source], it.size)
            self.near[it.service] -= 1
        if node != CLOUD:
            self.free[node] = minus(self.free[node], it.size)
            self.near[it.service] += 1
        self.where[pod] = node

    def takes(self, node: int, pod: int) -> bool:
        """Whether an edge node passes a pod's filters and has room for it."""
        it = self.state.pods[pod]
        return node in it.allowed and fits(it.size, self.free[node])
