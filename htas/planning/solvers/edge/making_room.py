"""Which of some pods go to the edge, and room made for them there (KubeDSM, Algorithms 3 to 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.edge.matching import MatchingTable, match, put_all, seat_all
from htas.planning.solvers.edge.search import EdgeSearch, Start, moves
from htas.planning.solvers.edge.state import CLOUD, Layout, Size, fits, kinds_of, minus, part_of, plus, summed

# Room on the edge for some pods of the cloud: others leave it, and a few change places (KubeDSM, Algorithms 4 and 6).
#
# The document frees what is needed in sum and then reorders for the least fragmentation whether or not pods fit. Here
# pods must really fit in the end: reordering first looks for a subset that lets them, the smallest first, and where
# there is none one more pod is freed.

LEAST_GAIN = 1e-9
"""Qualities and fragmentation that differ by less are the same."""
DEAREST_MATCH = 20_000
"""What a matching takes at most, in looks at a pod or a node."""


def best_fit(start: Start, to_edge: Sequence[int], bar: float) -> Layout | None:
    """A layout with all of the pods on the edge and a better quality than `bar`; None where none was found.

    First with the least loss of quality for what must leave, then with few moves within the edge.
    """
    search, trial = start.search, start.layout.copy()
    pods, near = search.state.pods, start.layout.near
    may_lose = start.quality - bar - LEAST_GAIN
    for service, many in Counter(pods[pod].service for pod in to_edge).items():
        may_lose += search.qualities.gain(service, near[service], many)
    offloading = Offloading(start, trial, to_edge)
    need = summed((pods[pod].size for pod in to_edge), len(pods[to_edge[0]].size))
    if not offloading.make_room(need, may_lose):
        return None
    for _ in range(1 + 2 * len(to_edge)):
        if offloading.lost >= may_lose:
            return None
        if _seat(start, trial, to_edge, offloading.freed):
            return trial if offloading.put_back() else None
        if not offloading.one_more():
            return None
    return None


def _seat(start: Start, trial: Layout, to_edge: Sequence[int], freed: Collection[int]) -> bool:
    """Seat the pods in a trial layout, with as few pods reordered for it as can be; False where it cannot be done."""
    search = start.search
    for reordered in _reorderings(start, freed):
        search.tries -= len(reordered) > 0
        pods = [*to_edge, *reordered]
        for pod in reordered:
            trial.put(pod, CLOUD)
        targets = seat_all(trial, pods, search.work)
        if targets is not None:
            tidier = _matched(search, trial, pods)
            put_all(trial, targets if len(tidier) < len(pods) else tidier)
            return True
        for pod in reordered:
            trial.put(pod, search.state.pods[pod].where)
    return False


def _matched(search: EdgeSearch, trial: Layout, pods: Sequence[int]) -> dict[int, int]:
    """Which of the pods get which node, with the least fragmentation."""
    kinds = kinds_of(search.state, pods)
    nodes = min(len(search.state.nodes), len(pods) * len(kinds))
    search.work.spend(min(DEAREST_MATCH, 8 * nodes * prod(len(kind) + 1 for kind in kinds)))
    return match(trial, kinds, search.fragmentation).targets


def _reorderings(start: Start, freed: Collection[int]) -> Iterator[tuple[int, ...]]:
    """No pods, then every subset of one, two … M_ER pods that run on the edge, of each kind only the count telling.

    As many as there are tries for; kinds are not even made out where there are none.
    """
    yield ()
    search = start.search
    if search.tries <= 0 or start.reorderings <= 0:
        return
    kinds = [[pod for pod in kind if pod not in freed] for kind in start.kinds] if freed else start.kinds
    kinds = [kind for kind in kinds if kind]
    for size in range(1, start.reorderings + 1):
        for chosen in combinations_with_replacement(range(len(kinds)), size):
            if search.tries <= 0 or search.work.left <= 0:
                return
            counts = Counter(chosen)
            if all(many <= len(kinds[kind]) for kind, many in counts.items()):
                yield tuple(pod for kind, many in counts.items() for pod in kinds[kind][:many])


def reorder_edge(start: Start) -> Layout | None:
    """Up to M_ER pods moved within the edge so that fragmentation is least; None where nothing lowers it (Algorithm 6).

    The print asks for fewer than M_ER, its text for "up to a size of" M_ER, which is done here. Each move must lower
    fragmentation by `policy.tidy_gain` at least: moving is not free.
    """
    search, trial = start.search, start.layout.copy()
    pods, best, least = search.state.pods, dict[int, int](), -LEAST_GAIN
    for reordered in _reorderings(start, ()):
        if not reordered:
            continue
        search.tries -= 1
        search.work.spend(sum(len(pods[pod].allowed) for pod in reordered))
        for pod in reordered:
            trial.put(pod, CLOUD)
        targets = _matched(search, trial, reordered)
        if len(targets) == len(reordered):
            put_all(trial, targets)
            moved = sum(node != pods[pod].where for pod, node in targets.items())
            touched = {*targets.values(), *(pods[pod].where for pod in reordered)}
            added = sum(_added(search, start.layout, trial, node) for node in touched)
            if moved and added + search.policy.tidy_gain * moved < least:
                best, least = targets, added + search.policy.tidy_gain * moved
        for pod in reordered:
            trial.put(pod, pods[pod].where)
    if not best:
        return None
    put_all(trial, best)
    return trial


def _added(search: EdgeSearch, before: Layout, after: Layout, node: int) -> float:
    of = search.fragmentation.of
    return of(node, after.free[node]) - of(node, before.free[node])


# Who leaves the edge for pods that come to it: the least loss of quality for its size first (KubeDSM, Algorithm 5).


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


# Which of some pods go to the edge: the subset that makes the total quality best (KubeDSM, Algorithm 3).
#
# Algorithm 3 as printed (line 17) takes the current decision where the best so far is *better*, and so keeps the worst;
# the text's intent, the highest quality, is what is done here. Subsets are counts of kinds, looked at from the one that
# would raise the quality most, so that the search ends once no other can be better than what was found.


def decide_new(search: EdgeSearch, start: Layout, kinds: Sequence[Sequence[int]]) -> Layout:
    """The best subset of new pods on the edge, nothing moved; of equal ones that of least fragmentation.

    The document compares sums of resources here and may find later that some pods do not fit. The table of matchings
    says of every subset whether it does, so the best one of all is found.
    """
    table = MatchingTable(start, kinds, search.fragmentation)
    counts: Ints = np.indices(table.least.shape).reshape(len(kinds), table.least.size).T
    fragmentation = table.least.ravel()
    quality = np.where(np.isfinite(fragmentation), search.qualities_with(start.near, kinds, counts), -np.inf)
    equal = np.flatnonzero(quality >= quality.max() - LEAST_GAIN)
    best = int(equal[np.argmin(fragmentation[equal])])
    layout = start.copy()
    for pod, node in table.seats(counts[best].tolist()).items():
        layout.put(pod, node)
    return layout


def decide_moves(search: EdgeSearch, layout: Layout, kinds: Sequence[Sequence[int]], most: int) -> Layout:
    """The best subset of at most so many pods from the cloud on the edge, with what has to move for it; the layout
    itself where none is better.

    Of two that are as good the one with fewer moves. Where there is too much to look at, the best that was found.
    """
    start = Start(search, layout)
    best, quality = layout, start.quality
    fewest = moves(layout)
    counts = subsets([len(kind) for kind in kinds], most)
    hoped = search.qualities_with(layout.near, kinds, counts)
    sizes = counts.sum(axis=1)
    for row in np.lexsort((sizes, -hoped)).tolist():
        is_as_good = hoped[row] > quality - LEAST_GAIN and sizes[row] < fewest
        if not (hoped[row] > quality + LEAST_GAIN or is_as_good) or not sizes[row]:
            if hoped[row] < quality - LEAST_GAIN:
                break
            continue
        if search.work.left <= 0:
            break
        to_edge = [pod for kind, many in zip(kinds, counts[row].tolist(), strict=True) for pod in kind[:many]]
        found = best_fit(start, to_edge, quality - 2 * LEAST_GAIN)
        if found is None:
            continue
        search.work.spend(len(search.state.pods) // 10)
        reached, moved = search.quality(found), moves(found)
        if reached > quality + LEAST_GAIN or (reached > quality - LEAST_GAIN and moved < fewest):
            best, quality, fewest = found, reached, moved
    return best


def subsets(counts: Sequence[int], most: int) -> Ints:
    """Every count of every kind with at most so many in all, one a row; the first is none of any."""
    rows: Ints = np.zeros((1, len(counts)), dtype=np.int64)
    for kind, many in enumerate(counts):
        more = [rows]
        for taken in range(1, min(many, most) + 1):
            raised = rows[rows.sum(axis=1) + taken <= most].copy()
            raised[:, kind] = taken
            more.append(raised)
        rows = np.concatenate(more)
    return rows


def with_one_more(ways: Sequence[int], many: int) -> list[int]:
    """How many subsets of each number of pods there are once there is one more kind, of so many pods.

    Before the first kind there is the one of none: [1, 0, 0]. With a kind of two [1, 1, 1], with another [1, 2, 3].
    """
    return [sum(ways[max(0, size - many) : size + 1]) for size in range(len(ways))]
