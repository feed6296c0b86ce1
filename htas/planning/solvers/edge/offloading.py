"""Who leaves the edge for pods that come to it: the least loss of quality for its size first (KubeDSM, Algorithm 5)."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.start import Start
from htas.planning.solvers.edge.state import CLOUD, Size, fits, minus, part_of, plus, summed


class Offloading:
    """Pods leave a working copy of a start one by one; `lost` is the quality that takes.

    The document sorts all pods anew after each; here only the service changes place that the pod was of. No pod leaves
    for its own service's sake.
    """

    def __init__(self, start: Start, trial: Layout, to_edge: Sequence[int]) -> None:
        self._start, self._search, self._trial, self._many = start, start.search, trial, len(to_edge)
        self.freed: list[int] = []
        self.lost = 0.0
        self._most = start.offloads + len(to_edge) if start.offloads > 0 else 0
        """Some may come back in the end (`put_back`)."""
        pods = self._search.state.pods
        coming = {pods[pod].service for pod in to_edge}
        self._free = summed((_positive(free) for free in trial.free), len(trial.free[0]))
        self._queue = [
            (self._score(service, some), service) for service, some in start.at_home.items() if service not in coming
        ]
        heapify(self._queue)
        self._search.work.spend((len(self._queue) + len(trial.free)) // 2)

    def _score(self, service: int, leaving: Sequence[int]) -> float:
        """Equation 12, with the mean loss of the next pods, as many as are to come."""
        loss = self._search.loss(service, self._trial.near[service], min(len(leaving), self._many))
        return loss / self._search.share(leaving[0])

    def make_room(self, need: Size, may_lose: float) -> bool:
        """Until the edge has as much free in sum as is needed; False where that cannot be, or loses too much."""
        while not fits(need, self._free):
            if self.lost >= may_lose or not self.one_more():
                return False
        return True

    def one_more(self) -> bool:
        """Of the service that loses least the pod that leaves the greatest hole; False where none may leave."""
        if not self._queue or len(self.freed) >= self._most:
            return False
        trial, (_, service) = self._trial, heappop(self._queue)
        home = self._start.layout.where
        leaving = [pod for pod in self._start.at_home[service] if trial.where[pod] == home[pod]]
        if not self._search.work.spend(len(leaving)):
            return False
        pod = min(leaving, key=lambda pod: (-_hole(trial, pod), pod))
        node, before = trial.where[pod], trial.free[trial.where[pod]]
        self.lost -= self._search.qualities.gain(service, trial.near[service], -1)
        trial.put(pod, CLOUD)
        self._free = plus(self._free, minus(_positive(trial.free[node]), _positive(before)))
        self.freed.append(pod)
        leaving.remove(pod)
        if leaving:
            heappush(self._queue, (self._score(service, leaving), service))
        return True

    def put_back(self) -> bool:
        """Have pods stay that left for nothing: what was freed in sum may be more than what was needed in the end.

        Returns whether those that do leave are no more than may.
        """
        trial, search, stay = self._trial, self._search, 0
        for pod in sorted(self.freed, key=lambda pod: (-search.share(pod), pod)):
            it = search.state.pods[pod]
            if fits(it.size, trial.free[it.where]):
                trial.put(pod, it.where)
                stay += 1
        return len(self.freed) - stay <= self._start.offloads


def _positive(free: Size) -> Size:
    """What over-full nodes lack is not taken from the others."""
    return tuple(max(0, left) for left in free)


def _hole(layout: Layout, pod: int) -> float:
    """The share of its node that is free once a pod has left it."""
    node = layout.where[pod]
    left = plus(layout.free[node], layout.state.pods[pod].size)
    return part_of(left, layout.state.nodes[node].total)
