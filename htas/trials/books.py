"""What `htas cost` says during a trial, beside the world's own invoice."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from htas.daemon.cycle import CycleResult, Daemon
from htas.documents.costs import books_of
from htas.profiler.accounts import ALWAYS
from htas.sandbox.world import World

EVERY_S = 30.0
"""Between two looks: bills that run are rounded up anew every minute, or every second."""


@dataclass(slots=True)
class Reckoning:
    """Looks at both after cycles, machines that run included. Sums are price an hour in billionths × billed seconds."""

    world: World
    daemon: Daemon
    said: int = 0
    invoice: int = 0
    off: int = 0
    """The greatest difference seen, whichever of both was more."""
    looks: int = 0
    _next_at: float = 0.0

    def saw(self, result: CycleResult) -> None:
        if result.snapshot.taken_at >= self._next_at:
            self._next_at = result.snapshot.taken_at + EVERY_S
            self.look()

    def look(self) -> None:
        policy, now = self.daemon.policy, self.world.clock.now()
        self.said = books_of(lambda: nullcontext(self.daemon.ports.store), policy, ALWAYS, now).total
        self.invoice = self.world.ledger.nano_seconds(policy.catalogue.billing, now)
        self.off = max(self.off, abs(self.said - self.invoice))
        self.looks += 1
