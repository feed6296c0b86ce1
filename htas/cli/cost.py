"""`htas cost`: what was spent, on what, for whom, and beside what it could have cost."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.console import InputError
from htas.cli.forms import CostBy
from htas.cli.tables import table
from htas.cli.words import age, counted
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store
from htas.model.flavours import Catalogue, Flavour
from htas.model.money import bill_amount, price_text
from htas.model.record import Bill, Run
from htas.planning.namespaces import pins
from htas.planning.namespaces.pins import Pinned
from htas.ports import StorePort
from htas.profiler import accounts, shares
from htas.profiler.accounts import Window
from htas.profiler.alternatives import TooSmallError, fixed_peak, homogeneous
from htas.profiler.stays import running, without

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

    catalogue: Catalogue
    bills: Sequence[Bill]
    stays: Callable[[], Sequence[Run]]
    """Read when somebody asks for whom: a year of them is large."""
    now: float
    window: Window
    pinned: Mapping[str, Pinned] = {}
    """What each namespace pinned to machines in the newest recorded cycle."""

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


def books_of(loaded: Loaded, window: Window) -> Books:
    """Read the store; machines that run are billed up to now (a sandbox's: up to what it last recorded)."""
    catalogue = loaded.policy.catalogue
    rounding_s = max(catalogue.billing.granularity_s, catalogue.billing.minimum_s)
    with reading_store(loaded) as store:
        bills = store.bills(window.since - rounding_s)
        present = _present(store, bills) if loaded.sandbox is not None else time.time()
        newest = store.cycles(limit=1)
    seen = newest[0].snapshot if newest else None
    pinned = pins.by_namespace(seen.cluster, loaded.policy, seen.taken_at) if seen is not None else {}

    @cache
    def stays() -> Sequence[Run]:
        with reading_store(loaded) as store:
            return _runs(store, window, present)

    return Books(catalogue, bills, stays, present, window, pinned)


def _present(store: StorePort, bills: Sequence[Bill]) -> float:
    """The latest instant the store knows of: a sandbox's clock is not the wall's."""
    stated = [bill.ended_at or bill.started_at for bill in bills]
    return max([0.0, *(record.at for record in store.cycles(limit=1)), *stated])


def _runs(store: StorePort, window: Window, now: float) -> list[Run]:
    """The stays within a window, cut to it: those on record, and those of the newest recorded cycle that go on."""
    newest = store.cycles(limit=1)
    since = min([window.since, *(record.at for record in newest)])  # what ended since that cycle is not going on
    over = list(store.runs(since))
    going_on = running(without(newest[0].snapshot, over)) if newest else []
    cut = (_cut(run, run.ended_at, window) for run in over)
    cut_open = (_cut(run, now, window) for run in going_on)
    return [run for run in (*cut, *cut_open) if run.ended_at > run.came_at]


def _cut(run: Run, end: float, window: Window) -> Run:
    return msgspec.structs.replace(run, came_at=max(run.came_at, window.since), ended_at=min(end, window.until))


def cost_view(books: Books, by: CostBy, against: str | None) -> RenderableType:
    """A table of sums, with what runs now and what was saved."""
    if not books.bills:
        return Text("nothing has been bought yet")
    if not books.total:
        return Text("nothing was billed in this window")
    catalogue, whole = books.catalogue, books.total
    view = table(by.value, catalogue.currency, "")
    view.columns[1].justify = "right"
    sums = books.sums(by)
    for name, amount in sums.items():
        share = amount / whole if whole else 0.0
        view.add_row(name, str(bill_amount(amount)), f"{bar(share, 12)} {share:4.0%}")
    view.add_row("total", str(bill_amount(whole)), "", style="bold")
    count = sum(bill.ended_at is None for bill in books.bills)
    per_hour = price_text(accounts.nanos_per_hour(books.bills))
    told = f"{counted(count, 'machine')} {'runs' if count == 1 else 'run'} now, at {per_hour} {catalogue.currency}/h"
    if against is not None:
        told += f"\n{_savings(books, against)}"
    parts: list[RenderableType] = [view, Text(told, style="dim")]
    if by is CostBy.NAMESPACE and books.pinned:
        parts.append(_pinned_view(books))
    elif books.pinned:
        parts.append(Text(_pinned_line(books), style="dim"))
    return Group(*parts)


def _pinned_line(books: Books) -> str:
    found = books.pinned.values()
    who = f"{counted(sum(each.pods for each in found), 'pod')} of {counted(len(found), 'namespace')}"
    price = f"{price_text(sum(each.nanos for each in found))} {books.catalogue.currency}/h"
    return f"{who} are pinned, for {price}: see --by namespace"


def _pinned_view(books: Books) -> RenderableType:
    """Who keeps pods where they are, and for how much an hour of the machines they are on."""
    view = table("pinned by", "pods", f"{books.catalogue.currency}/h", "for", "passed over")
    for column in view.columns[1:]:
        column.justify = "right"
    for name, each in books.pinned.items():
        since = age(max(0.0, books.now - each.since)) if each.pods else ""
        view.add_row(name, str(each.pods), price_text(each.nanos), since, str(each.passed_over or ""))
    return view


class CostLine(msgspec.Struct, frozen=True):
    """One line of an export."""

    by: str
    key: str
    amount: str
    currency: str


def cost_lines(books: Books, by: CostBy) -> list[CostLine]:
    """The sums as lines; `amount` is a decimal, to a millionth of the currency."""
    currency = books.catalogue.currency
    return [CostLine(by.value, name, str(bill_amount(amount)), currency) for name, amount in books.sums(by).items()]


# Beside what it could have cost.


def _savings(books: Books, against: str) -> str:
    name, bills = _alternative(books, against)
    saved = accounts.total(bills, books.catalogue.billing, books.now, books.window) - books.total
    currency = books.catalogue.currency
    if saved < 0:
        return f"{bill_amount(-saved)} {currency} more than {name}"
    return f"{bill_amount(saved)} {currency} saved against {name}"


def _alternative(books: Books, against: str) -> tuple[str, Sequence[Bill]]:
    """What is compared with, and its bills. Raises InputError where it makes no sense."""
    word, _, flavour = against.strip().partition(" ")
    flavour = flavour.strip()
    if re.fullmatch(r"[1-9][0-9]{0,4}", word) and flavour:
        start = min(bill.started_at for bill in books.bills)
        one = _flavour(books.catalogue, flavour)
        fixed = [Bill(f"fixed-{i}", "fixed", one.name, one.nanos_per_hour, start) for i in range(int(word))]
        return f"{against} rented all the time", fixed
    ways = {"homogeneous": homogeneous, "peak": fixed_peak}
    if word not in ways:
        raise InputError(
            f'--against: {against!r} is no alternative; write "3 FLAVOUR" (a fixed cluster), homogeneous or peak,'
            " the last two with a FLAVOUR or without"
        )
    work = [run for run in books.stays() if run.claim and not run.owner.startswith("DaemonSet/")]
    if not work:
        raise InputError(f"--against {word}: no work on machines of htas is on record yet")
    chosen = [_flavour(books.catalogue, flavour)] if flavour else list(books.catalogue.flavours)
    found = []
    for each in chosen:
        try:
            bills = ways[word](work, each)
        except TooSmallError as error:
            if flavour:
                raise InputError(f"--against {against}: {error}") from None
            continue
        found.append((accounts.total(bills, books.catalogue.billing, books.now, books.window), each.name, bills))
    if not found:
        raise InputError(f"--against {word}: no single flavour holds every pod; name a fixed cluster")
    _, name, bills = min(found, key=lambda item: item[:2])
    most = f"the same work's peak of {len(bills)} {name}, rented all the time"
    return (most if word == "peak" else f"the same work on {name} alone, bought and given back as needed"), bills


def _flavour(catalogue: Catalogue, name: str) -> Flavour:
    found = catalogue.named(name)
    if found is None:
        known = ", ".join(flavour.name for flavour in catalogue.flavours)
        raise InputError(f"--against: there is no flavour {name!r}; the price file has {known}")
    return found
