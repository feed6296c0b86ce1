"""Few shapes: the optimum by dynamic programming over how much of each shape is left.

Pods of one shape ask for the same and are taken by the same kinds; they may run for different lengths. Some optimum
holds the longest of a shape on the machines that are held longest: if a 12-minute pod is on a machine held shorter than
another one with a 4-minute pod of the same shape, the two change places and nothing is held longer. So machines can be
bought one after another, each for the longest pods left, and all that matters of the past is how many of each shape are
left: 100 pods of three shapes leave 34³ = 39,304 amounts, whatever their lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.cheapest_mix.exact import NONE, cheapest_machines, longest_level
from htas.planning.solvers.cheapest_mix.finish import Counts
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, pattern_of

LARGEST = 2**60
"""A mix must cost less: sums with what cannot be bought stay within 64 bits."""
STEP, PAIR = 15_000, 3
"""Millionths of effort: for one amount left, and for one machine that may be the next for it. Whole numbers, since 250
shapes of 18 pods leave 19^250 amounts: more than a float can hold."""
MILLION = 10**6


def optimum(instance: MixProblem, share: float, effort: Effort) -> Counts | None:
    """The cheapest mix, proved; None: limits, or more than a share of the effort left would be spent on it."""
    if instance.limits or not (instance.most > 0).any(axis=0).all():
        return None
    work = _Shapes.of(instance)
    sizes = [len(pods) + 1 for pods in work.pods]
    pairs = prod(size * (size + 1) // 2 for size in sizes)
    steps = STEP * prod(sizes) + PAIR * pairs
    dearest = int(instance.prices.max(initial=0)) * max(instance.holds) * int(instance.counts.sum())
    if steps > int(MILLION * share * max(effort.left, 0.0)) or dearest >= LARGEST:
        return None
    effort.spend(steps / MILLION)
    return work.cheapest(effort)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """An instance's pods by shape."""

    instance: MixProblem
    pods: list[list[int]]
    """For every shape its pods' items, the longest first."""
    alone: MixProblem
    """Shapes as items, all of one length."""

    @classmethod
    def of(cls, instance: MixProblem) -> _Shapes:
        alike: dict[tuple[bytes, bytes], list[int]] = {}
        for item, request in enumerate(instance.requests):
            alike.setdefault((request.tobytes(), instance.takes[:, item].tobytes()), []).append(item)
        items = [sorted(shape, key=lambda item: -int(instance.levels[item])) for shape in alike.values()]
        pods = [[item for item in shape for _ in range(int(instance.counts[item]))] for shape in items]
        first = [shape[0] for shape in items]
        alone = MixProblem(
            requests=instance.requests[first],
            counts=np.array([len(shape) for shape in pods], dtype=np.int64),
            levels=np.zeros(len(first), dtype=np.int64),
            free=instance.free,
            prices=instance.prices,
            takes=instance.takes[:, first],
            holds=(1,),
        )
        return cls(instance, pods, alone)

    def cheapest(self, effort: Effort) -> Counts:
        """From nothing left to everything: the best next machine, and the best mix for what it leaves."""
        sizes = tuple(len(pods) + 1 for pods in self.pods)
        most = [int(count) for count in self.alone.most.max(axis=0)]
        box = tuple(count + 1 for count in most)
        prices, kinds = (found.reshape(box) for found in cheapest_machines(self.alone, box, effort))
        held = self._held(sizes)
        prices.flat[0] = NONE  # a machine for nothing leaves everything
        prices[prices == NONE] = 2 * LARGEST // int(held.max(initial=1))
        rentals = {hold: prices * hold for hold in set(held.ravel().tolist())}
        least: Ints = np.zeros(sizes, dtype=np.int64)
        chosen: Ints = np.zeros(sizes, dtype=np.int64)
        for left in np.ndindex(sizes):
            if any(left):
                reach = [min(amount, count) for amount, count in zip(left, most, strict=True)]
                after = least[tuple(_back(amount, count) for amount, count in zip(left, reach, strict=True))]
                costs = rentals[int(held[left])][tuple(slice(count + 1) for count in reach)] + after
                best = int(costs.argmin())
                least[left], chosen[left] = costs.flat[best], best
        return self._mix(chosen, kinds, most)

    def _held(self, sizes: tuple[int, ...]) -> Ints:
        """For every amount left how long a machine is held for the longest of it."""
        levels = [[0, *(int(self.instance.levels[item]) for item in reversed(pods))] for pods in self.pods]
        return np.array(self.instance.holds, dtype=np.int64)[longest_level(levels)].reshape(sizes)

    def _mix(self, chosen: Ints, kinds: Ints, most: list[int]) -> Counts:
        mix: Counts = {}
        left = tuple(len(pods) for pods in self.pods)
        while any(left):
            reach = [min(amount, count) + 1 for amount, count in zip(left, most, strict=True)]
            taken = tuple(int(count) for count in np.unravel_index(int(chosen[left]), reach))
            counts: Ints = np.zeros(len(self.instance.counts), dtype=np.int64)
            for pods, amount, count in zip(self.pods, left, taken, strict=True):
                np.add.at(counts, pods[len(pods) - amount : len(pods) - amount + count], 1)
            pattern = pattern_of(self.instance, int(kinds[taken]), counts)
            mix[pattern] = mix.get(pattern, 0) + 1
            left = tuple(amount - count for amount, count in zip(left, taken, strict=True))
        return mix


def _back(amount: int, count: int) -> slice:
    """From an amount down, as many as a machine may take of it."""
    return slice(amount, amount - count - 1 if amount > count else None, -1)
