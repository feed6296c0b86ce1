"""The instance: items to be held, kinds of machines that hold them, and what limits how many.

An item is waiting pods that are alike for buying: same requests, same takers, same *level*. Levels are the lengths of
time a machine may be held for, shortest first; a machine is held as long as its longest item needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from htas.planning.cluster.classes import Bools, Ints

LARGEST = 2**60
"""Sums must stay within this, so that the int64 of numpy and CP-SAT holds them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Σ usage[kind] · machines of that kind ≤ left."""

    usage: tuple[int, ...]
    left: int


@dataclass(frozen=True, eq=False)
class MixProblem:
    """All whole numbers. A machine of a kind held for a level costs `prices[kind] · holds[level]`."""

    requests: Ints
    """items × resources"""
    counts: Ints
    levels: Ints
    """of each item"""
    free: Ints
    """kinds × resources"""
    prices: Ints
    takes: Bools
    """kinds × items"""
    holds: tuple[int, ...]
    """by level, ascending"""
    limits: tuple[Limit, ...] = ()

    @cached_property
    def most(self) -> Ints:
        """How many of each item one machine of each kind holds alone, at most as many as there are."""
        asked = np.maximum(self.requests, 1)
        fit = self.free[:, None, :] // asked[None, :, :]
        fit = np.where(self.requests[None, :, :] > 0, fit, np.int64(2**31)).min(axis=2)
        fit = np.minimum(fit, self.counts[None, :])
        most: Ints = np.where(self.takes, np.maximum(fit, 0), 0).astype(np.int64)
        return most

    def cost(self, kind: int, level: int) -> int:
        return int(self.prices[kind]) * self.holds[level]

    @property
    def is_exact_in_64_bits(self) -> bool:
        """Whether no sum over all items, of a resource or of costs, exceeds `LARGEST`."""
        return max(*self._largest_sums()) <= LARGEST

    def in_64_bits(self) -> MixProblem:
        """The same in coarser units, where sums could exceed `LARGEST`: ten years of a dear machine, an exbibyte.

        Requests and prices are rounded up and capacities down, so what fits here fits in truth.
        """
        if self.is_exact_in_64_bits:
            return self
        *resources, cost = (-(-each // LARGEST) for each in self._largest_sums())
        units = np.array([max(1, unit) for unit in resources], dtype=np.int64)
        prices = [-(-price // max(1, cost)) for price in self.prices.tolist()]
        return replace(
            self, requests=-(-self.requests // units), free=self.free // units, prices=np.array(prices, dtype=np.int64)
        )

    def _largest_sums(self) -> list[int]:
        """What all items could add up to: for each resource, and last for costs. Python's integers do not wrap."""
        count = int(self.counts.sum()) + 1
        largest = np.maximum(self.free.max(axis=0, initial=0), self.requests.max(axis=0, initial=0)).tolist()
        return [count * each for each in largest] + [count * max(self.prices.tolist(), default=0) * max(self.holds)]

    def within(self, limits: tuple[Limit, ...]) -> MixProblem:
        return replace(self, limits=limits)

    def undominated(self) -> tuple[MixProblem, Ints, Ints]:
        """(the instance without kinds that another one replaces, the kinds kept, for each kind who stands in for it).

        A kind is replaced by one that costs no more, offers no less of anything (beyond what all items ask for there is
        nothing to offer), takes all that it holds, and uses no more of any limit. So the least cost stays what it is.
        """
        offers = np.minimum(self.free, self.counts @ self.requests)
        usages = np.array([limit.usage for limit in self.limits], dtype=np.int64).reshape(-1, len(self.prices)).T
        holds = self.most > 0
        keys = [*usages.T[::-1], -self.takes.sum(axis=1), *(-offers.T[::-1]), self.prices]
        kept: Ints = np.zeros(len(self.prices), dtype=np.int64)
        stands_in: Ints = np.zeros(len(self.prices), dtype=np.int64)
        number = 0
        for kind in np.lexsort(keys).tolist():
            others = kept[:number]
            better = (offers[others] >= offers[kind]).all(axis=1) & (usages[others] <= usages[kind]).all(axis=1)
            better[better] = (self.takes[others[better]] | ~holds[kind]).all(axis=1)
            if better.any():
                stands_in[kind] = others[better.argmax()]
            else:
                kept[number] = stands_in[kind] = kind
                number += 1
        kept = np.sort(kept[:number])
        limits = tuple(Limit(tuple(limit.usage[kind] for kind in kept.tolist()), limit.left) for limit in self.limits)
        small = replace(self, free=self.free[kept], prices=self.prices[kept], takes=self.takes[kept], limits=limits)
        return small, kept, np.searchsorted(kept, stands_in)

    def part(self, counts: Ints, limits: tuple[Limit, ...] | None = None) -> tuple[MixProblem, Ints]:
        """(the instance of some of the items, their places in this one)."""
        kept: Ints = np.flatnonzero(counts)
        limits = self.limits if limits is None else limits
        part = replace(
            self,
            requests=self.requests[kept],
            counts=counts[kept],
            levels=self.levels[kept],
            takes=self.takes[:, kept],
            limits=limits,
        )
        return part, kept


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one machine holds: `counts` by item; `level` is its longest item's."""

    kind: int
    level: int
    counts: tuple[int, ...]
    cost: int


def pattern_of(instance: MixProblem, kind: int, counts: Ints) -> Pattern:
    level = int(instance.levels[counts > 0].max(initial=0))
    return Pattern(kind, level, tuple(counts.tolist()), instance.cost(kind, level))


@dataclass(slots=True)
class Effort:
    """What may still be spent, in thousandths of a second of a common core as far as steps tell: no clock is read."""

    left: float
    spent: float = field(default=0.0)

    def spend(self, steps: float) -> None:
        self.left -= steps
        self.spent += steps

    @property
    def is_over(self) -> bool:
        return self.left <= 0
