"""What batch work adds to a node's rental, and whether a machine of its own would be the better bargain.

A job of ten hours on a machine whose other work ends in ten minutes has that machine rented for ten hours, most of it
empty. It is no room for the job where that costs more than `maxRentalLengthening` times the cheapest machine for the
job alone. Less than that is no waste: where work keeps coming, the room of a machine held longer is soon in use. With 1
instead of 4 the bill of the HTAS paper's patterns rose by 3 to 13 %.

Cost is price × what is billed more, to the end of the period in which the job ends. An empty node is charged by the
share of it that the job uses, and may cost twice as often: others will come for the rest of it, as to a machine bought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from htas.model.money import price_text
from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.model.reservations import Reservation
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility.resources import how_many
from htas.planning.cluster.simulation import Simulation
from htas.planning.rental.bills import Floats, Rentals

EMPTY = 2.0
"""So many times as much may be paid for an empty node, in proportion to its use."""
NO_BARGAIN = "would be rented too long for it"
"""What is said of a node that has room, beside kube-scheduler's reasons of those that have none."""


class Bargain(NamedTuple):
    """A node with room, what a pod would add to its rental, and what its own machine would cost (price × seconds)."""

    node: str
    longer_s: float
    cost: float
    flavour: str
    alone: float


class Alone(Protocol):
    """Who knows what a machine of its own would cost (`OwnMachine`, of what may be bought)."""

    def cheapest(self, cls: PodClass, count: int) -> tuple[float, str]:
        """Price × billed seconds of as many machines of one flavour as hold so many pods, and which; inf: none."""
        ...


class Lengthening:
    """Judges rows for batch work of ours; other work and other rows are never refused.

    Rows count that are given back once they are empty: machines of ours without services, of groups that are cleaned
    and beyond their minimum size.
    """

    def __init__(
        self,
        sim: Simulation,
        policy: Policy,
        rentals: Rentals,
        alone: Alone,
        reservations: Mapping[str, Reservation],
        most: float,
    ) -> None:
        self._sim = sim
        self._policy = policy
        self._most = most
        self.rentals = rentals
        self._market = alone
        self._reservations = reservations
        self._rows_of = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        self._own: dict[int, tuple[PodClass, Ints | None]] = {}
        self._turned_away: set[int] = set()

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools:
        """Which rows are a bargain for the next of `count` pods of a class; all, for work that is not judged.

        What pods of a class add they add together: twenty of them that fit a row are as good as twenty machines' worth.
        """
        fine: Bools = np.ones(len(rows), dtype=np.bool_)
        if cls.kind is not WorkKind.BATCH or not cls.is_ours or not self.rentals.price[rows].any():
            return fine
        cost = self._cost(cls, rows)
        if not (cost > 0).any():
            return fine
        fine = cost <= self._most * self._market.cheapest(cls, 1)[0]
        if fine.all():
            return fine
        for i in np.flatnonzero(~fine).tolist() if count > 1 else ():
            together = min(count, int(how_many(self._sim.table.free[:, rows[i : i + 1]], cls)[0]))
            fine[i] = cost[i] <= self._most * self._market.cheapest(cls, together)[0]
        own = self._own_rows(cls)
        if own is None:
            return np.ones(len(rows), dtype=np.bool_)
        fine |= np.isin(rows, own)
        if not fine.all():
            self._turned_away.add(id(cls))
        return fine

    def has_turned_away(self, cls: PodClass) -> bool:
        """Whether a class was refused a node that has room, so far."""
        return id(cls) in self._turned_away

    def refused(self, cls: PodClass) -> int:
        """How many nodes have room for one pod of a class, but are no bargain."""
        return len(self._no_bargains(cls))

    def best_refused(self, cls: PodClass) -> Bargain | None:
        """The node that a class would have had room on for the least; None: none was refused for its rental."""
        rows = self._no_bargains(cls)
        if not len(rows):
            return None
        cost = self._cost(cls, rows)
        row = int(rows[cost.argmin()])
        end, until = self._sim.now + cls.run_length_s, max(float(self._sim.table.run_until[row]), self._sim.now)
        alone, flavour = self._market.cheapest(cls, 1)
        return Bargain(self._sim.table.nodes[row].name, end - until, float(cost.min()), flavour, alone)

    def _no_bargains(self, cls: PodClass) -> Ints:
        if cls.kind is not WorkKind.BATCH or not cls.is_ours:
            return np.zeros(0, dtype=np.int64)
        rows: Ints = self._sim.feasible(cls, slice(0, len(self.rentals.price))).nonzero()[0]
        return rows[~self.worth(cls, rows, 1)]

    def _cost(self, cls: PodClass, rows: Ints) -> Floats:
        """Price × seconds that one pod adds, so weighed that every row may cost equally often."""
        table, now = self._sim.table, self._sim.now
        cost = self.rentals.added_by(cls.run_length_s, rows, table.run_until, now)
        share: Floats = np.zeros(len(rows))
        for resource in cls.needs:
            offered = np.maximum(table.allocatable[resource, rows], 1)
            share = np.maximum(share, cls.requests[resource] / offered)
        return np.where(table.run_until[rows] <= now, cost * share / EMPTY, cost)

    def _own_rows(self, cls: PodClass) -> Ints | None:
        """Rows of machines that were bought for pods of a class, which are room for them; None: every row is.

        Every row is for one that has waited too long and has no machine on its way: who knows whether any will come.
        """
        known = self._own.get(id(cls))
        if known is None:
            claims = {pod.key: each.claim for pod in cls.pods if (each := self._reservations.get(pod.key))}
            rows = {self._rows_of[claim] for claim in claims.values() if claim in self._rows_of}
            overdue = self._policy.overdue(self._sim.now)
            late = any(p.created_at <= overdue and claims.get(p.key) not in self._rows_of for p in cls.pods)
            own = None if late else np.array(sorted(rows), dtype=np.int64)
            known = self._own[id(cls)] = cls, own  # a class that died could leave its id to another one
        return known[1]


def in_words(bargain: Bargain, policy: Policy) -> str:
    """Why a node with room is not taken, for people."""
    currency, hour = policy.catalogue.currency, 3600
    return (
        f"{bargain.node} has room, but would be rented {bargain.longer_s:.0f} s longer for it, at "
        f"{price_text(round(bargain.cost / hour))} {currency}: more than {policy.max_rental_lengthening:g} times "
        f"a {bargain.flavour} of its own ({price_text(round(bargain.alone / hour))})"
    )
