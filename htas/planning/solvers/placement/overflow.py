"""Overflow search: more pods than fit are put on the nodes, and exchanged until no node is over-full.

One more pod is placed where it overflows little; then, again and again, a pod of an over-full node changes places with
another one, or moves, as lowers the overflow most. What changed places may not go back for some steps (tabu search).
It never gives up a placement it has found: each success is one more pod placed, and the start of the next.

How long an attempt takes varies by a factor of a hundred, so several are made side by side, and the first to succeed is
taken. In numpy sixteen attempts of 160 pods take twice the time of one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htas.planning.cluster.classes import Bools, Ints
from htas.planning.solvers.placement.budget import SearchClock
from htas.planning.solvers.placement.problem import Counts, PlacementProblem, SearchStart

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_TENURE = 5, 15
"""For how many steps a pod stays away from where it was, drawn anew each time."""
_REFUSED = 1e3
_FORBIDDEN = 1e6
_EPSILON = 1e-9
_NODES_AT_ONCE = 64
"""Partners are sought on so many nodes: 500 pods an exchange, whatever the cluster's size."""
_ATTEMPTS = 16
_PAIRS = 10_000
"""Of a pod of an over-full node and another one, judged at once: more no longer cost less by the pair."""
_CELLS = 400_000
"""Items × nodes of all attempts: what they remember fits the second cache."""
_STEPS_BETWEEN_LOOKS = 8


class OverflowSearch:
    """Pods of some kinds, one by one, on all nodes; position N is that of pods without a place.

    Arrays go by resource, attempt and item. The first N items are empty ones that stay one on each node: an exchange
    with a node's empty item is a move there, so that moves and exchanges are judged in one matrix.
    """

    def __init__(self, problem: PlacementProblem, start: SearchStart, clock: SearchClock) -> None:
        kinds, nodes = start.kinds, problem.nodes
        movable = np.where(kinds[:, None], start.x - start.frozen, 0)
        waiting = np.where(kinds & start.may_wait, problem.count - start.x.sum(axis=1), 0)
        self._problem, self._clock, self._nodes = problem, clock, nodes
        self._frozen = np.where(kinds[:, None], start.frozen, 0)
        self._room = problem.free(self._frozen)
        self._kind, at = _one_by_one(np.column_stack([movable, waiting]))
        self._start: Numbers = np.concatenate([np.arange(nodes), at])
        items = len(self._start)
        here = len(at) / max(nodes, 1)
        pairs = here * min(items, (here + 1) * _NODES_AT_ONCE)
        remembered = items * (nodes + 1)
        self._attempts = int(min(_ATTEMPTS, max(1.0, min(_PAIRS / max(pairs, 1.0), _CELLS / remembered))))
        scale = np.maximum(problem.capacity.sum(axis=0), 1).astype(np.float64) / max(nodes, 1)
        empty = np.zeros((nodes, len(scale)))
        self._scale = scale
        self._sizes: Floats = np.ascontiguousarray(np.vstack([empty, problem.requests[self._kind] / scale]).T)
        self._short = self._sizes.astype(np.float32)
        self._stays = np.concatenate([np.zeros(nodes, dtype=np.bool_), ~start.may_wait[self._kind]])
        allowed = problem.allowed[self._kind]
        self._allowed = None if allowed.all() else np.ones((items, nodes + 1), dtype=np.bool_)
        if self._allowed is not None:
            self._allowed[nodes:, :nodes] = allowed
        self._tabu = np.zeros((self._attempts, items, nodes + 1), dtype=np.int32)
        self._step = 0
        self._random = np.random.default_rng(start.seed)
        self._all_attempts_from_start()

    def _all_attempts_from_start(self) -> None:
        self._at = np.repeat(self._start[None], self._attempts, axis=0)
        slack = np.vstack([self._free_at(self._start) / self._scale, np.full((1, len(self._scale)), 1e12)]).T
        self._slack: Floats = np.repeat(slack[:, None], self._attempts, axis=1)

    def _free_at(self, at: Numbers) -> Ints:
        """What a placement leaves free, in integers (the slack is in floating point)."""
        pods = at[self._nodes :]
        inside = pods < self._nodes
        free = self._room.copy()
        np.subtract.at(free, pods[inside], self._problem.requests[self._kind[inside]])
        return free

    def placement(self) -> Counts:
        """The last placement found, as counts (of the kinds searched, frozen pods included)."""
        x = self._frozen.copy()
        at = self._start[self._nodes :]
        placed = at < self._nodes
        np.add.at(x, (self._kind[placed], at[placed]), 1)
        return x

    @property
    def waiting(self) -> int:
        return int(np.count_nonzero(self._start == self._nodes))

    def add_one(self) -> None:
        """Place a waiting pod where it overflows least; each further attempt takes the next best pod and node."""
        nodes = self._nodes
        waiting = np.flatnonzero(self._start == nodes)
        # One of each kind is enough to look at.
        waiting = waiting[np.unique(self._kind[waiting - nodes], return_index=True)[1]]
        if len(waiting) * nodes > 200_000:
            waiting = waiting[np.argsort(self._sizes[:, waiting].sum(axis=0), kind="stable")[: 200_000 // nodes + 1]]
        slack = self._slack[:, 0, :nodes]
        after = np.minimum(slack[:, None] - self._sizes[:, waiting, None], 0.0).sum(axis=0)
        more = np.minimum(slack, 0.0).sum(axis=0)[None] - after
        if self._allowed is not None:
            more = np.where(self._allowed[waiting][:, :nodes], more, _FORBIDDEN)
        few = min(self._attempts, more.size)
        best = np.argpartition(more, few - 1, axis=None)[:few]
        best = best[np.argsort(more.flat[best], kind="stable")]
        best = np.resize(best[more.flat[best] <= max(float(more.flat[best[0]]), _FORBIDDEN / 2)], self._attempts)
        attempts = np.arange(self._attempts)
        self._change(attempts, waiting[best // nodes], np.full(self._attempts, nodes), best % nodes)
        self._clock.work(more.size * 2e-8)

    def _change(self, attempts: Numbers, items: Numbers, source: Numbers, to: Numbers) -> None:
        sizes = self._sizes[:, items]
        self._slack[:, attempts, source] += sizes
        self._slack[:, attempts, to] -= sizes
        self._at[attempts, items] = to

    def repair(self, steps: int, deadline: float) -> bool:
        """Exchange pods until nothing overflows in one of the attempts; False if that was not reached."""
        for step in range(steps):
            over = np.any(self._slack[:, :, : self._nodes] < -_EPSILON, axis=0)
            done = np.flatnonzero(~over.any(axis=1))
            if len(done):
                is_valid = bool((self._free_at(self._at[done[0]]) >= 0).all())
                if is_valid:
                    self._start = self._at[done[0]].copy()
                self._all_attempts_from_start()
                return is_valid
            if step % _STEPS_BETWEEN_LOOKS == 0 and self._clock.is_over(deadline):
                return False
            nodes = (over * self._random.random(over.shape)).argmax(axis=1)
            if not self._exchange(nodes):
                return False
        return False

    def _exchange(self, nodes: Numbers) -> bool:
        """In each attempt the best exchange of a pod of one node; False if there is none in any."""
        self._step += 1
        on_node = self._at == nodes[:, None]
        attempt, here = np.nonzero(on_node[:, self._nodes :])
        if not len(here):
            return False
        here += self._nodes
        others = self._others()
        total = self._judge(nodes, on_node[:, others], attempt, here, others)
        partner = total.argmax(axis=1)
        worth = total[np.arange(len(here)), partner]
        found, first = np.unique(attempt, return_index=True)
        # The row worth most of each attempt: rows of an attempt follow one another.
        rows = np.array(
            [low + worth[low:high].argmax() for low, high in zip(first, [*first[1:], len(here)], strict=True)]
        )
        may = worth[rows] > -_FORBIDDEN / 2
        rows, found = rows[may], found[may]
        if not len(rows):
            return False
        self._swap(found, nodes[found], here[rows], others[partner[rows]])
        self._clock.work(2e-4 + total.size * 2e-8)
        return True

    def _swap(self, attempts: Numbers, nodes: Numbers, items: Numbers, partners: Numbers) -> None:
        there = self._at[attempts, partners]
        until = self._step + self._random.integers(*_TENURE, size=len(attempts))
        self._change(attempts, items, nodes, there)
        self._tabu[attempts, items, nodes] = until
        pods = partners >= self._nodes
        self._change(attempts[pods], partners[pods], there[pods], nodes[pods])
        self._tabu[attempts[pods], partners[pods], there[pods]] = until[pods]

    def _others(self) -> Numbers:
        """Items that may be exchanged with: all; on large clusters those of some nodes drawn, or without a place."""
        if self._nodes <= _NODES_AT_ONCE:
            return np.arange(len(self._start))
        drawn = np.zeros(self._nodes + 1, dtype=np.bool_)
        drawn[self._random.choice(self._nodes, _NODES_AT_ONCE, replace=False)] = True
        drawn[self._nodes] = True
        return np.flatnonzero(drawn[self._at].any(axis=0))

    def _judge(
        self, nodes: Numbers, on_node: Bools, attempt: Numbers, here: Numbers, others: Numbers
    ) -> NDArray[np.float32]:
        """By (attempt, item of its node) and other item: how much less overflow an exchange leaves."""
        at = self._at[:, others]
        attempts = np.arange(len(at))[:, None]
        slacks = self._slack.astype(np.float32)
        total = np.zeros((len(here), len(others)), dtype=np.float32)
        before = np.zeros(at.shape, dtype=np.float32)
        for slack, sizes in zip(slacks, self._short, strict=True):
            there = slack[attempts, at]
            before += np.minimum(there, 0.0)
            change = np.subtract.outer(sizes[here], sizes[others])
            own = change + slack[attempt, nodes[attempt]][:, None]
            total += np.minimum(own, 0.0, out=own)
            np.subtract(there[attempt], change, out=change)
            total += np.minimum(change, 0.0, out=change)
        refused = self._tabu[attempts, others, nodes[:, None]] > self._step
        worse = before + (_REFUSED * refused + _FORBIDDEN * on_node).astype(np.float32)
        total -= worse[attempt]
        positions = at[attempt]
        own_tabu = self._tabu.ravel().take(
            positions + ((attempt * len(self._start) + here) * (self._nodes + 1))[:, None]
        )
        total -= np.float32(_REFUSED) * (own_tabu > self._step)
        if self._stays.any():
            total[self._stays[here][:, None] & (positions == self._nodes)] -= _FORBIDDEN
        if self._allowed is not None:
            may = self._allowed[here[:, None], positions] & self._allowed[others, nodes[:, None]][attempt]
            total[~may] -= _FORBIDDEN
        return total


def _one_by_one(counts: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(kind, position) of every pod counted in [K, positions]."""
    kinds, positions = np.nonzero(counts)
    times = counts[kinds, positions]
    return np.repeat(kinds, times), np.repeat(positions, times)
