"""What everything has cost so far, without adding up every bill each time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from htas.model.billing import Billing
from htas.model.record import SETTLED_S
from htas.ports import StorePort
from htas.profiler import accounts


class Meter:
    """Adds up bills; those closed a while ago are added once, until one of them is revised. Safe from several threads.

    `revisions` grows when a bill that ended longer than SETTLED_S ago is added or changed.
    """

    def __init__(self, store: StorePort, revisions: Callable[[], int] = int) -> None:
        self._store = store
        self._revisions = revisions
        self._lock = Lock()
        self._revision = 0
        self._settled = 0
        self._since = 0.0

    def nano_seconds(self, billing: Billing, now: float) -> int:
        """Price × billed seconds of all machines up to now; raises what the store raises."""
        with self._lock:
            revision = self._revisions()
            if revision != self._revision:
                self._revision, self._settled, self._since = revision, 0, 0.0
            bills = self._store.bills(self._since)
            amount = self._settled + accounts.total(bills, billing, now)
            before = now - SETTLED_S
            ended = [bill for bill in bills if bill.ended_at is not None and bill.ended_at < before]
            self._settled += accounts.total(ended, billing, now)
            self._since = max(self._since, before)
            return amount
