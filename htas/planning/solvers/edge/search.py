"""What every search on one state needs, worked out once: qualities, fragmentation, kinds and what is still allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htas.model.edge import EdgePolicy
from htas.planning.cluster.classes import Ints
from htas.planning.solvers.edge.fragmentation import Fragmentation
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.quality import Qualities, edge_total, share
from htas.planning.solvers.edge.state import CLOUD, EdgeState

FOR_ROOM, FOR_TIDYING = 20, 5
"""Parts of `subset_limit` that reorderings may try: each costs a matching, some 20 times what a subset of pods does."""


@dataclass(slots=True)
class Work:
    """Pods and nodes that may still be looked at. It is counted and not timed: the same question has the same answer.

    All searches that make one suggestion share one.
    """

    left: int
    spent: int = 0

    def spend(self, looks: int) -> bool:
        """Whether there was some left; then so much of it is used up."""
        if self.left <= 0:
            return False
        self.left -= looks
        self.spent += looks
        return True


class Search:
    """A state, the policy, and `tries`: how many subsets of pods to reorder may still be looked at."""

    def __init__(self, state: EdgeState, policy: EdgePolicy, work: Work | None = None) -> None:
        self.state, self.policy = state, policy
        self.work = work or Work(policy.work_limit)
        self.qualities = Qualities(state, policy)
        self.fragmentation = Fragmentation(state)
        self.tries = policy.subset_limit // FOR_ROOM
        joined = frozenset[int]().union(*{pod.allowed for pod in state.pods if pod.may_move})
        self.on_edge: dict[int, list[int]] = {}
        """Running pods that may be moved, by service; what leaves a node that nobody may join helps none."""
        for number, pod in enumerate(state.pods):
            if pod.may_move and pod.where in joined:
                self.on_edge.setdefault(pod.service, []).append(number)
        total = edge_total(state)
        self._shares = {size: share(size, total) for size in {pod.size for pod in state.pods}}
        self._losses: dict[tuple[int, int, int], float] = {}

    def share(self, pod: int) -> float:
        """size(pod), equation 11."""
        return self._shares[self.state.pods[pod].size]

    def quality(self, layout: Layout) -> float:
        return self.qualities.total(layout.near)

    def loss(self, service: int, near: int, most: int) -> float:
        """What a pod of a service loses that leaves, on the mean over it and the next ones, up to `most` of them.

        A service whose target will be missed anyway loses little more by each further pod: equation 12 alone sees the γ
        of the first and not what follows.
        """
        key = service, near, most
        if key not in self._losses:
            gain = self.qualities.gain
            self._losses[key] = min(-gain(service, near, -many) / many for many in range(1, most + 1))
        return self._losses[key]

    def service(self, kind: Sequence[int]) -> int:
        return self.state.pods[kind[0]].service

    def qualities_with(self, near: Sequence[int], kinds: Sequence[Sequence[int]], counts: Ints) -> NDArray[np.float64]:
        """QoS(u) with so many pods more of each kind on the edge, for every row of `counts`."""
        added: Ints = np.zeros((len(counts), len(near)), dtype=np.int64)
        for number, kind in enumerate(kinds):
            added[:, self.service(kind)] += counts[:, number]
        total: NDArray[np.float64] = np.full(len(counts), self.qualities.total(near))
        for service in {self.service(kind) for kind in kinds}:
            of = np.array(self.qualities.of[service])
            total += of[near[service] + added[:, service]] - of[near[service]]
        return total

    def movable_on_edge(self, layout: Layout) -> list[int]:
        """Running pods that a layout has where the state has them, on the edge, and that may be moved."""
        pods = self.state.pods
        return sorted(n for some in self.on_edge.values() for n in some if layout.where[n] == pods[n].where)

    def movable_in_cloud(self, layout: Layout) -> list[int]:
        """Running pods that a layout leaves in the cloud, that may be moved and have an edge node to go to."""
        pods, where = enumerate(self.state.pods), layout.where
        return [
            n for n, pod in pods if pod.may_move and not pod.is_new and pod.where == CLOUD == where[n] and pod.allowed
        ]


def moves(layout: Layout) -> int:
    """How many pods that are not new are elsewhere than in the layout's state: θ, equation 6."""
    places = zip(layout.where, layout.state.pods, strict=True)
    return sum(where != pod.where and not pod.is_new for where, pod in places)
