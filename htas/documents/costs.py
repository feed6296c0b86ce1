"""What was spent, exactly: on what, or for whom, and beside what it could have cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import msgspec

from htas.documents.forms import CostBy
from htas.documents.recommendation import told
from htas.model.flavours import Catalogue, Flavour
from htas.model.money import bill_amount, price_text
from htas.model.policy import Policy
from htas.model.record import Bill, Run
from htas.model.savings import Savings
from htas.planning.namespaces import pins
from htas.planning.namespaces.pins import Pinned
from htas.ports import GivenError, StorePort
from htas.profiler import accounts, shares
from htas.profiler.accounts import Window
from htas.profiler.alternatives import TooSmallError, fixed_peak, homogeneous
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

    catalogue: Catalogue
    bills: Sequence[Bill]
    stays: Callable[[], Sequence[Run]]
    """Read when somebody asks for whom: a year of them is large."""
    now: float
    window: Window
    pinned: Mapping[str, Pinned] = {}
    """What each namespace pinned to machines in the newest recorded cycle."""
    savings: Savings | None = None
    """Of a daemon that only recommends, as it recorded them last."""

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


def books_of(reading: Reading, policy: Policy, window: Window, now: float | None) -> Books:
    """Read the store; machines that run are billed up to `now`, or (None) up to the latest instant the store knows of:
    a sandbox's clock is not the wall's.
    """
    catalogue = policy.catalogue
    rounding_s = max(catalogue.billing.granularity_s, catalogue.billing.minimum_s)
    with reading() as store:
        bills = store.bills(window.since - rounding_s)
        present = now if now is not None else _present(store, bills)
        newest = next(store.cycles(limit=1), None)
    seen = newest.snapshot if newest is not None else None
    pinned = pins.by_namespace(seen.cluster, policy, seen.taken_at) if seen is not None else {}

    @cache
    def stays() -> Sequence[Run]:
        with reading() as store:
            return stays_within(store, window, present)

    return Books(catalogue, bills, stays, present, window, pinned, newest.savings if newest is not None else None)


def _present(store: StorePort, bills: Sequence[Bill]) -> float:
    stated = [bill.ended_at or bill.started_at for bill in bills]
    return max([0.0, *(record.at for record in store.cycles(limit=1)), *stated])


def stays_within(store: StorePort, window: Window, now: float) -> list[Run]:
    """The stays within a window, cut to it: those on record, and those of the newest recorded cycle that go on."""
    newest = next(store.cycles(limit=1), None)
    # What ended since that cycle is not going on.
    since = min(window.since, newest.at) if newest is not None else window.since
    over = list(store.runs(since))
    going_on = running(without(newest.snapshot, over)) if newest is not None else []
    cut = (_cut(run, run.ended_at, window) for run in over)
    cut_open = (_cut(run, now, window) for run in going_on)
    return [run for run in (*cut, *cut_open) if run.ended_at > run.came_at]


def _cut(run: Run, end: float, window: Window) -> Run:
    return msgspec.structs.replace(run, came_at=max(run.came_at, window.since), ended_at=min(end, window.until))


class CostPart(msgspec.Struct, frozen=True):
    """What was spent on one key; `amount` is a decimal, to a millionth of the currency."""

    key: str
    amount: str


class PinnedBy(msgspec.Struct, frozen=True):
    """What a namespace keeps where it is, as `Pinned` has it."""

    namespace: str
    pods: int
    nanos_per_hour: int
    since: float
    passed_over: int


class CostReport(msgspec.Struct, frozen=True):
    """Sums by a key, what runs now and what was saved. `is_new`: nothing has been bought yet."""

    by: CostBy
    currency: str
    now: float
    is_new: bool
    total: str
    machines: int
    price_per_hour: str
    parts: tuple[CostPart, ...]
    pinned: tuple[PinnedBy, ...] = ()
    against: str = ""
    """What was saved, or spent more, against another way, in words; empty: none was asked for."""
    recommended: tuple[str, ...] = ()
    """What a daemon that only recommends would have saved, in words, a line each."""


@contextmanager
def said_in(where: str) -> Iterator[None]:
    """What makes no sense is told with where it stands: a command's option, or a part of a query."""
    try:
        yield
    except GivenError as error:
        raise GivenError(f"{where}: {error}") from None


def cost_report(books: Books, by: CostBy, against: str | None = None) -> CostReport:
    """Raises GivenError where another way makes no sense."""
    whole = books.total
    pinned = (PinnedBy(name, p.pods, p.nanos, p.since, p.passed_over) for name, p in books.pinned.items())
    sums = books.sums(by) if whole else {}
    return CostReport(
        by,
        books.catalogue.currency,
        books.now,
        not books.bills,
        str(bill_amount(whole)),
        sum(bill.ended_at is None for bill in books.bills),
        price_text(accounts.nanos_per_hour(books.bills)),
        tuple(CostPart(name, str(bill_amount(amount))) for name, amount in sums.items()),
        tuple(pinned),
        savings_told(books, against) if against is not None and whole else "",
        told(books.savings, books.catalogue.currency) if books.savings is not None else (),
    )


class CostLine(msgspec.Struct, frozen=True):
    """One line of an export; `amount` is a decimal, to a millionth of the currency."""

    by: str
    key: str
    amount: str
    currency: str


def cost_lines(report: CostReport) -> list[CostLine]:
    return [CostLine(report.by.value, part.key, part.amount, report.currency) for part in report.parts]


# Beside what it could have cost.


class Alternative(msgspec.Struct, frozen=True):
    """Another way to do the same work: in words, its flavour, how many machines at most, and price × billed seconds."""

    told: str
    flavour: str
    machines: int
    nano_seconds: int


def savings_told(books: Books, against: str) -> str:
    other = alternative(books, against)
    saved = other.nano_seconds - books.total
    currency = books.catalogue.currency
    if saved < 0:
        return f"{bill_amount(-saved)} {currency} more than {other.told}"
    return f"{bill_amount(saved)} {currency} saved against {other.told}"


def alternative(books: Books, against: str) -> Alternative:
    """What is compared with: a fixed cluster ("3 m1.large"), "homogeneous [FLAVOUR]" or "peak [FLAVOUR]".

    Raises GivenError where it makes no sense; who asks says where that stands (`said_in`).
    """
    word, _, flavour = against.strip().partition(" ")
    flavour = flavour.strip()
    if re.fullmatch(r"[1-9][0-9]{0,4}", word) and flavour:
        start = min(bill.started_at for bill in books.bills)
        one = _flavour(books.catalogue, flavour)
        fixed = [
            Bill(f"fixed-{i}", "fixed", one.name, one.nanos_per_hour, start, cap=one.cap) for i in range(int(word))
        ]
        return Alternative(f"{against} rented all the time", one.name, len(fixed), _total(books, fixed))
    ways = {"homogeneous": homogeneous, "peak": fixed_peak}
    if word not in ways:
        raise GivenError(
            f'{against!r} is no alternative; write "3 FLAVOUR" (a fixed cluster), homogeneous or peak,'
            " the last two with a FLAVOUR or without"
        )
    work = [run for run in books.stays() if run.claim and not run.owner.startswith("DaemonSet/")]
    if not work:
        raise GivenError(f"{word}: no work on machines of htas is on record yet")
    chosen = [_flavour(books.catalogue, flavour)] if flavour else list(books.catalogue.flavours)
    found = []
    for each in chosen:
        try:
            bills = ways[word](work, each)
        except TooSmallError as error:
            if flavour:
                raise GivenError(f"{against}: {error}") from None
            continue
        found.append((_total(books, bills), each.name, len(bills)))
    if not found:
        raise GivenError(f"{word}: no single flavour holds every pod; name a fixed cluster")
    total, name, count = min(found)
    most = f"the same work's peak of {count} {name}, rented all the time"
    told = most if word == "peak" else f"the same work on {name} alone, bought and given back as needed"
    return Alternative(told, name, count, total)


def _total(books: Books, bills: Iterable[Bill]) -> int:
    return accounts.total(bills, books.catalogue.billing, books.now, books.window)


def _flavour(catalogue: Catalogue, name: str) -> Flavour:
    found = catalogue.named(name)
    if found is None:
        known = ", ".join(flavour.name for flavour in catalogue.flavours)
        raise GivenError(f"there is no flavour {name!r}; the price file has {known}")
    return found
