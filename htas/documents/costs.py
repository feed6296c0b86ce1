"""What was spent, exactly: on what, or for whom, and compared with what it could have cost."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from htas.documents.asking import Progress
from htas.documents.books import Books
from htas.documents.forms import CostBy
from htas.documents.recommendation import told
from htas.documents.words import counted
from htas.model.money import bill_amount, price_text
from htas.profiler import accounts


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
    """What another way would have cost, and how what was spent compares with it; empty: none was asked for."""
    assumes: tuple[str, ...] = ()
    """What that figure assumes, a sentence or two a line."""
    recommended: tuple[str, ...] = ()
    """What a daemon that only recommends would have saved, in words, a line each."""
    doubts: tuple[str, ...] = ()
    """What of it is no more than HTAS believes, in words, a line each."""


def cost_report(books: Books, by: CostBy, against: str | None = None, progress: Progress | None = None) -> CostReport:
    """Raises GivenError where another way makes no sense."""
    whole, other = books.total, None
    if against is not None and whole:
        from htas.documents import alternatives  # numpy: the sums alone do without

        other = alternatives.alternative(books, against, progress)
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
        alternatives.compared(other, whole, books.catalogue.currency) if other is not None else "",
        other.assumes if other is not None else (),
        told(books.savings, books.catalogue.currency) if books.savings is not None else (),
        tuple(_doubts(books)),
    )


def _doubts(books: Books) -> Iterator[str]:
    """Bills of flavours without a price, and those whose end the cloud has not confirmed."""
    guessed = [bill for bill in books.bills if bill.is_price_unknown and accounts.held_s(bill, books.now) > 0]
    if guessed:
        names = ", ".join(sorted({bill.flavour for bill in guessed}))
        what = "at the price of the launched flavour, or 0 where that is unknown"
        yield f"{counted(len(guessed), 'bill')} of {names}: {what}; the price file lacks {names}"
    ends = sum(bill.is_provisional for bill in books.bills)
    if ends:
        yield f"the cloud's usage has not confirmed the end of {counted(ends, 'bill')} yet"


class CostLine(msgspec.Struct, frozen=True):
    """One line of an export; `amount` is a decimal, to a millionth of the currency."""

    by: str
    key: str
    amount: str
    currency: str


def cost_lines(report: CostReport) -> list[CostLine]:
    return [CostLine(report.by.value, part.key, part.amount, report.currency) for part in report.parts]
