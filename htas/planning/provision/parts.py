"""The parts of what waits: demands of one priority that the same offers could hold are bought for together.

The most important part comes first, then the choosiest: what few machines could hold is not left to those bought for
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, Ints, PodClass
from htas.planning.place.demand import Demand
from htas.planning.provision.cost_efficiency import SAMPLE
from htas.planning.provision.offers import Offer

Floats = NDArray[np.float64]

MOST_AT_ONCE = 4096
"""Demands judged against all offers at once: with 2,000 offers 8 MB."""


@dataclass(slots=True)
class Part:
    """Demands of one priority that the same offers could hold; a namespace with a limit in reach has its own."""

    offers: tuple[Offer, ...]
    demands: list[Demand] = field(default_factory=list)
    _requests: Ints | None = None
    _dynamic: list[Demand] | None = None
    _of_offers: tuple[Ints, Ints, Floats] | None = None

    def columns(self) -> tuple[Ints, Ints]:
        """(requests: demands × resources, counts: demands); asked for once all demands are in."""
        if self._requests is None:
            self._requests = np.array([demand.cls.requests for demand in self.demands], dtype=np.int64)
        return self._requests, np.array([demand.count for demand in self.demands], dtype=np.int64)

    def of_offers(self) -> tuple[Ints, Ints, Floats]:
        """By offer: free cpu and memory, price, and the weights of both."""
        if self._of_offers is None:
            free = np.array([offer.free[[CPU_ROW, MEMORY_ROW]] for offer in self.offers], dtype=np.int64)
            prices = np.array([offer.price for offer in self.offers], dtype=np.int64)
            weights = [(offer.group.cpu_weight, offer.group.memory_weight) for offer in self.offers]
            self._of_offers = free, prices, np.array(weights, dtype=np.float64)
        return self._of_offers

    def dynamic(self) -> list[Demand]:
        """Those that care for other pods, mostly none; asked for once all demands are in."""
        if self._dynamic is None:
            self._dynamic = [demand for demand in self.demands if demand.cls.is_dynamic]
        return self._dynamic

    @property
    def is_dynamic(self) -> bool:
        return any(demand.count for demand in self.dynamic())

    @property
    def may_open_nodes(self) -> bool:
        """Whether a pod placed may let others onto nodes that refused them: by spread or affinity alone."""
        return any(d.cls.constraints.spread or d.cls.constraints.affinity for d in self.dynamic() if d.count)

    @property
    def let_in_by_others(self) -> Part:
        """The demands that a pod placed may let onto nodes that refused them; to the others nothing has opened."""
        choosy = [d for d in self.dynamic() if d.count and (d.cls.constraints.spread or d.cls.constraints.affinity)]
        return Part(self.offers, choosy)

    @property
    def limited_to(self) -> str:
        """The namespace with a limit whose pods they are; empty: they are of others."""
        return self.demands[0].cls.charged_to or "" if self.demands else ""

    @property
    def spreads(self) -> bool:
        return any(demand.cls.constraints.spread for demand in self.dynamic())

    @property
    def waiting(self) -> int:
        return sum(demand.count for demand in self.demands)

    @property
    def left(self) -> list[Demand]:
        return [demand for demand in self.demands if demand.count]

    @property
    def total(self) -> Ints:
        """What all that are left ask for, by resource."""
        requests, counts = self.columns()
        total: Ints = counts @ requests
        return total


def parts_of(
    demands: Sequence[Demand], offers: Sequence[Offer], hold: Callable[[PodClass], int] | None = None
) -> list[Part]:
    """Demands that the same offers could hold belong together; the most important first, then the choosiest.

    With `hold` (for how many seconds a machine is held for a class) also by that, the longest first: who ends sooner
    may fill what is held anyway.
    """
    parts: dict[tuple[int, tuple[int, ...], int, str], Part] = {}
    sets: dict[bytes, tuple[int, ...]] = {}
    for start in range(0, len(demands) if offers else 0, MOST_AT_ONCE):
        some = demands[start : start + MOST_AT_ONCE]
        for demand, holding in zip(some, holding_of(some, offers), strict=True):
            packed = holding.tobytes()
            if packed not in sets:
                sets[packed] = tuple(np.flatnonzero(holding).tolist())
            if holds := sets[packed]:
                held_s = hold(demand.cls) if hold is not None else 0
                key = -demand.cls.priority, holds, -held_s, demand.cls.charged_to or ""
                if key not in parts:
                    parts[key] = Part(tuple(offers[i] for i in holds))
                parts[key].demands.append(demand)
    return [parts[key] for key in sorted(parts, key=lambda key: (key[0], len(key[1]), *key[1:]))]


def later_than(others: Sequence[Part]) -> list[Demand]:
    """What is bought for after a part: its machines are filled with that, too.

    Of 23 streams few fit on the smallest machines. Judged part by part, four machines of 8 cores and two of 4 were
    bought, for 1.59 an hour; one of 48 cores at 0.79 holds them all. Three jobs of three priorities had a machine
    each. Of many every n-th stands for its neighbours. Nothing counts on pods of a namespace with a limit in reach.
    """
    later = [demand for other in others if not other.limited_to for demand in other.left]
    step = -(-len(later) // SAMPLE)
    return [replace(demand, count=demand.count * step) for demand in later[::step]] if step > 1 else later


def holding_of(demands: Sequence[Demand], offers: Sequence[Offer]) -> Bools:
    """Which offers could hold a pod of each demand: demands × offers."""
    free = np.array([offer.free for offer in offers], dtype=np.int64)
    requests = np.array([demand.cls.requests for demand in demands], dtype=np.int64)
    kinds = [(demand.cls.static_key, demand.cls.kind, demand.cls.is_ours) for demand in demands]
    takers = {
        kind: np.array([offer.would_take(demand.cls) for offer in offers], dtype=np.bool_)
        for kind, demand in dict(zip(kinds, demands, strict=True)).items()
    }
    holding: Bools = np.array([takers[kind] for kind in kinds], dtype=np.bool_)
    for resource in range(free.shape[1]):
        holding &= free[:, resource] >= requests[:, resource, None]
    return holding
