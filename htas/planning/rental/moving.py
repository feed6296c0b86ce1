"""What emptying a machine saves, less what that adds elsewhere: it is no saving where others pay for it.

Left alone, a machine is rented until its longest job ends; emptied, until the moves are done. Billed by the minute,
held for 600 s, with 90 s of work left and moves of 10 s: 720 s against 660 s, so 60 s are saved. Billed by the hour
nothing is. Off that goes what the moved work does again, and what the machines it goes to are rented longer.

A job with 285 hours to go was moved from a machine of 1.52 an hour to a better filled one of 2.82, whose other work
ended fourteen hours later: 787 USD for 271 hours of the larger machine, where the smaller one cost 412.

A service has no end: it holds its machine for ever, and for ever one that it is moved to, if no other service does. So
it never goes where the machines held for it are dearer than the one that is emptied, whatever their own work saves
until it ends. One was moved from 0.20 an hour to 0.80, where a job ended in ten minutes: 6.39 instead of 1.79 in eight
hours. For all else both are taken to be held for an hour more, as when they are bought, or until the last job beside
the service ends. A job that would begin again is weighed as if it were alone: once it has ended the service can still
go.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from htas.model.pods import WorkKind
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.rental.bills import Rentals, RunningBill
from htas.planning.rental.new_machines import HOUR_S


@dataclass(frozen=True, slots=True)
class Saving:
    """What emptying a machine saves by itself: so many billed seconds of it, less the work that is done again."""

    price: int
    left_s: float
    saved_s: int | Fraction
    repeated_s: float
    restarts: int = 0
    """What the restarts of evicted pods are worth (`value.restart`), as price × seconds."""
    serves: bool = False
    """A service holds the machine, of which there is no end: `left_s` is the span that is compared."""

    @classmethod
    def of(
        cls,
        bill: RunningBill,
        now: float,
        *,
        left_s: float,
        moves_s: float,
        repeated_s: float,
        restarts: int = 0,
        serves: bool = False,
    ) -> Saving:
        """Of a machine whose work ends in `left_s`, and is elsewhere in `moves_s`.

        A job that is evicted starts again from the beginning and may hold its target longer by what it had run
        (`repeated_s`); a checkpoint repeats but seconds.
        """
        saved_s = bill.seconds_in(now, left_s) - bill.seconds_in(now, moves_s)
        return cls(bill.price, left_s, saved_s, repeated_s, restarts, serves)

    def exceeds(self, added: int, held: int = 0) -> bool:
        """Whether more is saved than done again, added elsewhere and lost by restarts: no loss is called a saving.

        `held` is the price an hour of the machines that its services would hold henceforth. Where they lose nothing
        they go, however long the period is that is paid for.
        """
        if held > self.price:
            return False
        if self.serves and not (added or self.restarts or self.repeated_s):
            return True
        return self.saved_s > self.repeated_s and (not added + self.restarts or self.worth > added + self.restarts)

    @property
    def worth(self) -> Fraction:
        """Price × seconds, before anything is added elsewhere."""
        return self.price * (self.saved_s - Fraction(self.repeated_s))


class LeastAdded:
    """Judges the rows that work is moved to: those alone to whose bills it adds least.

    `held` are rows that services have been moved to so far (it grows): as where services are, work adds nothing there.
    """

    def __init__(self, sim: Simulation, rentals: Rentals, held: Set[int] = frozenset()) -> None:
        self._sim = sim
        self._rentals = rentals
        self._held = held

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools:
        """The rows to which a pod of a class adds least. Rows added since add nothing.

        A service, which has no end, adds the price an hour first of all, and only of equal ones what the next hour
        costs more. Where others hold a row anyway that is nothing.
        """
        if not len(rows):
            return np.ones(0, dtype=np.bool_)
        is_held = np.isin(rows, sorted(self._held))
        length_s = cls.run_length_s if cls.kind is WorkKind.BATCH else HOUR_S
        added = np.where(is_held, 0.0, self._rentals.added_by(length_s, rows, self._sim.table.run_until, self._sim.now))
        if cls.kind is not WorkKind.BATCH:
            prices = np.where(is_held, 0.0, self._rentals.prices(rows))
            added[prices > prices.min()] = np.inf
        least: Bools = added <= added.min()
        return least

    def has_turned_away(self, cls: PodClass) -> bool:
        """Nobody is: one row at least is always the best."""
        return False
