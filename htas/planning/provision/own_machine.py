"""What a machine of its own costs for some work: the alternative to a node that would be rented longer for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.feasibility.resources import fits, how_many
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.limits import Allowance
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.rental.bills import Floats, Rentals
from htas.planning.rental.lengthening import Lengthening


@dataclass(frozen=True, slots=True)
class _Offered:
    """The offers that would take a class and may be bought: what each has free (a column), costs, and how many."""

    offers: tuple[Offer, ...]
    free: Ints
    price: Floats
    bound: Ints

    def holding(self, cls: PodClass) -> Ints:
        """How many pods of a class a machine of each takes."""
        each = np.where(fits(self.free, cls), how_many(self.free, cls), 0)
        return each if cls.most_per_node is None else np.minimum(each, cls.most_per_node)


class OwnMachine:
    """Prices machines for one class alone: from their order until its pods have run, start and rounding included."""

    def __init__(self, sim: Simulation, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._sim = sim
        self._snapshot = snapshot
        self._policy = policy
        self._start_s = snapshot.machine_times.start_s(max((g.startup_s for g in policy.groups), default=0.0))
        self._allowance = Allowance(policy, snapshot)
        self._offered: dict[object, _Offered] = {}
        self._in_order: dict[PodClass, tuple[Ints, Floats, Ints]] = {}

    def cheapest(self, cls: PodClass, count: int) -> tuple[float, str]:
        """The least that machines of one flavour for so many pods cost, and which; inf where none may be bought."""
        offered = self._offers_for(cls)
        holding = fits(offered.free, cls)
        if not holding.any():
            return np.inf, ""
        machines = -(-count // np.maximum(how_many(offered.free, cls), 1))
        cost = np.where(holding, offered.price * machines * self.held_s(cls), np.inf)
        best = int(cost.argmin())
        return float(cost[best]), offered.offers[best].flavour.name

    def held_s(self, cls: PodClass) -> int:
        """Billed seconds of a machine for pods of a class: its start and their run."""
        return self._policy.catalogue.billing.seconds(self._snapshot.taken_at, self._start_s + cls.run_length_s)

    def _offers_for(self, cls: PodClass) -> _Offered:
        found = self._offered.get(cls.static_key)
        if found is None:
            offers = [
                offer
                for offer in offers_of(self._sim, self._policy, self._snapshot, [cls])
                if offer.would_take(cls) and self._allowance.bound(offer).count > 0
            ]
            free = (
                np.array([offer.free for offer in offers], dtype=np.int64)
                .reshape(len(offers), len(self._sim.table.axis))
                .T
            )
            price = np.array([offer.price for offer in offers], dtype=np.float64)
            bound = np.array([self._allowance.bound(offer).count for offer in offers], dtype=np.int64)
            found = self._offered[cls.static_key] = _Offered(tuple(offers), free, price, bound)
        return found


def lengthening_of(simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy) -> Lengthening | None:
    """What judges the rows of an opening; None: the policy has none refused."""
    if policy.max_rental_lengthening is None:
        return None
    sim = simulated.sim
    rentals = Rentals.of(sim.table.nodes, snapshot, policy, simulated.running)
    own = OwnMachine(sim, snapshot, policy)
    return Lengthening(sim, policy, rentals, own, snapshot.memory.reservations, policy.max_rental_lengthening)
