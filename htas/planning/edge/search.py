"""What every search on one state needs, worked out once: qualities, fragmentation, kinds and what is still allowed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htas.model.edge import EdgePolicy
from htas.planning.classes import Ints
from htas.planning.edge.fragmentation import Fragmentation
from htas.planning.edge.layout import Layout
from htas.planning.edge.quality import Qualities, edge_total, share
from htas.planning.edge.state import CLOUD, EdgeState

FOR_ROOM, FOR_TIDYING = 20, 5
"""Parts of `subset_limit` that reorderings may try: each costs a matching, some 20 times what a subset of pods does."""


class Search:
    """A state, the policy, and `tries`: how many subsets of pods to reorder may still be looked at."""

    def __init__(self, state: EdgeState, policy: EdgePolicy) -> None:
        self.state, self.policy = state, policy
        self.qualities = Qualities(state, policy)
        self.fragmentation = Fragmentation(state)
        self.tries = policy.subset_limit // FOR_ROOM
        self.on_edge: dict[int, list[int]] = {}
        """Running pods that are on the edge and may be moved, by service."""
        for number, pod in enumerate(state.pods):
            if pod.may_move and pod.where != CLOUD:
                self.on_edge.setdefault(pod.service, []).append(number)
        total = edge_total(state)
        self._shares = {size: share(size, total) for size in {pod.size for pod in state.pods}}

    def share(self, pod: int) -> float:
        """size(pod), equation 11."""
        return self._shares[self.state.pods[pod].size]

    def quality(self, layout: Layout) -> float:
        return self.qualities.total(layout.near)

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

    def movable_in_cloud(self) -> list[int]:
        """Running pods that are in the cloud, may be moved and have an edge node to go to."""
        pods = enumerate(self.state.pods)
        return [n for n, pod in pods if pod.may_move and not pod.is_new and pod.where == CLOUD and pod.allowed]


def moves(layout: Layout) -> int:
    """How many pods that are not new are elsewhere than in the layout's state: θ, equation 6."""
    places = zip(layout.where, layout.state.pods, strict=True)
    return sum(where != pod.where and not pod.is_new for where, pod in places)
