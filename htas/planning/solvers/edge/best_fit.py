"""Room on the edge for some pods of the cloud: others leave it, and a few change places (KubeDSM, Algorithms 4 and 6).

The document frees what is needed in sum and then reorders for the least fragmentation whether or not pods fit. Here
pods must really fit in the end: reordering first looks for a subset that lets them, the smallest first, and where
there is none one more pod is freed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations_with_replacement
from math import prod

from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.matching import match, put_all, seat_all
from htas.planning.solvers.edge.offloading import Offloading
from htas.planning.solvers.edge.search import Search
from htas.planning.solvers.edge.start import Start
from htas.planning.solvers.edge.state import CLOUD, kinds_of, summed

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


def _matched(search: Search, trial: Layout, pods: Sequence[int]) -> dict[int, int]:
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


def _added(search: Search, before: Layout, after: Layout, node: int) -> float:
    of = search.fragmentation.of
    return of(node, after.free[node]) - of(node, before.free[node])
