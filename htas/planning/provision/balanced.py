"""Diverse work: each machine is filled with the pods that match the room it has left.

Largest first leaves machines with cores and no memory, or the reverse. Here the first pod of a machine is the largest
pending one, and each next one is the pod whose ratio of cpu to memory is nearest to the ratio that is left: the
greatest cosine between both, in shares of the machine. Source: vector bin packing by alignment (Panigrahy et al. 2011;
Grandl et al. 2014). A machine's worth is what its contents would cost as if work were fluid (`bound.py`), so flavours
of different ratios compare.

What these machines could not hold, because of spread or affinity for example, the greedy purchase launches for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, Ints
from htas.planning.place.demand import Demand
from htas.planning.provision.bound import resource_values
from htas.planning.provision.greedy import GreedyProvisioner
from htas.planning.provision.offers import Kind, Offer
from htas.planning.provision.parts import Floats, holding_of

NO_LIMIT = np.int64(2**31)


@dataclass(frozen=True, slots=True)
class _Filling:
    """What one machine takes, in order: (demand's place, how many), and its worth."""

    taken: tuple[int, ...]
    counts: Ints
    worth: float


@dataclass(slots=True)
class _Kind:
    """Offers that differ in their zone alone and cost the same there, and what they hold."""

    offers: list[Offer]
    capacity: Ints
    shares: Floats
    """demands × (cpu, memory): what one pod takes of the machine."""
    directions: Floats
    """The same, each of length 1."""
    value: Floats
    """What one pod of each demand is worth."""
    most: float
    """No filling is worth more for its price."""
    takes: Bools
    known: dict[int, _Filling] = field(default_factory=dict)
    """By the first pod's demand."""


class BalancedProvisioner(GreedyProvisioner):
    """Launches machines filled by alignment, then greedily for the rest."""

    def buy_for(self, demands: Sequence[Demand]) -> None:
        for _, group in groupby(demands, key=lambda demand: demand.cls.priority):
            alike = [demand for demand in group if demand.count and not demand.cls.charged_to]
            if alike and self.offers:
                _Bulk(self, alike).buy()
        super().buy_for(demands)


class _Bulk:
    """The machines for demands of one priority."""

    def __init__(self, provisioner: GreedyProvisioner, demands: Sequence[Demand]) -> None:
        self._to, self._demands = provisioner, demands
        self._requests: Ints = np.array([demand.cls.requests for demand in demands], dtype=np.int64)
        self._used: Ints = np.flatnonzero(self._requests.any(axis=0))
        self._asked: Ints = np.ascontiguousarray(self._requests[:, self._used])
        self._most: Ints = np.array([demand.cls.most_per_node or NO_LIMIT for demand in demands], dtype=np.int64)
        self._holding = holding_of(demands, provisioner.offers)
        self._number = {id(offer): number for number, offer in enumerate(provisioner.offers)}
        self._kinds: dict[bytes, list[_Kind]] = {}

    def buy(self) -> None:
        """Launch for one demand after another, the choosiest first and then the largest."""
        offers = self._to.offers
        choices = self._holding.sum(axis=1)
        largest: Floats = (self._requests / np.max([offer.free for offer in offers], axis=0).clip(1)).max(axis=1)
        for first in np.lexsort((-largest, choices)).tolist():
            if choices[first]:
                while self._demands[first].count and self._launched(first):
                    pass

    def _launched(self, first: int) -> bool:
        """Launch the machine with the best worth for its price that takes a pod of a demand; False: none does."""
        best: tuple[float, _Kind, _Filling] | None = None
        for kind in self._kinds_for(first):
            if best is not None and kind.most <= best[0]:
                break
            if kind.takes[first] and any(self._to.allowance.bound(offer).count > 0 for offer in kind.offers):
                filling = self._filled(kind, first)
                price = kind.offers[0].price
                worth = filling.worth / price if price else float("inf")
                if best is None or worth > best[0]:
                    best = worth, kind, filling
        return best is not None and self._added(best[1], best[2], first)

    def _kinds_for(self, first: int) -> list[_Kind]:
        """The kinds of machines for a demand, the most promising first."""
        key = self._holding[first].tobytes()
        if key not in self._kinds:
            self._kinds[key] = sorted(self._judged(self._holding[first]), key=lambda kind: -kind.most)
        return self._kinds[key]

    def _judged(self, holds: Bools) -> Iterator[_Kind]:
        """Kinds by what their machines are worth to all work that such machines may hold."""
        offers = [offer for offer, held in zip(self._to.offers, holds.tolist(), strict=True) if held]
        served = self._holding[:, holds].any(axis=1)
        counts = np.array([demand.count for demand in self._demands], dtype=np.int64) * served
        total = (counts @ self._requests).tolist()
        sold = sorted({(tuple(offer.free.tolist()), offer.price) for offer in offers})
        values = np.array(resource_values(total, [free for free, _ in sold], [price for _, price in sold]))
        alike: dict[tuple[Kind, bytes], list[int]] = {}
        for number, offer in enumerate(self._to.offers):
            if holds[number]:
                alike.setdefault((offer.kind, offer.free.tobytes()), []).append(number)
        for numbers in alike.values():
            mine = [self._to.offers[number] for number in numbers]
            capacity = mine[0].free
            shares = self._requests[:, [CPU_ROW, MEMORY_ROW]] / capacity[[CPU_ROW, MEMORY_ROW]].clip(1)
            lengths = np.maximum(np.sqrt((shares**2).sum(axis=1)), 1e-12)
            most = float(values @ capacity) / mine[0].price if mine[0].price else float("inf")
            takes: Bools = np.logical_or.reduce(self._holding[:, numbers], axis=1)
            yield _Kind(mine, capacity, shares, shares / lengths[:, None], self._requests @ values, most, takes)

    def _filled(self, kind: _Kind, first: int) -> _Filling:
        """What a machine would take. It holds for as long as all of that is still there: less of the rest changes
        nothing."""
        counts = np.array([demand.count for demand in self._demands], dtype=np.int64)
        known = kind.known.get(first)
        if known is None or (known.counts > counts).any():
            known = kind.known[first] = self._aligned(kind, first, counts)
        return known

    def _aligned(self, kind: _Kind, first: int, counts: Ints) -> _Filling:
        here = np.flatnonzero((counts > 0) & kind.takes)
        left = np.minimum(counts, self._most)[here]
        requests, directions = self._asked[here], kind.directions[here]
        room, share = kind.capacity[self._used].copy(), np.ones(2)
        taken: list[int] = []
        at = int(np.searchsorted(here, first))
        while True:
            taken.append(int(here[at]))
            room -= requests[at]
            share -= kind.shares[here[at]]
            left[at] -= 1
            fits = (requests <= room).all(axis=1)
            fits &= left > 0
            if not fits.all():  # what does not fit now never will
                here, left, requests, directions = here[fits], left[fits], requests[fits], directions[fits]
            if not len(here):
                break
            at = int((directions @ share).argmax())
        held = np.bincount(taken, minlength=len(counts)).astype(np.int64)
        return _Filling(tuple(taken), held, float(held @ kind.value))

    def _added(self, kind: _Kind, filling: _Filling, first: int) -> bool:
        """Launch it in the emptiest zone that lets the first pod in; as often as the same would be launched again."""
        to = self._to
        zones = [offer for offer in kind.offers if to.allowance.bound(offer).count > 0 and self._holds(offer, first)]
        for offer in sorted(zones, key=lambda offer: (to.allowance.in_zone(offer), offer.zone or "")):
            with to.sim.fork() as branch:
                row = to.add(offer, 1).start
                if self._put(first, row):
                    branch.commit()
            if not branch.is_committed:
                del to.batches[-1]
                to.allowance.take(offer, -1)
                continue
            for number in filling.taken[1:]:
                if self._holds(offer, number):
                    self._put(number, row)
            self._fill_up(kind, offer, row)
            return True
        return False

    def _holds(self, offer: Offer, number: int) -> bool:
        return bool(self._holding[number, self._number[id(offer)]])

    def _put(self, number: int, row: int) -> bool:
        """Place a pod on a machine that would take it if it were empty; False: it does not fit beside the others."""
        demand, sim = self._demands[number], self._to.sim
        if not demand.count or not (self._requests[number] <= sim.table.free[:, row]).all():
            return False
        if demand.cls.is_dynamic and not sim.accepted_by_pods(demand.cls, slice(row, row + 1))[0]:
            return False
        sim.place(demand.cls, row)
        demand.count -= 1
        return True

    def _fill_up(self, kind: _Kind, offer: Offer, row: int) -> None:
        """Fill what those left free that the machine did not let in, because of spread or anti-affinity."""
        counts = np.array([demand.count for demand in self._demands], dtype=np.int64)
        left = np.minimum(counts, self._most) * self._holding[:, self._number[id(offer)]]
        while True:
            room = self._to.sim.table.free[:, row]
            fits = (left > 0) & (self._requests <= room).all(axis=1)
            if not fits.any():
                return
            share = room[[CPU_ROW, MEMORY_ROW]] / kind.capacity[[CPU_ROW, MEMORY_ROW]].clip(1)
            number = int(np.where(fits, kind.directions @ share, -1.0).argmax())
            left[number] = left[number] - 1 if self._put(number, row) else 0
