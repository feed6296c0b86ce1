"""The cost-efficiency score: resources put to use per unit of price.

Source: HTAS paper 3.1.2 (3): Score = nc ÷ p, nc = w₁·cu + w₂·mu. Were the usages cu and mu fractions of the flavour
itself, every flavour that can be filled would have nc = 1 and the smallest would always win. Here they are what the
waiting pods would really use of one machine, largest first, in one unit for all flavours: the catalogue's largest
CPU and largest memory. docs/algorithms.md shows what this does on the paper's Table 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htas.model.flavours import Catalogue
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, PODS_ROW
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


def score(offer: Offer, demands: Sequence[Demand], unit: Unit) -> float:
    """Score of one machine of an offer for what waits; 0 where it would hold none of it.

    Work that asks for neither cpu nor memory is counted by pods. A free machine scores infinitely well.
    """
    return score_of_use(offer, trial_fill(offer, demands), unit)


def score_of_use(offer: Offer, used: Sequence[float], unit: Unit) -> float:
    """Score of one machine of which so much is used, by resource."""
    weights = offer.group.cpu_weight, offer.group.memory_weight
    usage = weights[0] * used[CPU_ROW] / unit.cpu_m + weights[1] * used[MEMORY_ROW] / unit.memory_bytes
    if usage == 0:
        usage = used[PODS_ROW] / max(1, int(offer.free[PODS_ROW]))
    if usage == 0:
        return 0.0
    return usage / offer.price if offer.price else float("inf")


def trial_fill(offer: Offer, demands: Sequence[Demand]) -> list[int]:
    """What waiting pods would use of one machine, by resource: each class in order takes as much as fits."""
    room = offer.free.tolist()
    used = [0] * len(room)
    step = -(-len(demands) // SAMPLE)
    for demand in demands[::step] if step > 1 else demands:
        cls = demand.cls
        if not offer.would_take(cls):
            continue
        requests = cls.requests.tolist()
        count = min(room[resource] // requests[resource] for resource in cls.needs)
        count = min(count, demand.count * max(step, 1), cls.most_per_node or count)
        if count <= 0:
            continue
        for resource in cls.needs:
            room[resource] -= count * requests[resource]
            used[resource] += count * requests[resource]
    return used
