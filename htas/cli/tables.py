"""Tables for people, and the same rows as CSV or JSON lines for their programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence

import msgspec
from rich.table import Table

from htas.cli.forms import Export

UNFOLDED = frozenset({"node", "when", "cycle", "on", "group", "flavour", "event", "type", "namespace", "day"})
"""Columns of names, which people copy: only the words behind them are folded."""


def table(*columns: str) -> Table:
    made = Table(header_style="dim", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in UNFOLDED)
    return made


def print_lines(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct], form: Export) -> None:
    """Rows of one kind on standard output: CSV with a head line, or one JSON object a line with the same keys in each,
    as the readers of Parquet tools take them.
    """
    if form is Export.JSONL:
        sys.stdout.write("".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(kind.__struct_fields__)
    writer.writerows([msgspec.structs.astuple(row) for row in rows])
