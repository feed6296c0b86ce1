"""Room on the edge for some pods of the cloud: others leave it, and a few change places (KubeDSM, Algorithms 4 to 6).

The document frees what is needed in sum and then reorders for the least fragmentation whether or not pods fit. Here
pods must really fit in the end: reordering first looks for a subset that lets them, the smallest first, and where
there is none one more pod is freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from htas.planning.edge.layout import Layout
from htas.planning.edge.matching import match, put_all, seat_all
from htas.planning.edge.search import Search, moves
from htas.planning.edge.state import CLOUD, Size, fits, kinds_of, part_of, plus, summed

LEAST_GAIN = 1e-9
"""Qualities and fragmentation that differ by less are the same."""


def best_fit(search: Search, start: Layout, to_edge: Sequence[int], bar: float) -> Layout | None:
    """A layout with all of the pods on the edge and a better quality than `bar`; None where none was found.

    First with the least loss of quality for what must leave, then with few moves within the edge.
    """
    need = summed((search.state.pods[pod].size for pod in to_edge), len(search.state.pods[to_edge[0]].size))
    gained = start.copy()
    for pod in to_edge:
        gained.near[search.state.pods[pod].service] += 1
    trial = start.copy()
    freed = free_edge_as_needed(search, trial, gained.near, need, to_edge)
    if freed is None:
        return None
    for _ in range(1 + 2 * len(to_edge)):
        near = [
            after - before + there for after, before, there in zip(gained.near, start.near, trial.near, strict=True)
        ]
        if search.qualities.total(near) <= bar + LEAST_GAIN:
            return None
        if _seat(search, trial, to_edge):
            return _put_back(search, trial, freed)
        more = _next_to_leave(search, trial, near, to_edge)
        if more is None:
            return None
        trial.put(more, CLOUD)
        freed.append(more)
    return None


def free_edge_as_needed(
    search: Search, layout: Layout, near: Sequence[int], need: Size, to_edge: Sequence[int]
) -> list[int] | None:
    """Send pods to the cloud until the edge has as much free in sum as is needed; those that left (Algorithm 5).

    Each time the pod that loses least quality for its size (equation 12), `near` being who is on the edge once the
    pods that come are there. None where even all do not make room.
    """
    freed: list[int] = []
    counts = list(near)
    while not fits(need, _free(layout)):
        pod = _next_to_leave(search, layout, counts, to_edge)
        if pod is None:
            return None
        layout.put(pod, CLOUD)
        counts[search.state.pods[pod].service] -= 1
        freed.append(pod)
    return freed


def _free(layout: Layout) -> Size:
    """What is free on all nodes; what over-full ones lack is not taken from the others."""
    return summed((tuple(max(0, left) for left in free) for free in layout.free), len(layout.free[0]))


def _next_to_leave(search: Search, layout: Layout, near: Sequence[int], to_edge: Sequence[int]) -> int | None:
    """The pod that loses least for its size; of one service's the one that leaves the greatest hole.

    A service whose target will be missed anyway loses little more by each further pod, so what counts is the mean
    loss of the next pods, as many as are to come: equation 12 alone sees the γ of the first and not what follows.
    """
    coming = {search.state.pods[pod].service for pod in to_edge}
    best: tuple[float, int] | None = None
    for service, pods in search.on_edge.items():
        leaving = [pod for pod in pods if layout.where[pod] == search.state.pods[pod].where]
        if leaving and service not in coming:
            most = min(len(leaving), len(to_edge))
            loss = min(-search.qualities.gain(service, near[service], -many) / many for many in range(1, most + 1))
            smallest = min(map(search.share, leaving))
            if best is None or (loss / smallest, service) < best:
                best = (loss / smallest, service)
    if best is None:
        return None
    pods = [pod for pod in search.on_edge[best[1]] if layout.where[pod] == search.state.pods[pod].where]
    return min(pods, key=lambda pod: (-_hole(layout, pod), pod))


def _hole(layout: Layout, pod: int) -> float:
    """The share of its node that is free once a pod has left it."""
    node = layout.where[pod]
    left = plus(layout.free[node], layout.state.pods[pod].size)
    return part_of(left, layout.state.nodes[node].total)


def _seat(search: Search, trial: Layout, to_edge: Sequence[int]) -> bool:
    """Seat the pods in a trial layout, with as few pods reordered for it as can be; False where it cannot be done."""
    for reordered in _reorderings(search, trial):
        if reordered and search.tries <= 0:
            return False
        search.tries -= len(reordered) > 0
        for pod in reordered:
            trial.put(pod, CLOUD)
        targets = seat_all(trial, [*to_edge, *reordered])
        if targets is not None:
            tidier = match(trial, kinds_of(search.state, [*to_edge, *reordered]), search.fragmentation)
            put_all(trial, targets if tidier.left else tidier.targets)
            return True
        for pod in reordered:
            trial.put(pod, search.state.pods[pod].where)
    return False


def _reorderings(search: Search, layout: Layout) -> Iterator[tuple[int, ...]]:
    """No pods, then every subset of one, two … M_ER pods that run on the edge, of each kind only the count telling."""
    yield ()
    kinds = kinds_of(search.state, search.movable_on_edge(layout))
    for size in range(1, search.policy.reorder_moves + 1):
        for chosen in combinations_with_replacement(range(len(kinds)), size):
            if all(chosen.count(kind) <= len(kinds[kind]) for kind in set(chosen)):
                taken: dict[int, int] = {}
                pods = []
                for kind in chosen:
                    pods.append(kinds[kind][taken.get(kind, 0)])
                    taken[kind] = taken.get(kind, 0) + 1
                yield tuple(pods)


def _put_back(search: Search, layout: Layout, freed: Sequence[int]) -> Layout:
    """Have pods stay that left for nothing: what was freed in sum may be more than what was needed in the end."""
    for pod in sorted(freed, key=lambda pod: (-search.share(pod), pod)):
        it = search.state.pods[pod]
        if fits(it.size, layout.free[it.where]):
            layout.put(pod, it.where)
    return layout


def reorder_edge(search: Search, start: Layout) -> Layout | None:
    """Up to M_ER pods moved within the edge so that fragmentation is least; None where nothing lowers it (Algorithm 6).

    The print asks for fewer than M_ER, its text for "up to a size of" M_ER, which is done here. Each move must lower
    fragmentation by `policy.tidy_gain` at least: moving is not free.
    """
    best, least = None, search.fragmentation.total(start)
    for reordered in _reorderings(search, start):
        if search.tries <= 0:
            break
        search.tries -= 1
        trial = start.copy()
        for pod in reordered:
            trial.put(pod, CLOUD)
        matching = match(trial, kinds_of(search.state, reordered), search.fragmentation)
        if matching.left:
            continue
        put_all(trial, matching.targets)
        reached = search.fragmentation.total(trial) + search.policy.tidy_gain * moves(trial)
        if reached < least - LEAST_GAIN:
            best, least = trial, reached
    return best
