"""Books: what a store knows of money, and of the work that it was spent on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache

import msgspec

from htas.documents.forms import CostBy
from htas.model.flavours import Catalogue
from htas.model.machine_times import MachineTimes
from htas.model.policy import Policy
from htas.model.record import Bill, Run
from htas.model.resources import Resources
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot
from htas.planning.namespaces import pins
from htas.planning.namespaces.pins import Pinned
from htas.ports import StorePort
from htas.profiler import accounts, shares
from htas.profiler.accounts import Window
from htas.profiler.stays import running, without

Reading = Callable[[], AbstractContextManager[StorePort]]
"""Opens the store for reading."""

OF_BILLS: Mapping[CostBy, Callable[[Bill], str]] = {
    CostBy.GROUP: lambda bill: bill.group,
    CostBy.FLAVOUR: lambda bill: bill.flavour,
}
OF_WORK: Mapping[CostBy, Callable[[Run], str]] = {
    CostBy.NAMESPACE: lambda run: run.namespace,
    CostBy.OWNER: lambda run: f"{run.namespace} {run.owner}",
}


class Books(msgspec.Struct, frozen=True):
    """What a store knows of money: bills, and the work they were for, up to its present."""

    policy: Policy
    bills: Sequence[Bill]
    stays: Callable[[], Sequence[Run]]
    """Read when somebody asks for whom: a year of them is large."""
    now: float
    window: Window
    pinned: Mapping[str, Pinned] = {}
    """What each namespace pinned to machines in the newest recorded cycle."""
    savings: Savings | None = None
    """Of a daemon that only recommends, as it recorded them last."""
    machine_times: MachineTimes = MachineTimes()
    offered: Mapping[str, Resources] = {}
    """By flavour what its nodes were seen to offer."""

    @property
    def catalogue(self) -> Catalogue:
        return self.policy.catalogue

    def sums(self, by: CostBy) -> Mapping[str, int]:
        """Price × billed seconds by a key; they add up to the total exactly."""
        told = self.bills, self.catalogue.billing, self.now, self.window
        if by is CostBy.DAY:
            return accounts.by_day(*told)
        if by in OF_BILLS:
            return accounts.by(OF_BILLS[by], *told)
        return shares.by_work(OF_WORK[by], self.bills, self.stays(), *told[1:])

    @property
    def total(self) -> int:
        return accounts.total(self.bills, self.catalogue.billing, self.now, self.window)


def books_of(
    reading: Reading, policy: Policy, window: Window, now: float | None, seen: ClusterSnapshot | None = None
) -> Books:
    """Read the store; machines that run are billed up to `now`, or (None) up to the latest instant the store knows of:
    a sandbox's clock is not the wall's. `seen`: the newest snapshot, where no cycles are on record.
    """
    billing = policy.catalogue.billing
    rounding_s = max(billing.granularity_s, billing.minimum_s)
    with reading() as store:
        bills = store.bills(window.since - rounding_s)
        present = now if now is not None else _present(store, bills)
        newest = next(store.cycles(limit=1), None)
    if seen is None and newest is not None:
        seen = newest.snapshot

    @cache
    def stays() -> Sequence[Run]:
        with reading() as store:
            return stays_within(store, window, present, seen)

    books = Books(policy, bills, stays, present, window)
    if seen is None:
        return books
    return msgspec.structs.replace(
        books,
        pinned=pins.by_namespace(seen.cluster, policy, seen.taken_at),
        savings=newest.savings if newest is not None else None,
        machine_times=seen.machine_times,
        offered=seen.learned,
    )


def _present(store: StorePort, bills: Sequence[Bill]) -> float:
    stated = [bill.ended_at or bill.started_at for bill in bills]
    return max([0.0, *(record.at for record in store.cycles(limit=1)), *stated])


def stays_within(store: StorePort, window: Window, now: float, seen: ClusterSnapshot | None) -> list[Run]:
    """The stays within a window, cut to it: those on record, and those of the newest snapshot that go on."""
    # What ended since that snapshot is not going on.
    since = min(window.since, seen.taken_at) if seen is not None else window.since
    over = list(store.runs(since))
    going_on = running(without(seen, over)) if seen is not None else []
    cut = (_cut(run, run.ended_at, window) for run in over)
    cut_open = (_cut(run, now, window) for run in going_on)
    return [run for run in (*cut, *cut_open) if run.ended_at > run.came_at]


def _cut(run: Run, end: float, window: Window) -> Run:
    return msgspec.structs.replace(run, came_at=max(run.came_at, window.since), ended_at=min(end, window.until))
