"""The real course of events: what the machines that HTAS would be in charge of have cost, and how long pods waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from htas.model.billing import Price
from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.savings import Course, Waits
from htas.model.snapshot import ClusterView
from htas.sandbox.ledger import Rental


@dataclass(slots=True)
class RentalSums:
    """Rentals, of which those that are over are one sum: years of them are no more than those that run."""

    closed_nano_seconds: int = 0
    running: dict[str, Rental] = field(default_factory=dict)

    def nano_seconds(self, policy: Policy, now: float) -> int:
        """Price × billed seconds, had those that run been given back now."""
        return self.closed_nano_seconds + sum(
            each.nano_seconds(policy.catalogue.billing, now) for each in self.running.values()
        )

    @property
    def nanos_per_hour(self) -> int:
        return sum(each.nanos_per_hour for each in self.running.values())

    def close(self, name: str, policy: Policy, at: float) -> None:
        self.closed_nano_seconds += self.running.pop(name).nano_seconds(policy.catalogue.billing, at)


class RealCourse:
    """What really happens, from `since` on; `closed` and `waits` are of the time before a restart."""

    def __init__(self, since: float, closed: int = 0, waits: Waits | None = None) -> None:
        self._since = since
        self._bills = RentalSums(closed)
        self._waits = waits or Waits()
        self._started: set[str] = set()
        """Pods (uid) whose wait has been counted."""

    def observe(self, view: ClusterView, ours: Iterable[Node], policy: Policy, now: float) -> None:
        """Machines come and go, pods start."""
        there = {node.name: node for node in ours}
        for name in self._bills.running.keys() - there.keys():
            self._bills.close(name, policy, now)
        for name, node in there.items():
            if name not in self._bills.running:
                started_at = min(now, max(self._since, node.created_at))
                price = policy.whole_price_of(node) or Price(0)
                self._bills.running[name] = Rental(
                    name, name, node.flavour or "", price.nanos_per_hour, started_at, cap=price.cap
                )
        self._note_waits(view)

    def _note_waits(self, view: ClusterView) -> None:
        runs = {
            pod.uid: pod.started_at - pod.created_at
            for pod in view.pods
            if pod.started_at is not None and pod.created_at >= self._since and pod.is_work
        }
        for uid in runs.keys() - self._started:
            self._waits = self._waits.plus(max(0.0, runs[uid]))
        self._started = set(runs)

    def course(self, policy: Policy, now: float) -> Course:
        bills = self._bills
        return Course(bills.nano_seconds(policy, now), bills.nanos_per_hour, len(bills.running), self._waits)
