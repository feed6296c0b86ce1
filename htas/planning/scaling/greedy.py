"""Greedy autoscaling: machines with the best cost-efficiency score until the waiting pods have room.

Source: HTAS paper Algorithm 3. The paper subtracts capacities from summed requests; here each purchase is followed by
simulated placement, so that fragmentation, spread, anti-affinity and DaemonSet overhead correct it at once: what is
still without room is the demand of the next choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.policy import Policy
from htas.planning.classes import Ints
from htas.planning.packing.orders import order_of
from htas.planning.packing.placing import fill
from htas.planning.scaling.cost_efficiency import Demand, Unit, score
from htas.planning.scaling.limits import UNLIMITED, Allowance
from htas.planning.scaling.offers import Offer
from htas.planning.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines of one offer added to the simulation together."""

    offer: Offer
    rows: range


class Shopper:
    """Adds machines to a simulation until the demands it is given are placed, or nothing may be bought."""

    def __init__(self, sim: Simulation, policy: Policy, offers: Sequence[Offer], allowance: Allowance) -> None:
        self.sim = sim
        self.policy = policy
        self.offers = offers
        self.allowance = allowance
        self.batches: list[Batch] = []
        self._unit = Unit.of(policy.catalogue)
        self._orders = {group.name: order_of(group.packing) for group in policy.groups}
        self._ordinal = 0

    def buy_for(self, demands: Sequence[Demand]) -> None:
        """Reduce the demands' counts to what could not be given room. Demands are in placing order."""
        for part in self._parts(demands):
            self._use_what_is_bought(part)
            self._buy_for_part(part)

    def add(self, offer: Offer, count: int) -> range:
        """Add machines of an offer, counted against the limits."""
        nodes = [offer.node(self.policy, f"bought-{self._ordinal + i}") for i in range(count)]
        self._ordinal += count
        rows = self.sim.add_nodes(nodes)
        self.allowance.take(offer, count)
        self.batches.append(Batch(offer, rows))
        return rows

    def _parts(self, demands: Sequence[Demand]) -> list[list[Demand]]:
        """Demands that the same offers could hold belong together; the most important first, then the choosiest."""
        parts: dict[tuple[int, tuple[int, ...]], list[Demand]] = {}
        for demand in demands:
            holds = tuple(i for i, offer in enumerate(self.offers) if offer.could_hold(demand.cls))
            if holds:
                parts.setdefault((-demand.cls.priority, holds), []).append(demand)
        return [parts[key] for key in sorted(parts, key=lambda key: (key[0], len(key[1]), key[1]))]

    def _use_what_is_bought(self, part: Sequence[Demand]) -> None:
        for batch in self.batches:
            self._place(part, batch)

    def _buy_for_part(self, part: list[Demand]) -> None:
        useless: set[int] = set()
        while any(demand.count for demand in part):
            offer = self._best_offer(part, useless)
            if offer is None:
                return
            count = min(self._whole_machines(offer, part), self.allowance.bound(offer).count)
            with self.sim.fork() as branch:
                rows = self.add(offer, count)
                placed = self._place(part, self.batches[-1])
                if placed:
                    branch.commit()
            if placed:
                useless.clear()
                if any(demand.cls.is_dynamic for demand in part):
                    self._use_what_is_bought(part)
            else:
                del self.batches[-1]
                self.allowance.take(offer, -len(rows))
                useless.add(id(offer))

    def _best_offer(self, part: Sequence[Demand], useless: set[int]) -> Offer | None:
        """The best score; then the lower price, the emptier zone, the name."""
        left = [demand for demand in part if demand.count]
        scores: dict[tuple[str, str], float] = {}
        best: tuple[tuple[float, int, int, str], Offer] | None = None
        for offer in self.offers:
            if id(offer) in useless or self.allowance.bound(offer).count <= 0:
                continue
            kind = offer.group.name, offer.flavour.name
            if kind not in scores:
                holdable = [demand for demand in left if offer.could_hold(demand.cls)]
                scores[kind] = score(offer, holdable, self._unit) * self._coverage(offer, holdable)
            if scores[kind] > 0:
                rank = (-scores[kind], offer.price, self.allowance.in_zone(offer), offer.zone or "")
                if best is None or rank < best[0]:
                    best = rank, offer
        return best[1] if best is not None else None

    def _coverage(self, offer: Offer, demands: Sequence[Demand]) -> float:
        """The share of the demand that the limits let an offer serve: with 2 nodes left, large ones must be bought."""
        total, offered = self._total(demands), offer.free * float(self.allowance.bound(offer).count)
        used = total > 0
        return float(np.minimum(offered[used] / total[used], 1.0).min()) if used.any() else 1.0

    def _total(self, demands: Sequence[Demand]) -> Ints:
        total: Ints = np.zeros(len(self.sim.table.axis), dtype=np.int64)
        for demand in demands:
            total += demand.cls.requests * demand.count
        return total

    def _whole_machines(self, offer: Offer, part: Sequence[Demand]) -> int:
        """Machines the demand would fill completely, were it fluid: so many at least are needed. One at least.

        Where the flavour is sold in several zones they are bought one by one, so that zones stay in balance.
        """
        if len(offer.flavour.zones) > 1 or any(demand.cls.is_dynamic for demand in part if demand.count):
            return 1
        total = self._total(part)
        used = (total > 0) & (offer.free > 0)
        fluid = int((total[used] // offer.free[used]).min()) if used.any() else UNLIMITED
        return max(1, min(fluid, sum(demand.count for demand in part)))

    def _place(self, part: Sequence[Demand], batch: Batch) -> int:
        order = self._orders[batch.offer.group.name]
        rows = slice(batch.rows.start, batch.rows.stop)
        total = 0
        for demand in part:
            if demand.count and batch.offer.could_hold(demand.cls):
                placed = fill(self.sim, demand.cls, demand.count, rows, order)
                demand.count -= placed
                total += placed
        return total
