"""Overflow search: more pods than fit are put on the nodes, and exchanged until no node is over-full.

One more pod is placed where it overflows least; then, again and again, a pod of an over-full node changes places with
another one, or moves, as lowers the overflow most. What changed places may not go back for some steps (tabu search).
It never gives up a placement it has found: each success is one more pod placed, and the start of the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htas.planning.classes import Bools, Ints
from htas.planning.priority.budget import Clock
from htas.planning.priority.problem import Counts, Problem, load

Floats = NDArray[np.float64]

_TENURE = 5, 15
"""For how many steps a pod stays away from where it was, drawn anew each time."""
_REFUSED = 1e3
_FORBIDDEN = 1e6
_NODES_AT_ONCE = 64
"""Partners are sought on so many nodes: 500 pods an exchange, whatever the cluster's size."""
_STEPS_BETWEEN_LOOKS = 16


class OverflowSearch:
    """Pods of some kinds, one by one, on all nodes; position N is that of pods without a place.

    Arrays go by resource first, and the first N items are empty ones that stay one on each node: an exchange with the
    empty item of a node is a move there, so that moves and exchanges are judged in one matrix.
    """

    def __init__(
        self, problem: Problem, x: Counts, frozen: Counts, may_wait: Bools, kinds: Bools, seed: int, clock: Clock
    ) -> None:
        """`frozen` counts pods of `x` that stay where they are; only kinds that `may_wait` are left without a place."""
        nodes, movable = problem.nodes, np.where(kinds[:, None], x - frozen, 0)
        waiting = np.where(kinds & may_wait, problem.count - x.sum(axis=1), 0)
        self._problem, self._clock, self._nodes = problem, clock, nodes
        self._frozen = np.where(kinds[:, None], frozen, 0)
        self._kind, at = _one_by_one(np.column_stack([movable, waiting]))
        self._at = np.concatenate([np.arange(nodes), at])
        scale = np.maximum(problem.capacity.sum(axis=0), 1).astype(np.float64) / max(nodes, 1)
        empty = np.zeros((nodes, len(scale)))
        self._sizes: Floats = np.ascontiguousarray(np.vstack([empty, problem.requests[self._kind] / scale]).T)
        # The slack is in floating point, where 1e-9 of a node is nothing; whether pods fit is asked of integers.
        self._free: Ints = problem.capacity - load(self._frozen, problem.requests)
        inside = at < nodes
        np.subtract.at(self._free, at[inside], problem.requests[self._kind[inside]])
        self._slack: Floats = np.ascontiguousarray(np.vstack([self._free / scale, np.full((1, len(scale)), 1e12)]).T)
        self._stays = np.concatenate([np.zeros(nodes, dtype=np.bool_), ~may_wait[self._kind]])
        allowed = problem.allowed[self._kind]
        self._allowed = None if allowed.all() else np.ones((len(self._at), nodes + 1), dtype=np.bool_)
        if self._allowed is not None:
            self._allowed[nodes:, :nodes] = allowed
        self._tabu = np.zeros((len(self._at), nodes + 1), dtype=np.int32)
        self._step = 0
        self._random = np.random.default_rng(seed)
        self._epsilon = 1e-9

    def placement(self) -> Counts:
        """The placement as counts (of the kinds searched, frozen pods included)."""
        x = self._frozen.copy()
        at = self._at[self._nodes :]
        placed = at < self._nodes
        np.add.at(x, (self._kind[placed], at[placed]), 1)
        return x

    @property
    def waiting(self) -> int:
        return int(np.count_nonzero(self._at == self._nodes))

    def add_one(self) -> None:
        """Place the waiting pod that overflows least, where it does."""
        nodes = self._nodes
        waiting = np.flatnonzero(self._at == nodes)
        # One of each kind is enough to look at.
        waiting = waiting[np.unique(self._kind[waiting - nodes], return_index=True)[1]]
        if len(waiting) * nodes > 200_000:
            waiting = waiting[np.argsort(self._sizes[:, waiting].sum(axis=0), kind="stable")[: 200_000 // nodes + 1]]
        slack = self._slack[:, :nodes]
        after = np.minimum(slack[:, None] - self._sizes[:, waiting, None], 0.0).sum(axis=0)
        more = np.minimum(slack, 0.0).sum(axis=0)[None] - after
        if self._allowed is not None:
            more = np.where(self._allowed[waiting][:, :nodes], more, _FORBIDDEN)
        best = int(more.argmin())
        self._move(int(waiting[best // nodes]), best % nodes)
        self._clock.work(more.size * 2e-8)

    def _move(self, item: int, to: int) -> None:
        at = int(self._at[item])
        self._slack[:, at] += self._sizes[:, item]
        self._slack[:, to] -= self._sizes[:, item]
        request = self._problem.requests[self._kind[item - self._nodes]]
        if at < self._nodes:
            self._free[at] += request
        if to < self._nodes:
            self._free[to] -= request
        self._at[item] = to

    def repair(self, steps: int, deadline: float) -> bool:
        """Exchange pods until nothing overflows; False if that was not reached."""
        for step in range(steps):
            full = np.flatnonzero((self._slack[:, : self._nodes] < -self._epsilon).any(axis=0))
            if not len(full):
                return bool((self._free >= 0).all())
            if step % _STEPS_BETWEEN_LOOKS == 0 and self._clock.is_over(deadline):
                return False
            if not self._exchange(int(full[self._random.integers(len(full))])):
                return False
        return False

    def _exchange(self, node: int) -> bool:
        """The best move or exchange of a pod of an over-full node; False if it has none that may move."""
        self._step += 1
        on_node = self._at == node
        here = np.flatnonzero(on_node)[1:]
        if not len(here):
            return False
        others = np.flatnonzero(self._among(node) if self._nodes > _NODES_AT_ONCE else ~on_node)
        item, partner = self._best(node, here, others)
        if item < 0:
            return False
        until = self._step + int(self._random.integers(*_TENURE))
        there = int(self._at[partner])
        self._move(item, there)
        self._tabu[item, node] = until
        if partner >= self._nodes:
            self._move(partner, node)
            self._tabu[partner, there] = until
        self._clock.work(2e-5 + len(here) * len(others) * 2e-8)
        return True

    def _among(self, node: int) -> Bools:
        """Items on some nodes drawn, and those without a place."""
        drawn = np.zeros(self._nodes + 1, dtype=np.bool_)
        drawn[self._random.choice(self._nodes, _NODES_AT_ONCE, replace=False)] = True
        drawn[node], drawn[self._nodes] = False, True
        return np.asarray(drawn[self._at])

    def _best(self, node: int, here: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[int, int]:
        """The item of a node and the one elsewhere whose exchange leaves least overflow; (-1, -1) if none may be."""
        at = self._at[others]
        # Room lost is negative: the more the sum, the less overflow is left.
        total = np.zeros((len(here), len(others)))
        before = np.zeros(len(others))
        for slack, sizes in zip(self._slack, self._sizes, strict=True):
            change = np.subtract.outer(sizes[here], sizes[others])
            there = slack[at]
            before += np.minimum(there, 0.0)
            total += np.minimum(change + slack[node], 0.0)
            np.subtract(there, change, out=change)
            total += np.minimum(change, 0.0, out=change)
        total -= before
        refused = self._tabu[here].take(at, axis=1) > self._step
        refused |= self._tabu[others, node] > self._step
        if self._stays.any():
            refused |= np.logical_and.outer(self._stays[here], at == self._nodes)
        total[refused] -= _REFUSED
        if self._allowed is not None:
            total[~(self._allowed[here].take(at, axis=1) & self._allowed[others, node])] = -_FORBIDDEN
        best = int(total.argmax())
        if total.flat[best] <= -_FORBIDDEN / 2:
            return -1, -1
        return int(here[best // len(others)]), int(others[best % len(others)])


def _one_by_one(counts: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(kind, position) of every pod counted in [K, positions]."""
    kinds, positions = np.nonzero(counts)
    times = counts[kinds, positions]
    return np.repeat(kinds, times), np.repeat(positions, times)
