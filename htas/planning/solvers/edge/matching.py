"""Which edge node each of some pods gets: as many as can be, with the least fragmentation (KubeDSM, Algorithm 8).

dp(i, pods) is the least fragmentation with `pods` on the nodes 1 to i. Pods of one kind may change places, so a subset
is a count of each kind and a table over all of them an array: for 20 pods of 4 kinds 6⁴ = 1,296 entries, not 2²⁰.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.edge.search import Fragmentation, SearchEffort
from htas.planning.solvers.edge.state import CLOUD, Layout, fit_each, fits, minus, plus

LARGEST_TABLE = 20_000
"""Entries of dp for one node."""
MOST_STEPS = 20_000_000
"""Entries that all fillings of all nodes may touch; each step is one addition of an array, 1 ns an entry."""
FIXED_STEP = 10_000
"""What an addition of arrays takes whatever their size, in entries."""


@dataclass(frozen=True, slots=True)
class Matching:
    """`targets` are the edge nodes that pods get; `left` are those that get none."""

    targets: dict[int, int]
    left: tuple[int, ...]


class MatchingTable:
    """dp over every count of every kind. `least` is the fragmentation added at least, infinite where impossible."""

    def __init__(self, layout: Layout, kinds: Sequence[Sequence[int]], fragmentation: Fragmentation) -> None:
        self._kinds = kinds
        self._shape = tuple(len(kind) + 1 for kind in kinds)
        self._vectors: Ints = np.indices(self._shape).reshape(len(kinds), prod(self._shape)).T
        pods = [layout.state.pods[kind[0]] for kind in kinds]
        self._used: Ints = self._vectors @ np.array([pod.size for pod in pods], dtype=np.int64)
        self._nodes = relevant_nodes(layout, kinds, fragmentation)
        self.least: NDArray[np.float64] = np.full(self._shape, np.inf)
        self.least[(0,) * len(kinds)] = 0.0
        self._fillings: list[Ints] = []
        self._chosen: list[NDArray[np.int32]] = []
        for node in self._nodes:
            barred = [k for k, pod in enumerate(pods) if node not in pod.allowed]
            self._fill(layout, node, barred, fragmentation)

    def _fill(self, layout: Layout, node: int, barred: list[int], fragmentation: Fragmentation) -> None:
        """dp(i, ·) from dp(i - 1, ·): every filling of node i, the empty one first."""
        fitting = fit_each(self._used, np.array(layout.free[node], dtype=np.int64))
        fitting &= ~self._vectors[:, barred].any(axis=1)
        rows = np.flatnonzero(fitting)
        before, at_first = self.least, fragmentation.of(node, layout.free[node])
        self.least = before.copy()
        chosen = np.zeros(self._shape, dtype=np.int32)
        for number, row in enumerate(rows[1:].tolist(), start=1):
            left = minus(layout.free[node], tuple(self._used[row].tolist()))
            added = fragmentation.of(node, left) - at_first
            filling = self._vectors[row].tolist()
            after = tuple(slice(n, None) for n in filling)
            rest = tuple(slice(0, size - n) for size, n in zip(self._shape, filling, strict=True))
            reached = before[rest] + added
            is_less = reached < self.least[after] - 1e-12
            np.copyto(self.least[after], reached, where=is_less)
            np.copyto(chosen[after], number, where=is_less)
        self._fillings.append(self._vectors[rows])
        self._chosen.append(chosen)

    def seats(self, counts: Sequence[int]) -> dict[int, int]:
        """Which pod gets which node for a count of each kind that is possible: dp traced back from its last node."""
        left, targets = list(counts), {}
        for i in reversed(range(len(self._nodes))):
            filling = self._fillings[i][self._chosen[i][tuple(left)]].tolist()
            for k, many in enumerate(filling):
                for pod in self._kinds[k][left[k] - many : left[k]]:
                    targets[pod] = self._nodes[i]
                left[k] -= many
        return targets


def table_is_small(nodes: int, kinds: Sequence[Sequence[int]]) -> bool:
    """Whether the table is worth its time: at most about 20 ms, and far less as a rule."""
    entries = prod(len(kind) + 1 for kind in kinds)
    subsets = prod((len(kind) + 1) * (len(kind) + 2) // 2 for kind in kinds)
    return entries <= LARGEST_TABLE and nodes * (subsets + entries * FIXED_STEP) <= MOST_STEPS


def relevant_nodes(layout: Layout, kinds: Sequence[Sequence[int]], fragmentation: Fragmentation) -> list[int]:
    """Nodes that dp needs: of each kind with n pods, the n nodes where one of its pods adds least fragmentation.

    Of three nodes all are kept as a rule; of a hundred, five pods can use five each.
    """
    pods = sum(len(kind) for kind in kinds)
    found: set[int] = set()
    for kind in kinds:
        pod = layout.state.pods[kind[0]]
        taking = [node for node in pod.allowed if fits(pod.size, layout.free[node])]
        if len(taking) > pods:
            cost = {n: _added(layout, n, kind[0], fragmentation) for n in taking}
            taking = sorted(taking, key=lambda n: (cost[n], n))[:pods]
        found.update(taking)
    return sorted(found)


def _added(layout: Layout, node: int, pod: int, fragmentation: Fragmentation) -> float:
    free = layout.free[node]
    return fragmentation.of(node, minus(free, layout.state.pods[pod].size)) - fragmentation.of(node, free)


def match(layout: Layout, kinds: Sequence[Sequence[int]], fragmentation: Fragmentation) -> Matching:
    """As many of the pods as can be, and of those as many the ones that add least fragmentation.

    Beyond the bound of the table, one pod after another, the largest first, where it adds least.
    """
    if not kinds:
        return Matching({}, ())
    if not table_is_small(len(relevant_nodes(layout, kinds, fragmentation)), kinds):
        return match_one_by_one(layout, kinds, fragmentation)
    table = MatchingTable(layout, kinds, fragmentation)
    pods = np.indices(table.least.shape).sum(axis=0)
    most = int(pods[np.isfinite(table.least)].max())
    best = int(np.argmin(np.where(pods == most, table.least, np.inf)))
    targets = table.seats([int(n) for n in np.unravel_index(best, table.least.shape)])
    return Matching(targets, tuple(pod for kind in kinds for pod in kind if pod not in targets))


def match_one_by_one(layout: Layout, kinds: Sequence[Sequence[int]], fragmentation: Fragmentation) -> Matching:
    """Best fit decreasing: quick, but pods that only another order would seat are left."""
    pods, trial, targets = layout.state.pods, layout.copy(), {}
    for kind in sorted(kinds, key=lambda kind: pods[kind[0]].size, reverse=True):
        for pod in kind:
            taking = [node for node in sorted(pods[pod].allowed) if fits(pods[pod].size, trial.free[node])]
            if not taking:
                break
            node = min(taking, key=lambda n: (_added(trial, n, pod, fragmentation), trial.free[n]))
            trial.free[node] = minus(trial.free[node], pods[pod].size)
            targets[pod] = node
    return Matching(targets, tuple(pod for kind in kinds for pod in kind if pod not in targets))


def seat_all(layout: Layout, pods: Sequence[int], work: SearchEffort, most_steps: int = 60) -> dict[int, int] | None:
    """A node for every one of a few pods, by trying; None where there is none or `most_steps` trials found none.

    A pod that runs on a node is not seated there again: it is asked about because it should leave.
    """
    order = sorted(pods, key=lambda pod: (-max(layout.state.pods[pod].size[:1]), layout.state.pods[pod].size, pod))
    free, targets, steps = layout.free.copy(), dict[int, int](), 0

    def seat(index: int) -> bool:
        nonlocal steps
        if index == len(order):
            return True
        it = layout.state.pods[order[index]]
        if not work.spend(len(it.allowed)):
            return False
        taking = [n for n in it.allowed if n != it.where and fits(it.size, free[n])]
        for node in sorted(taking, key=lambda n: (free[n], n)):
            steps += 1
            if steps > most_steps:
                return False
            free[node] = minus(free[node], it.size)
            targets[order[index]] = node
            if seat(index + 1):
                return True
            free[node] = plus(free[node], it.size)
            del targets[order[index]]
        return False

    return targets if seat(0) else None


def put_all(layout: Layout, targets: dict[int, int]) -> None:
    """Have each pod where a matching has it."""
    for pod in targets:
        if layout.where[pod] != CLOUD:
            layout.put(pod, CLOUD)
    for pod, node in targets.items():
        layout.put(pod, node)
