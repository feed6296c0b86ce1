"""The optimisation problem in integers: kinds of pods, nodes, a placement as a matrix of counts, and parts of it.

Sets, variables, objective and constraints are numbered as in docs/algorithms.md, "The optimiser".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from htas.model.pods import Pod
from htas.planning.cluster.classes import Bools, Ints

Counts = NDArray[np.int64]
"""x[k, j]: how many pods of kind k are on node j."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacementProblem:
    """Pods that may be moved or placed, grouped into kinds k ∈ K, over nodes j ∈ N and resources r ∈ R.

    Pods of a kind are interchangeable: same requests, same priority, allowed on the same nodes, under the same budget,
    on the same terms, and either all running or all waiting. What may not be moved is no part of it: its requests are
    taken off `capacity`, and `settled` counts it (wanted, placed) by tier.
    """

    priorities: tuple[int, ...]
    """Of each tier, highest first; tier 0 is the most important."""
    capacity: Ints
    """[N, R]: what is free of pods that are no part of the problem."""
    requests: Ints
    """[K, R]."""
    tier: Ints
    is_running: Bools
    yields: Bools
    """Pods that leave their node only where work of higher priority arrives (constraint 5)."""
    budget_of: Ints
    """[K]: the disruption budget that covers a kind, or -1."""
    budgets: tuple[int, ...]
    """How many pods each may lose."""
    allowed: Bools
    """[K, N]: whether the filters that read nodes alone accept."""
    home: Counts
    """[K, N]: where running pods are now."""
    count: Ints
    """[K]: how many pods there are."""
    members: tuple[tuple[Pod, ...], ...]
    rows: tuple[int, ...]
    """Of each node, its row in the simulation."""
    settled: tuple[tuple[int, int], ...]
    undecided: tuple[int, ...]
    """By tier, waiting pods whose constraints this model cannot express: they are tried once a placement is found."""

    @property
    def tiers(self) -> int:
        return len(self.priorities)

    @property
    def nodes(self) -> int:
        return len(self.capacity)

    @property
    def kinds(self) -> int:
        return len(self.requests)

    def upto(self, tier: int) -> Bools:
        """Kinds of this tier and of all more important ones."""
        return np.asarray(self.tier <= tier)

    def placed(self, x: Counts, tier: int) -> int:
        """Objective (A): pods placed up to a tier."""
        return int(x.sum(axis=1)[self.tier <= tier].sum())

    def stays(self, x: Counts, tier: int) -> int:
        """Objective (B): Σ over running pods up to a tier of 2 if it stays, 1 if it moves, 0 if it is evicted.

        So the document's text; its formula, Σx + 2·x at home, comes to 3, 1 and 0, and would rather evict one of two
        pods for a waiting one of their priority (3) than move both (2).
        """
        placed, at_home = self._by_kind(x)
        kinds = (self.tier <= tier) & self.is_running
        return int(placed[kinds].sum() + at_home[kinds].sum())

    def _by_kind(self, x: Counts) -> tuple[Ints, Ints]:
        """(placed, at home) of each kind; few of home's counts are not zero."""
        kinds, nodes = np.nonzero(self.home)
        at_home = np.zeros(self.kinds, dtype=np.int64)
        np.add.at(at_home, kinds, np.minimum(x[kinds, nodes], self.home[kinds, nodes]))
        return x.sum(axis=1), at_home

    def most_stays(self, tier: int) -> int:
        return 2 * int(self.home.sum(axis=1)[self.tier <= tier].sum())

    def wanted(self, tier: int) -> int:
        return int(self.count[self.tier <= tier].sum())

    def score(self, x: Counts) -> tuple[int, ...]:
        """What is maximised, lexicographically: (A) and (B) of tier 0, then of tier 1 and so on."""
        placed, at_home = self._by_kind(x)
        values: list[int] = []
        for tier in range(self.tiers):
            upto = self.tier <= tier
            values += [int(placed[upto].sum()), int((placed + at_home)[upto & self.is_running].sum())]
        return tuple(values)

    def free(self, x: Counts) -> Ints:
        """[N, R]: what a placement leaves of each node."""
        return np.asarray(self.capacity - load(x, self.requests))

    def yielded_in_vain(self, x: Counts) -> Bools:
        """[N]: nodes that a yielding pod left though no more important pod arrived there: constraint (5) broken."""
        in_vain = np.zeros(self.nodes, dtype=np.bool_)
        left = x < self.home
        arrived = x > self.home
        for tier in np.unique(self.tier[self.yields]):
            went = left[self.yields & (self.tier == tier)].any(axis=0)
            in_vain |= went & ~arrived[self.tier < tier].any(axis=0)
        return in_vain

    def disturbed(self, x: Counts) -> list[int]:
        """By budget, how many of the pods it covers leave their nodes."""
        gone = (self.home - np.minimum(x, self.home)).sum(axis=1)
        return [int(gone[self.budget_of == budget].sum()) for budget in range(len(self.budgets))]

    def is_valid(self, x: Counts) -> bool:
        """Constraints (1) to (6)."""
        return bool(
            (x >= 0).all()
            and (x.sum(axis=1) <= self.count).all()
            and (self.free(x) >= 0).all()
            and not x[~self.allowed].any()
            and not self.yielded_in_vain(x).any()
            and all(used <= allowed for used, allowed in zip(self.disturbed(x), self.budgets, strict=True))
        )


@dataclass(frozen=True, slots=True, eq=False)
class SearchStart:
    """What a search for one more pod begins with. `frozen` counts pods of `x` that stay where they are; only kinds that
    `may_wait` are left without a place, and only `kinds` are searched."""

    x: Counts
    frozen: Counts
    may_wait: Bools
    kinds: Bools
    seed: int


@dataclass(frozen=True, slots=True)
class Measure:
    """A linear function of a placement: Σ each[k]·x[k, j] + Σ at_home[k]·min(x[k, j], home[k, j])."""

    each: Ints
    at_home: Ints

    def of(self, x: Ints, home: Ints) -> int:
        return int(self.each @ x.sum(axis=1) + self.at_home @ np.minimum(x, home).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Floor:
    """What a placement must reach at least."""

    measure: Measure
    least: int


@dataclass(frozen=True, slots=True)
class Program:
    """Part of a problem: some kinds on some nodes, what else is there already taken off `room`."""

    requests: Ints
    count: Ints
    room: Ints
    allowed: Bools
    home: Ints
    tier: Ints
    yields: Bools
    objective: Measure
    floors: tuple[Floor, ...]

    @property
    def least(self) -> list[int]:
        return [floor.least for floor in self.floors]


def load(x: Counts, requests: Ints) -> Ints:
    """[N, R]: what counts of kinds ([K, N]) request on each node, by the few that are not zero."""
    total = np.zeros((x.shape[1], requests.shape[1]), dtype=np.int64)
    kinds, nodes = np.nonzero(x)
    np.add.at(total, nodes, x[kinds, nodes][:, None] * requests[kinds])
    return total


def smallest_units(capacity: Ints, requests: Ints) -> tuple[Ints, Ints]:
    """Only resources that can run out, each in the greatest unit that divides every request (fewer digits to add).

    Rounding a node's room down to that unit loses nothing: no sum of requests lies between.
    """
    used = np.flatnonzero(requests.any(axis=0)) if len(requests) else np.arange(0)
    used = used[~_outlasting(capacity[:, used], requests[:, used])]
    capacity, requests = capacity[:, used], requests[:, used]
    units = np.array([gcd(*map(int, requests[:, r])) for r in range(len(used))], dtype=np.int64)
    return np.asarray(capacity // units), np.asarray(requests // units)


def _outlasting(capacity: Ints, requests: Ints) -> Bools:
    """Resources of which no pod takes as great a share of any node as it does of one other resource.

    Of 110 pods a node takes, one that asks for 100 of 4,000 m takes less than 1 %: cpu runs out first.
    """
    found = np.zeros(capacity.shape[1], dtype=np.bool_)
    if not len(capacity) or (capacity <= 0).any():
        return found
    for one in range(len(found)):
        for other in np.flatnonzero(~found):
            # With the nodes' most of the other resource for one of this one, a pod's share there is least.
            rate = (capacity[:, other] / capacity[:, one]).max()
            if other != one and (requests[:, one] * rate * (1 + 1e-9) < requests[:, other]).all():
                found[one] = True
    return found
