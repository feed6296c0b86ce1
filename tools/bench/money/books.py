"""Whether `htas cost` says what the world's invoice says, in every family, the running minutes included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table

from htas.model.money import bill_amount
from tools.bench.money.playing import HTAS, Played


@dataclass(frozen=True, slots=True)
class BooksRow:
    """A family's runs of HTAS together. Sums are price an hour in billionths × billed seconds."""

    family: str
    seeds: int
    invoice: int
    said: int
    off: int
    """The greatest difference seen in any of its runs, at any moment."""

    @property
    def is_exact(self) -> bool:
        return self.off == 0 and self.said == self.invoice


def books(played: Iterable[Played], families: Iterable[str]) -> list[BooksRow]:
    """One row for each family of which the invoices are on record."""
    runs: dict[str, list[Played]] = {}
    for each in played:
        if each.contender == HTAS and each.invoice:
            runs.setdefault(each.family, []).append(each)
    return [_row(family, runs[family]) for family in families if family in runs]


def _row(family: str, runs: Sequence[Played]) -> BooksRow:
    invoice, said = sum(each.invoice for each in runs), sum(each.said for each in runs)
    return BooksRow(family, len(runs), invoice, said, max(each.off for each in runs))


def books_table(found: Sequence[BooksRow]) -> Table:
    """What both say, and by how much they ever differed; red where they did."""
    drawn = Table(title="What `htas cost` says, and the world's invoice at the same moments")
    drawn.add_column("family")
    for name in ("seeds", "invoice", "htas cost", "greatest difference"):
        drawn.add_column(name, justify="right")
    for row in found:
        off = "none" if row.is_exact else f"[red]{bill_amount(max(row.off, abs(row.said - row.invoice)))}[/red]"
        drawn.add_row(row.family, str(row.seeds), str(bill_amount(row.invoice)), str(bill_amount(row.said)), off)
    return drawn
