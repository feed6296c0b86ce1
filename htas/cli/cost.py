"""`htas cost`: what was spent, on what, for whom, and compared with what it could have cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.console import err
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.wiring.stores import reading_store
from htas.documents.asking import Progress
from htas.documents.books import Books, books_of
from htas.documents.costs import CostReport
from htas.documents.forms import CostBy
from htas.documents.words import age, counted
from htas.model.money import price_text
from htas.profiler.accounts import Window


def read_books(loaded: Loaded, window: Window) -> Books:
    """The store's books; machines that run are billed up to now (a sandbox's: up to what it last recorded)."""
    now = time.time() if loaded.sandbox is None else None
    return books_of(partial(reading_store, loaded), loaded.policy, window, now)


def cost_view(report: CostReport) -> RenderableType:
    """A table of sums, with what runs now and what was saved."""
    if report.recommended:
        return Text("\n".join(report.recommended))
    if report.is_new:
        return Text("no machine has been launched yet")
    whole = float(report.total)
    if not whole:
        return Text("nothing was billed in this window")
    view = table(report.by.value, report.currency, "", right=(report.currency,))
    for part in report.parts:
        share = float(part.amount) / whole
        view.add_row(part.key, part.amount, f"{bar(share, 12)} {share:4.0%}")
    view.add_row("total", report.total, "", style="bold")
    runs = "runs" if report.machines == 1 else "run"
    told = f"{counted(report.machines, 'machine')} {runs} now, at {report.price_per_hour} {report.currency}/h"
    parts: list[RenderableType] = [view, Text(told, style="dim"), *comparison_view(report.against, report.assumes)]
    parts += [Text(doubt, style="yellow") for doubt in report.doubts]
    if report.by is CostBy.NAMESPACE and report.pinned:
        parts.append(_pinned_view(report))
    elif report.pinned:
        parts.append(Text(_pinned_line(report), style="dim"))
    return Group(*parts)


def comparison_view(against: str, assumes: Sequence[str]) -> list[RenderableType]:
    """What another way would have cost, and under it what that figure assumes."""
    if not against:
        return []
    return [Text(against, style="bold"), *(Text(f"  {line}", style="dim") for line in assumes)]


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A bar on a terminal while the same work is played on one flavour after another."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Bar(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task("", total=None, visible=False)

        def note(flavour: str, done: int, of: int) -> None:
            bars.update(task, completed=done, total=of, description=f"the same work on {flavour}", visible=True)

        yield note


def _pinned_line(report: CostReport) -> str:
    found = report.pinned
    who = f"{counted(sum(each.pods for each in found), 'pod')} of {counted(len(found), 'namespace')}"
    price = f"{price_text(sum(each.nanos_per_hour for each in found))} {report.currency}/h"
    return f"{who} are pinned, for {price}: see --by namespace"


def _pinned_view(report: CostReport) -> RenderableType:
    """Who keeps pods where they are, and for how much an hour of the machines they are on."""
    figures = "pods", f"{report.currency}/h", "for", "passed over"
    view = table("pinned by", *figures, right=figures)
    for each in report.pinned:
        since = age(max(0.0, report.now - each.since)) if each.pods else ""
        price = price_text(each.nanos_per_hour)
        view.add_row(each.namespace, str(each.pods), price, since, str(each.passed_over or ""))
    return view
