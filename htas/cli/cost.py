"""`htas cost`: what was spent, on what, for whom, and beside what it could have cost."""

from __future__ import annotations

import time
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store
from htas.documents.costs import Books, CostReport, books_of
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
        return Text("nothing has been bought yet")
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
    if report.against:
        told += f"\n{report.against}"
    parts: list[RenderableType] = [view, Text(told, style="dim")]
    parts += [Text(doubt, style="yellow") for doubt in report.doubts]
    if report.by is CostBy.NAMESPACE and report.pinned:
        parts.append(_pinned_view(report))
    elif report.pinned:
        parts.append(Text(_pinned_line(report), style="dim"))
    return Group(*parts)


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
