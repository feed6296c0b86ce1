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
_FORBIDDEN = 1e6
_NODES_AT_ONCE = 64
"""Partners are sought on so many nodes: 500 pods an exchange, whatever the cluster's size."""
_STEPS_BETWEEN_LOOKS = 16


class OverflowSearch:
    """Pods of some kinds, one by one, on all nodes; position N is that of pods without a place."""

    def __init__(
        self, problem: Problem, x: Counts, frozen: Counts, may_wait: Bools, kinds: Bools, seed: int, clock: Clock
    ) -> None:
        """`frozen` counts pods of `x` that stay where they are; only kinds that `may_wait` are left without a place."""
        nodes, movable = problem.nodes, np.where(kinds[:, None], x - frozen, 0)
        waiting = np.where(kinds & may_wait, problem.count - x.sum(axis=1), 0)
        self._problem, self._clock = problem, clock
        self._frozen = np.where(kinds[:, None], frozen, 0)
        self._kind, self._at = _one_by_one(np.column_stack([movable, waiting]))
        scale = np.maximum(problem.capacity.sum(axis=0), 1).astype(np.float64) / max(nodes, 1)
        self._sizes: Floats = problem.requests[self._kind] / scale
        room = (problem.capacity - load(self._frozen, problem.requests)) / scale
        self._slack: Floats = np.vstack([room, np.full((1, room.shape[1]), 1e12)])
        np.subtract.at(self._slack, self._at, self._sizes)
        # The slack is in floating point, where 1e-9 of a node is nothing; whether pods fit is asked of integers.
        self._free: Ints = problem.capacity - load(self._frozen, problem.requests)
        inside = self._at < nodes
        np.subtract.at(self._free, self._at[inside], problem.requests[self._kind[inside]])
        self._may_wait = may_wait[self._kind]
        allowed = problem.allowed[self._kind]
        self._allowed = None if allowed.all() else np.column_stack([allowed, np.ones(len(allowed), dtype=np.bool_)])
        self._tabu = np.zeros((len(self._kind), nodes + 1), dtype=np.int32)
        self._step = 0
        self._random = np.random.default_rng(seed)
        self._epsilon = 1e-9

    def placement(self) -> Counts:
        """The placement as counts (of the kinds searched, frozen pods included)."""
        x = self._frozen.copy()
        placed = self._at < self._problem.nodes
        np.add.at(x, (self._kind[placed], self._at[placed]), 1)
        return x

    @property
    def waiting(self) -> int:
        return int(np.count_nonzero(self._at == self._problem.nodes))

    def add_one(self) -> None:
        """Place the waiting pod that overflows least, where it does."""
        nodes = self._problem.nodes
        waiting = np.flatnonzero(self._at == nodes)
        # One of each kind is enough to look at.
        waiting = waiting[np.unique(self._kind[waiting], return_index=True)[1]]
        if len(waiting) * nodes > 200_000:
            waiting = waiting[np.argsort(self._sizes[waiting].sum(axis=1), kind="stable")[: max(1, 200_000 // nodes)]]
        slack = self._slack[:nodes]
        after = np.minimum(slack[None] - self._sizes[waiting][:, None], 0.0).sum(axis=2)
        more = np.minimum(slack, 0.0).sum(axis=1)[None] - after
        if self._allowed is not None:
            more = np.where(self._allowed[waiting][:, :nodes], more, _FORBIDDEN)
        best = int(more.argmin())
        self._move(int(waiting[best // nodes]), best % nodes)
        self._clock.work(more.size * 2e-8)

    def _move(self, pod: int, to: int) -> None:
        at, request = int(self._at[pod]), self._problem.requests[self._kind[pod]]
        self._slack[at] += self._sizes[pod]
        self._slack[to] -= self._sizes[pod]
        if at < len(self._free):
            self._free[at] += request
        if to < len(self._free):
            self._free[to] -= request
        self._at[pod] = to

    def repair(self, steps: int, deadline: float) -> bool:
        """Exchange pods until nothing overflows; False if that was not reached."""
        nodes = self._problem.nodes
        for step in range(steps):
            overflow = -np.minimum(self._slack[:nodes], 0.0).sum(axis=1)
            full = np.flatnonzero(overflow > self._epsilon)
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
        here = np.flatnonzero(self._at == node)
        if not len(here):
            return False
        targets = self._targets(node)
        partners = np.flatnonzero(np.isin(self._at, targets)) if len(targets) < self._problem.nodes else None
        partners = np.flatnonzero(self._at != node) if partners is None else partners
        swap, swapped = self._best_exchange(node, here, partners)
        move, moved = self._best_move(node, here, targets)
        until = self._step + int(self._random.integers(*_TENURE))
        if move <= swap:
            pod, to = moved
            self._move(pod, to)
            self._tabu[pod, node] = until
        else:
            pod, partner = swapped
            there = int(self._at[partner])
            self._move(pod, there)
            self._move(partner, node)
            self._tabu[pod, node] = self._tabu[partner, there] = until
        self._clock.work(2e-5 + len(here) * (len(partners) + len(targets)) * 4e-8)
        return True

    def _targets(self, node: int) -> NDArray[np.int64]:
        nodes = self._problem.nodes
        if nodes <= _NODES_AT_ONCE:
            return np.append(np.delete(np.arange(nodes), node), nodes)
        drawn = self._random.choice(nodes, _NODES_AT_ONCE, replace=False)
        return np.append(drawn[drawn != node], nodes)

    def _best_exchange(
        self, node: int, here: NDArray[np.int64], partners: NDArray[np.int64]
    ) -> tuple[float, tuple[int, int]]:
        if not len(partners):
            return np.inf, (-1, -1)
        slack, at = self._slack, self._at[partners]
        change = self._sizes[here][:, None] - self._sizes[partners][None]
        before = np.minimum(slack, 0.0).sum(axis=1)
        after = np.minimum(slack[node] + change, 0.0).sum(axis=2)
        after += np.minimum(slack[at][None] - change, 0.0).sum(axis=2)
        gain = before[node] + before[at][None] - after
        refused = self._tabu[here][:, at] > self._step
        refused |= (self._tabu[partners, node] > self._step)[None]
        refused |= (at == self._problem.nodes)[None] & ~self._may_wait[here][:, None]
        gain[refused] += 1e3
        if self._allowed is not None:
            gain[~(self._allowed[here][:, at] & self._allowed[partners, node][None])] = _FORBIDDEN
        best = int(gain.argmin())
        if gain.flat[best] >= _FORBIDDEN / 2:
            return np.inf, (-1, -1)
        return float(gain.flat[best]), (int(here[best // len(partners)]), int(partners[best % len(partners)]))

    def _best_move(
        self, node: int, here: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> tuple[float, tuple[int, int]]:
        targets = targets[targets < self._problem.nodes]
        slack = self._slack
        if not len(targets):
            return np.inf, (int(here[0]), node)
        before = np.minimum(slack, 0.0).sum(axis=1)
        there = np.minimum(slack[targets][None] - self._sizes[here][:, None], 0.0).sum(axis=2)
        left = np.minimum(slack[node] + self._sizes[here], 0.0).sum(axis=1)
        gain = before[node] + before[targets][None] - there - left[:, None]
        gain[self._tabu[here][:, targets] > self._step] += 1e3
        if self._allowed is not None:
            gain[~self._allowed[here][:, targets]] = _FORBIDDEN
        best = int(gain.argmin())
        return float(gain.flat[best]), (int(here[best // len(targets)]), int(targets[best % len(targets)]))


def _one_by_one(counts: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(kind, position) of every pod counted in [K, positions]."""
    kinds, positions = np.nonzero(counts)
    times = counts[kinds, positions]
    return np.repeat(kinds, times), np.repeat(positions, times)
