"""Refilling: some nodes are emptied and filled anew, one after another, each as near to the brim as can be.

Where all pods but a few have to fit, nodes that together have 0.2 % to spare must be filled to 99.8 %. Exchanges of two
pods seldom come so near; of 24 pods there are 16 million sets, and the one that fills a node best is found by meeting
in the middle (as in filling.py), in some milliseconds. The largest pod left goes first, with what fits beside it best
(minimum bin slack: Gupta and Ho, "A new heuristic algorithm for the one-dimensional bin-packing problem", 1999).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import linear_sum_assignment

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.placement.bounds import directions
from htas.planning.solvers.placement.budget import SearchClock
from htas.planning.solvers.placement.problem import PlacementProblem, SearchStart

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_MOST_SETS = 4096
"""Sets of pods in a half: as many pods are looked at for a node as give so many."""
_MOST_ITEMS = 60
"""A set is 63 bits of an integer at most."""
_PARTS_OF_SLACK = 0.02, 0.1, 0.4, 1.0
"""How much of what all nodes may waste one may: the least that gives a set at all is taken."""
_MOST_PAIRS = 300_000
_TRIES = 30
_BACKTRACKS = 25
_EXCHANGES = 30
_VARIETY = 0.7
"""Of the sets that fill a node well, the how-manieth best is taken in the mean: the best alone would come to the same
end again and again."""
_FEWEST_NODES, _MOST_NODES = 4, 128


@dataclass(frozen=True, slots=True)
class _Sets:
    """Sets of some pods that fit a room: what each asks for, and which pods it has, as bits."""

    loads: Ints
    bits: Numbers


class Refilling:
    """One more pod at a time, by refilling nodes of a placement."""

    def __init__(self, problem: PlacementProblem, start: SearchStart, clock: SearchClock) -> None:
        self._problem, self._clock = problem, clock
        self.x = start.x
        self._kinds, self._may_wait = start.kinds, start.may_wait & start.kinds
        self._frozen = np.where(self._kinds[:, None], start.frozen, 0)
        self._room = problem.free(np.where(self._kinds[:, None], start.frozen, start.x))
        self._scale = np.maximum(problem.capacity.max(axis=0, initial=1), 1).astype(np.float64)
        self._random = np.random.default_rng(start.seed)

    @property
    def waiting(self) -> int:
        return int((self._problem.count - self.x.sum(axis=1))[self._may_wait].sum())

    def one_more(self, deadline: float) -> bool:
        """Whether one more pod was placed in time: a few nodes are tried first, as few move then, and in the end all.

        Nodes with the most room are taken, and others by chance.
        """
        size = _FEWEST_NODES
        for _ in range(_TRIES):
            size = min(size, self._problem.nodes, _MOST_NODES)
            nodes = self._drawn(size)
            chosen = self._chosen(nodes)
            self._clock.work(1e-3)
            if self._clock.is_over(deadline) or (chosen is None and size == self._problem.nodes):
                return False
            if chosen is not None and self._refill(nodes, chosen, deadline):
                return True
            size *= 2
        return False

    def _drawn(self, size: int) -> Ints:
        free = (self._problem.free(self.x) / self._scale).min(axis=1)
        return np.argsort(-free * self._random.uniform(0.5, 1.5, len(free)), kind="stable")[:size]

    def _refill(self, nodes: Ints, chosen: Ints, deadline: float) -> bool:
        content = self._filled(nodes, chosen, deadline)
        if content is None:
            return False
        content = content[:, self._most_at_home(nodes, content)]
        self.x[np.ix_(self._kinds, nodes)] = (self._frozen[:, nodes] + content)[self._kinds]
        return True

    def _most_at_home(self, nodes: Ints, content: Ints) -> Ints:
        """Which content each node gets, so that as many pods as can are at home (an assignment problem).

        Of 248 pods on 32 like nodes 75 instead of 15 were at home, before the fewest moves are searched for.
        """
        problem, room = self._problem, self._room[nodes]
        loads = content.T @ problem.requests
        fits = (loads[None] <= room[:, None]).all(axis=2)
        fits &= (~problem.allowed[:, nodes]).T.astype(np.int64) @ (content > 0) == 0
        home = np.maximum(problem.home[:, nodes] - self._frozen[:, nodes], 0)
        stays = np.array([np.minimum(home[:, [i]], content).sum(axis=0) for i in range(len(nodes))])
        assignment = linear_sum_assignment.SimpleLinearSumAssignment()
        at, of = np.nonzero(fits)
        assignment.add_arcs_with_cost(at, of, -stays[at, of])
        if assignment.solve() != assignment.OPTIMAL:
            return np.arange(len(nodes))
        return np.array([assignment.right_mate(i) for i in range(len(nodes))])

    def _chosen(self, nodes: Ints) -> Ints | None:
        """By kind, one pod more than is there, so that the scarcest resource has the most to spare; None: too many."""
        problem, room = self._problem, self._room[nodes]
        here = np.where(self._kinds, (self.x[:, nodes] - self._frozen[:, nodes]).sum(axis=1), 0)
        waiting = np.where(self._may_wait, problem.count - self.x.sum(axis=1), 0)
        must = np.where(self._may_wait, 0, here)
        most = np.where(self._may_wait, here + waiting, 0)
        number = int(np.where(self._may_wait, here, 0).sum()) + 1
        total = np.maximum(room.sum(axis=0), 1).astype(np.float64)
        shares = problem.requests / total
        left = 1.0 - must @ shares
        best, chosen = -1.0, None
        for weights in directions(len(total)):
            order = np.argsort(shares @ weights, kind="stable")
            before = np.cumsum(most[order]) - most[order]
            taken = np.zeros_like(most)
            taken[order] = np.clip(number - before, 0, most[order])
            spare = float((left - taken @ shares).min(initial=1.0))
            if taken.sum() == number and (chosen is None or spare > best):
                best, chosen = spare, taken
        if chosen is None:
            return None
        chosen = _exchanged(chosen, most, shares, left)
        return must + chosen if (left - chosen @ shares >= 0).all() else None

    def _filled(self, nodes: Ints, chosen: Ints, deadline: float) -> Ints | None:
        """[K, nodes]: what each node holds then; None where that was not found."""
        items = np.repeat(np.arange(len(chosen)), chosen)
        sizes = self._problem.requests[items]
        big_first = np.argsort(-(sizes / self._scale).max(axis=1), kind="stable")
        items, sizes = items[big_first], sizes[big_first]
        order = np.argsort((self._room[nodes] / self._scale).sum(axis=1) + self._random.random(len(nodes)) * 1e-3)
        at = np.full(len(items), -1)
        step, backtracks = 0, 0
        while step < len(order):
            if self._clock.is_over(deadline):
                return None
            if self._fill(items, sizes, at, order[step:], nodes):
                step += 1
                continue
            backtracks += 1
            if backtracks > _BACKTRACKS:
                return None
            step = max(0, step - int(self._random.integers(2, 4 + backtracks // 2)))
            at[np.isin(at, order[step:])] = -1
        content = np.zeros((len(chosen), len(nodes)), dtype=np.int64)
        np.add.at(content, (items, at), 1)
        return content

    def _fill(self, items: Numbers, sizes: Ints, at: Numbers, order: Ints, nodes: Ints) -> bool:
        """The next node of `order` (of those still empty), filled with what is not placed yet; the last takes all."""
        node = order[0]
        room = self._room[nodes[node]]
        rest = np.flatnonzero(at < 0)
        slack = self._room[nodes[order]].sum(axis=0) - sizes[rest].sum(axis=0)
        if (slack < 0).any():
            return False
        may = self._problem.allowed[items[rest], nodes[node]]
        if len(order) == 1:
            at[rest] = node
            return bool(may.all())
        rest = rest[may & (sizes[rest] <= room).all(axis=1)]
        if not len(rest):
            return bool((room <= slack).all())
        # The roomiest nodes take the largest pods; a smaller room takes whichever fill it.
        leading = int((room >= self._room[nodes[order]].max(axis=0)).any())
        others = self._random.permutation(rest[leading:])
        found = _good_set(sizes, rest[:leading], others, room, slack, int(self._random.exponential(_VARIETY)))
        self._clock.work(2e-3)
        if found is None:
            return False
        at[found] = node
        return True


def _exchanged(chosen: Ints, most: Ints, shares: Floats, left: Floats) -> Ints:
    """A choice after exchanges of one pod, each that which leaves the scarcest resource the most."""
    chosen = chosen.copy()
    for _ in range(_EXCHANGES):
        spare = left - chosen @ shares
        out, into = np.flatnonzero(chosen), np.flatnonzero(chosen < most)
        if not len(out) or not len(into):
            break
        after = (spare + shares[out][:, None] - shares[into][None]).min(axis=2)
        best = int(after.argmax())
        if after.flat[best] <= spare.min() + 1e-12:
            break
        chosen[out[best // len(into)]] -= 1
        chosen[into[best % len(into)]] += 1
    return chosen


def _good_set(
    sizes: Ints, first: Numbers, others: Numbers, room: Ints, slack: Ints, passed_over: int
) -> Numbers | None:
    """Pods that fill a room well, `first` among them; None where all sets of those looked at waste more than `slack`.

    The best set but for so many that are passed over: that which wastes the least part of what may be wasted.
    """
    room = room - sizes[first].sum(axis=0)
    one, other, looked_at = _halves(sizes, others, room)
    key = int(np.argmin(slack / np.maximum(room, 1)))
    by_key = np.argsort(other.loads[:, key], kind="stable")
    sorted_loads = other.loads[by_key]
    for part in _PARTS_OF_SLACK:
        waste = (slack * part).astype(np.int64)
        first_of = np.searchsorted(sorted_loads[:, key], room[key] - waste[key] - one.loads[:, key], side="left")
        last_of = np.searchsorted(sorted_loads[:, key], room[key] - one.loads[:, key], side="right")
        pairs = last_of - first_of
        left = np.repeat(np.arange(len(pairs)), pairs)[:_MOST_PAIRS]
        starts = np.repeat(first_of - (np.cumsum(pairs) - pairs), pairs)[:_MOST_PAIRS]
        right = by_key[np.arange(len(left)) + starts]
        wasted = room - one.loads[left] - other.loads[right]
        ok = np.flatnonzero(((wasted >= 0) & (wasted <= waste)).all(axis=1))
        if len(ok):
            by_waste = np.argsort((wasted[ok] / np.maximum(slack, 1)).max(axis=1), kind="stable")
            best = ok[by_waste[min(passed_over, len(ok) - 1)]]
            bits = int(one.bits[left[best]] | other.bits[right[best]])
            return np.array([*first, *(item for i, item in enumerate(looked_at) if bits >> i & 1)], dtype=np.int64)
    return None


def _halves(sizes: Ints, others: Numbers, room: Ints) -> tuple[_Sets, _Sets, Numbers]:
    """Sets of every second of the pods, and of the others; and the pods, as many as are looked at."""
    resources = len(room)
    halves = [_Sets(np.zeros((1, resources), np.int64), np.zeros(1, np.int64)) for _ in range(2)]
    looked_at = 0
    for item in others[:_MOST_ITEMS].tolist():
        half = halves[looked_at % 2]
        grown = half.loads + sizes[item]
        fits = (grown <= room).all(axis=1)
        if len(half.bits) + int(fits.sum()) > _MOST_SETS:
            break
        bits = half.bits[fits] | (1 << looked_at)
        halves[looked_at % 2] = _Sets(np.concatenate([half.loads, grown[fits]]), np.concatenate([half.bits, bits]))
        looked_at += 1
    return halves[0], halves[1], others[:looked_at]
