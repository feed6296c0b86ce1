"""What emptying a machine saves, less what that adds elsewhere: it is no saving where others pay for it.

Left alone, a machine is rented until its longest job ends; emptied, until the moves are done. Billed by the minute,
held for 600 s, with 90 s of work left and moves of 10 s: 720 s against 660 s, so 60 s are saved. Billed by the hour
nothing is. Off that goes what the moved work does again, and what the machines it goes to are rented longer.

A job with 285 hours to go was moved from a machine of 1.52 an hour to a better filled one of 2.82, whose other work
ended fourteen hours later: 787 USD for 271 hours of the larger machine, where the smaller one cost 412.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from htas.model.pods import WorkKind
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.rental.bills import Rentals, RunningBill


@dataclass(frozen=True, slots=True)
class Saving:
    """What emptying a machine saves by itself: so many billed seconds of it, less the work that is done again."""

    price: int
    left_s: float
    saved_s: int
    repeated_s: float
    restarts: int = 0
    """What the restarts of evicted pods are worth (`value.restart`), as price × seconds."""

    @classmethod
    def of(
        cls, bill: RunningBill, now: float, *, left_s: float, moves_s: float, repeated_s: float, restarts: int = 0
    ) -> Saving:
        """Of a machine whose work ends in `left_s`, and is elsewhere in `moves_s`.

        A job that is evicted starts again from the beginning and may hold its target longer by what it had run
        (`repeated_s`); a checkpoint repeats but seconds.
        """
        saved_s = bill.seconds_in(now, left_s) - bill.seconds_in(now, moves_s)
        return cls(bill.price, left_s, saved_s, repeated_s, restarts)

    def exceeds(self, added: int) -> bool:
        """Whether more is saved than done again, added elsewhere and lost by restarts: no loss is called a saving."""
        return self.saved_s > self.repeated_s and (not added + self.restarts or self.worth > added + self.restarts)

    @property
    def worth(self) -> Fraction:
        """Price × seconds, before anything is added elsewhere."""
        return self.price * (self.saved_s - Fraction(self.repeated_s))


class LeastAdded:
    """Judges the rows that batch work is moved to: those alone to whose bills it adds least."""

    def __init__(self, sim: Simulation, rentals: Rentals) -> None:
        self._sim = sim
        self._rentals = rentals

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools:
        """The rows to which a pod of a class adds least; all, for services. Rows added since add nothing."""
        if cls.kind is not WorkKind.BATCH or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        added = self._rentals.added_by(cls.run_length_s, rows, self._sim.table.run_until, self._sim.now)
        least: Bools = added <= added.min()
        return least

    def has_turned_away(self, cls: PodClass) -> bool:
        """Nobody is: one row at least is always the best."""
        return False
