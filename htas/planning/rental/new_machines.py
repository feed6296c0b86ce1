"""Expected rental of what is bought: what new machines are expected to cost until their work is done.

A machine with batch work alone is held until its longest job ends, and billed as the catalogue bills: price × billed
(startup + longest run); by the hours of the clock it matters at which minute it is launched. A service has no end: its
machine is taken to be held as long as any job that waits with it, and an hour at least. Where nothing but services
waits, this is the price an hour. A node for jobs of 4 minutes and one for jobs of 12 are thus priced for the time each
is held, and work that ends together is cheapest together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htas.model.billing import Price
from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.planning.cluster.classes import PodClass

HOUR_S = 3600
MOST_LEVELS = 12
"""So many lengths are told apart; with more, neighbours are taken for the longest of them."""


class ExpectedRental:
    """How long machines for some waiting work are held, in seconds; where only services wait 1 for all: by the hour."""

    def __init__(self, policy: Policy, classes: Iterable[PodClass], now: float) -> None:
        self._billing = policy.catalogue.billing
        self._now = now
        self._startup_s = max((group.startup_s for group in policy.groups), default=0.0)
        lengths = {cls.run_length_s for cls in classes if cls.kind is WorkKind.BATCH}
        exact = sorted({self._billed(length) for length in lengths})
        self._by_hour = not exact
        step = -(-len(exact) // MOST_LEVELS) or 1
        self._rounded = {hold: exact[min(i - i % step + step, len(exact)) - 1] for i, hold in enumerate(exact)}
        self._service = max([HOUR_S, *exact])

    def _billed(self, length_s: float) -> int:
        return self._billing.seconds(self._now, self._startup_s + length_s)

    def hold(self, cls: PodClass) -> int:
        """How long a machine is held for pods of a class; its level in the mix, rounded up where there are many."""
        if self._by_hour:
            return 1
        if cls.kind is not WorkKind.BATCH:
            return self._service
        return self._rounded.get(self._billed(cls.run_length_s), self._service)

    def expected(self, price: Price, contents: Sequence[tuple[PodClass, int]]) -> int:
        """Price × seconds (× 1 by the hour) of one machine with its contents, not rounded to levels."""
        held = max((self._exact(cls) for cls, _ in contents), default=0)
        if price.cap is None or self._by_hour:
            return price.nanos_per_hour * held
        first, _ = self._billing.span(self._now, 0.0)
        return self._billing.cost(price, first, first + held)

    def _exact(self, cls: PodClass) -> int:
        if self._by_hour or cls.kind is not WorkKind.BATCH:
            return self.hold(cls)
        return self._billed(cls.run_length_s)
