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

from htas.model.flavours import Catalogue
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, PODS_ROW, PodClass
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


class Wanted(NamedTuple):
    """What pods of a class ask for, taken apart once for all offers that are tried: row of the axis, amount."""

    cls: PodClass
    amounts: tuple[tuple[int, int], ...]
    most: int
    """How many a machine may take of them: as many as there are, or as may share a node."""


def wanted(demands: Sequence[Demand]) -> list[Wanted]:
    """Of each class in the order of the demands, or of many of every n-th, which stands for its neighbours."""
    step = max(1, -(-len(demands) // SAMPLE))
    found = list[Wanted]()
    for demand in demands[::step]:
        cls, requests = demand.cls, demand.cls.requests.tolist()
        most = min(demand.count * step, cls.most_per_node or demand.count * step)
        found.append(Wanted(cls, tuple((row, requests[row]) for row in cls.needs), most))
    return found


def score(offer: Offer, work: Sequence[Wanted], unit: Unit) -> float:
    """Score of one machine of an offer for what waits; 0 where it would hold none of it.

    Work that asks for neither cpu nor memory is counted by pods. A free machine scores infinitely well.
    """
    return score_of_use(offer, trial_fill(offer, work), unit)


def score_of_use(offer: Offer, used: Sequence[float], unit: Unit) -> float:
    """Score of one machine of which so much is used, by resource."""
    weights = offer.group.cpu_weight, offer.group.memory_weight
    usage = weights[0] * used[CPU_ROW] / unit.cpu_m + weights[1] * used[MEMORY_ROW] / unit.memory_bytes
    if usage == 0:
        usage = used[PODS_ROW] / max(1, int(offer.free[PODS_ROW]))
    if usage == 0:
        return 0.0
    return usage / offer.price if offer.price else float("inf")


def trial_fill(offer: Offer, work: Sequence[Wanted]) -> list[int]:
    """What waiting pods would use of one machine, by resource: each class in order takes as much as fits."""
    room = offer.free.tolist()
    used = [0] * len(room)
    for cls, amounts, most in work:
        count = most
        for row, amount in amounts:
            if room[row] < amount * count:
                count = room[row] // amount
        if count <= 0 or not offer.would_take(cls):
            continue
        for row, amount in amounts:
            room[row] -= count * amount
            used[row] += count * amount
    return used
