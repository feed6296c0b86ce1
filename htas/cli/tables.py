"""Tables for people, and the same rows as CSV or JSON lines for their programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Collection, Sequence
from io import StringIO

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from htas.cli.console import LiteralConsole, out
from htas.cli.forms import Export
from htas.model.shown import literal, literal_json

ROWS = 20
"""Rows of a list before the rest is counted only."""
WIDEST = 100_000
"""Columns of a pipe or file: no window folds them."""


class Bullet:
    """A line of a list, literal: where it is folded, what follows stands under its text."""

    def __init__(self, text: str, indent: int = 0, style: str = "") -> None:
        self._text, self._mark, self._style = text, " " * indent + "· ", style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = Text(self._text).wrap(console, max(1, options.max_width - len(self._mark)))
        marks = (self._mark, *[" " * len(self._mark)] * len(lines))
        for mark, line in zip(marks, lines, strict=False):
            yield Text(mark + line.plain, style=self._style)


UNFOLDED = frozenset(
    {
        "node",
        "when",
        "cycle",
        "on",
        "group",
        "flavour",
        "event",
        "type",
        "namespace",
        "day",
        "what",
        "written",
        "after",
        "state",
    }
)
"""Columns of names, which people copy: only the words behind them are folded."""


class LiteralTable(Table):
    """A table that shows words as they stand: brackets are no markup, and columns are as wide as what is shown."""

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        shown = (Text(literal(cell)) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*shown, style=style, end_section=end_section)


def table(
    *columns: str, title: str | None = None, right: Collection[str] = (), unfolded: Collection[str] = UNFOLDED
) -> Table:
    """A table without lines; `right` are columns of numbers, and those that are `unfolded` stand on one line."""
    made = LiteralTable(
        title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False
    )
    for column in columns:
        is_right = column in right
        made.add_column(column, overflow="fold", no_wrap=column in unfolded, justify="right" if is_right else "left")
    return made


def listed(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """The first rows under a title, and how many more there are; None where there are none."""
    if not rows:
        return None
    made = table(*columns, title=f"\n{title}", unfolded=())
    for row in rows[:ROWS]:
        made.add_row(*row)
    if len(rows) > ROWS:
        made.add_row(f"… and {len(rows) - ROWS} more (-o json lists all)")
    return made


def show(view: RenderableType) -> None:
    """Print a view: as wide as the terminal, and elsewhere one line a row, however long, for grep and awk."""
    if out.is_terminal:
        out.print(view)
        return
    lines = LiteralConsole(file=StringIO(), width=WIDEST, highlight=False)
    with lines.capture() as captured:
        lines.print(view)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_lines(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct], form: Export) -> None:
    """Rows of one kind on standard output: CSV with a head line, or one JSON object a line with the same keys in each,
    as the readers of Parquet tools take them.
    """
    if form is Export.JSONL:
        sys.stdout.write("".join(f"{literal_json(msgspec.json.encode(row).decode())}\n" for row in rows))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(kind.__struct_fields__)
    writer.writerows([map(_shown, msgspec.structs.astuple(row)) for row in rows])


def _shown(value: object) -> object:
    return literal(value) if isinstance(value, str) else value
