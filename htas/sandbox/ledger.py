"""The sandbox's own books: what arrived, ended, waited and was spent, independent of what HTAS believes."""

from __future__ import annotations

import math

import msgspec

from htas.model.billing import Billing, Cap, Price


class Rental(msgspec.Struct):
    """A machine's time on the invoice; `ended_at` None: it still runs."""

    instance: str
    claim: str
    flavour: str
    nanos_per_hour: int
    started_at: float
    ended_at: float | None = None
    cap: Cap | None = None

    @property
    def price(self) -> Price:
        return Price(self.nanos_per_hour, self.cap)

    def nano_seconds(self, billing: Billing, now: float) -> int:
        """What it costs, or would had it been given back now: price × billed seconds."""
        ended_at = self.ended_at if self.ended_at is not None else now
        return billing.bill(self.price, self.started_at, ended_at - self.started_at)


class Ledger(msgspec.Struct):
    """Counts and lists; plain data, so that a world in another process can hand it over."""

    arrived: int = 0
    finished: int = 0
    lost: int = 0
    """Tasks that will never end: their pod went and no controller brings it back."""
    restarts: int = 0
    work_lost_s: float = 0.0
    migrations: int = 0
    work_repeated_s: float = 0.0
    """What moved pods did twice: from the dump at their source to their restart at the target."""
    evictions: int = 0
    preempted: int = 0
    """Pods deleted past their budgets for work of higher priority."""
    overcommitted: int = 0
    """Pods bound to a node without room for them; must stay 0."""
    killed_by_release: int = 0
    """Pods that ran on a machine when it was deleted; must stay 0."""
    double_creates: int = 0
    """Requests for a claim that had a machine already (answered with the first one)."""
    waits_s: list[float] = msgspec.field(default_factory=list)
    """From each pod's arrival to its running; a pod that replaces one that was lost waits anew."""
    first_waits_s: list[float] = msgspec.field(default_factory=list)
    """The same of the pods a controller was first asked for alone: how long work waited to begin."""
    first_starts: list[tuple[str, float]] = msgspec.field(default_factory=list)
    """The task (namespace/name) of each of these pods, and the instant at which it began."""
    finished_tasks: list[str] = msgspec.field(default_factory=list)
    rentals: list[Rental] = msgspec.field(default_factory=list)

    def nano_seconds(self, billing: Billing, now: float) -> int:
        """The invoice: price × billed seconds over all rentals."""
        return sum(rental.nano_seconds(billing, now) for rental in self.rentals)

    def machine_hours(self, now: float) -> float:
        held = ((r.ended_at if r.ended_at is not None else now) - r.started_at for r in self.rentals)
        return sum(held) / 3600

    def mean_wait_s(self) -> float:
        return sum(self.waits_s) / len(self.waits_s) if self.waits_s else 0.0

    def wait_percentile_s(self, share: float) -> float:
        """The nearest-rank percentile of waiting times, from arrival to running."""
        if not self.waits_s:
            return 0.0
        ordered = sorted(self.waits_s)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    def running_machines(self) -> int:
        return sum(rental.ended_at is None for rental in self.rentals)
