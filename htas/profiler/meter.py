"""What everything has cost so far, without adding up every bill each time."""

from __future__ import annotations

from threading import Lock

from htas.model.flavours import Billing
from htas.ports import StorePort
from htas.profiler import accounts

SETTLED_S = 60.0
"""A bill closed so long ago is not written any more."""


class Meter:
    """Adds up bills; those closed a while ago are added once. Safe from several threads."""

    def __init__(self, store: StorePort) -> None:
        self._store = store
        self._lock = Lock()
        self._settled = 0
        self._since = 0.0

    def nano_seconds(self, billing: Billing, now: float) -> int:
        """Price × billed seconds of all machines up to now; raises what the store raises."""
        with self._lock:
            bills = self._store.bills(self._since)
            amount = self._settled + accounts.total(bills, billing, now)
            before = now - SETTLED_S
            ended = [bill for bill in bills if bill.ended_at is not None and bill.ended_at < before]
            self._settled += accounts.total(ended, billing, now)
            self._since = max(self._since, before)
            return amount
