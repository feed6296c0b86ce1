"""What moved pods add to the rentals of the nodes they go to: emptying a node is no saving where others pay for it.

A job with 285 hours to go was moved from a machine of 1.52 an hour to a better filled one of 2.82, whose other work
ended fourteen hours later: 787 USD for 271 hours of the larger machine, where the smaller one cost 412.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from htas.model.flavours import Billing
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.lengthening import billed_until, rentals

Floats = NDArray[np.float64]


class LongerRentals:
    """Judges the rows that batch work is moved to: the least added to a bill is best, and what is added is told.

    Rows of machines that are not given back when they are empty add nothing, nor do those added since.
    """

    def __init__(
        self, sim: Simulation, snapshot: ClusterSnapshot, policy: Policy, running: Mapping[int, Sequence[Pod]]
    ) -> None:
        self._sim = sim
        self._billing = policy.catalogue.billing
        price, since = rentals(sim.table.nodes, snapshot, policy, running)
        self._prices = [int(each) for each in price]
        self._price, self._since = price, since

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools:
        """The rows to which a pod of a class adds least; all, for services."""
        fine: Bools = np.ones(len(rows), dtype=np.bool_)
        if cls.kind is not WorkKind.BATCH:
            return fine
        known = rows < len(self._price)
        until = np.maximum(self._sim.table.run_until[rows[known]], self._sim.now)
        longer = np.maximum(self._sim.now + cls.run_length_s, until)
        added: Floats = np.zeros(len(rows))
        since = self._since[rows[known]]
        billed = billed_until(self._billing, since, longer) - billed_until(self._billing, since, until)
        added[known] = self._price[rows[known]] * billed
        return added <= added.min() if len(rows) else fine

    def has_turned_away(self, cls: PodClass) -> bool:
        """Nobody is: one row at least is always the best."""
        return False

    def ends(self) -> Floats:
        """Until when rows have work, to be compared with later."""
        return self._sim.table.run_until.copy()

    def added(self, before: Floats, rows: Iterable[int]) -> int:
        """Billionths an hour × seconds by which the rentals of rows are dearer than with the ends before; exact."""
        total, now = 0, self._sim.now
        for row in rows:
            if row < len(self._prices) and self._prices[row]:
                since = float(self._since[row])
                held, longer = (max(float(until[row]), now) - since for until in (before, self._sim.table.run_until))
                total += self._prices[row] * (_seconds(self._billing, longer) - _seconds(self._billing, held))
        return total


def _seconds(billing: Billing, held_s: float) -> int:
    return billing.billed_seconds(max(held_s, 0.0))
