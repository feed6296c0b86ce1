"""The cost-efficiency score: resources put to use per unit of price.

Source: HTAS paper 3.1.2 (3): Score = nc ÷ p, nc = w₁·cu + w₂·mu. Were the usages cu and mu fractions of the flavour
itself, every flavour that can be filled would have nc = 1 and the smallest would always win. Here they are what the
waiting pods would really use of one machine, largest first, in one unit for all flavours: the catalogue's largest
CPU and largest memory. docs/algorithms.md shows what this does on the paper's Table 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from htas.model.flavours import Catalogue
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, PODS_ROW, Ints
from htas.planning.place.demand import Demand
from htas.planning.provision.offers import Offer

SAMPLE = 256
"""Classes looked at in one trial filling: with more, every n-th stands for its neighbours in the placing order."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What usage is measured in: the largest CPU and memory on sale."""

    cpu_m: int
    memory_bytes: int

    @classmethod
    def of(cls, catalogue: Catalogue) -> Unit:
        cpu = max((flavour.capacity.cpu_m for flavour in catalogue.flavours), default=0)
        memory = max((flavour.capacity.memory_bytes for flavour in catalogue.flavours), default=0)
        return cls(max(cpu, 1), max(memory, 1))

    @classmethod
    def of_work(cls, demands: Sequence[Demand]) -> Unit:
        """What all that waits asks for: a flavour of 2 TiB on sale does not make memory worth next to nothing then."""
        cpu = sum(int(demand.cls.requests[CPU_ROW]) * demand.count for demand in demands)
        memory = sum(int(demand.cls.requests[MEMORY_ROW]) * demand.count for demand in demands)
        return cls(max(cpu, 1), max(memory, 1))


class _Wanted(NamedTuple):
    """What pods of a demand ask for, taken apart once for all offers that are tried: row of the axis, amount."""

    demand: Demand
    cpu_m: int
    memory_bytes: int
    amounts: tuple[tuple[int, int], ...]
    per_node: int | None
    """How many may share a node; None: any number."""


class _Filling(NamedTuple):
    used: list[int]
    """By resource."""
    taken: list[tuple[Demand, int]]


class Trials:
    """Trial fillings of machines with demands in placing order: each in turn takes as much as fits.

    Of many demands every n-th is looked at, and stands for its neighbours.

    A filling is remembered, and holds while all that it took is still there. With less of the others it is the same,
    since a machine took none of them for want of room. Of 413 purchases in a row for 51,000 pods of 200 kinds that
    spares seven trials of eight, for 10,000 two of five.
    """

    def __init__(self, demands: Sequence[Demand] = ()) -> None:
        self._counts: dict[int, int] = {}
        self._filled: dict[int, _Filling] = {}
        self._apart: dict[int, _Wanted] = {}
        self.update(demands)

    def update(self, demands: Sequence[Demand]) -> None:
        """Go on with demands as they are now, in the same order. Where one has grown, or come, all begins anew."""
        counts = {id(demand): demand.count for demand in demands}
        if any(count > self._counts.get(number, 0) for number, count in counts.items()):
            self._filled.clear()
        self._counts = counts
        self._demands, self._step = demands, max(1, -(-len(demands) // SAMPLE))
        self._work: list[_Wanted] | None = None

    def use(self, offer: Offer) -> list[int]:
        """What the demands would use of one machine, by resource."""
        known = self._filled.get(id(offer))
        if known is not None and all(demand.count >= count for demand, count in known.taken):
            return known.used
        if self._work is None:
            self._work = [self._taken_apart(demand) for demand in self._demands[:: self._step]]
        filling = _filled(offer, self._work, self._step)
        if self._step == 1:
            self._filled[id(offer)] = filling
        return filling.used

    def _taken_apart(self, demand: Demand) -> _Wanted:
        found = self._apart.get(id(demand))
        if found is None:
            cls, requests = demand.cls, demand.cls.requests.tolist()
            amounts = tuple((row, requests[row]) for row in cls.needs)
            found = _Wanted(demand, requests[CPU_ROW], requests[MEMORY_ROW], amounts, cls.most_per_node)
            self._apart[id(demand)] = found
        return found


def _filled(offer: Offer, work: Sequence[_Wanted], step: int) -> _Filling:
    room = offer.free.tolist()
    filling = _Filling([0] * len(room), [])
    for demand, cpu_m, memory_bytes, amounts, per_node in work:
        if cpu_m > room[CPU_ROW] or memory_bytes > room[MEMORY_ROW]:  # as most, once the first have been put on it
            continue
        count = demand.count * step
        if per_node is not None:
            count = min(count, per_node)
        for row, amount in amounts:
            if room[row] < amount * count:
                count = room[row] // amount
        if count <= 0 or not offer.would_take(demand.cls):
            continue
        filling.taken.append((demand, count))
        for row, amount in amounts:
            room[row] -= count * amount
            filling.used[row] += count * amount
    return filling


def score_of_use(offer: Offer, used: Sequence[float], unit: Unit) -> float:
    """Score of one machine of which so much is used, by resource; 0 where none of it is.

    Work that asks for neither cpu nor memory is counted by pods. A free machine scores infinitely well.
    """
    weights = offer.group.cpu_weight, offer.group.memory_weight
    usage = weights[0] * used[CPU_ROW] / unit.cpu_m + weights[1] * used[MEMORY_ROW] / unit.memory_bytes
    if usage == 0:
        usage = used[PODS_ROW] / max(1, int(offer.free[PODS_ROW]))
    if usage == 0:
        return 0.0
    return usage / offer.price if offer.price else float("inf")


def coverage(offer: Offer, total: Ints, allowed: int) -> float:
    """The share of the demand that the limits let an offer serve: with 2 nodes left, large ones must be bought."""
    used = total > 0
    return float(np.minimum(offer.free[used] * float(allowed) / total[used], 1.0).min()) if used.any() else 1.0
