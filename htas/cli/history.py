"""`htas history`: what was done when, why, and what it saved; `htas replay`: whether it would be done again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from htas.cli.console import InputError, err, out
from htas.cli.daemon_client import DaemonClient
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.wiring.stores import reading_store, store_path, unshipped
from htas.documents.history import MOST_CYCLES, CycleLine, Cycles, HistoryReport, Replayed, cycle_line, replayed
from htas.documents.words import ago
from htas.model.money import price_text
from htas.model.outcomes import OutcomeStatus
from htas.model.plan_document import instant_text
from htas.profiler.history import Entry, entries

WIDE = 110
"""Columns of a terminal from which on the cycle and the status have columns of their own."""


def note_unshipped(loaded: Loaded) -> None:
    """Say what is not in the figures that follow."""
    waiting = unshipped(loaded)
    if waiting:
        err.print(f"{waiting} entries are queued in {store_path(loaded)}: they are not shown yet", style="yellow")


def present(loaded: Loaded) -> float | None:
    """The wall's time. None: a sandbox's clock is not the wall's, and there the newest entry is the present."""
    return None if loaded.sandbox is not None else time.time()


def history_view(found: Iterable[Entry], currency: str, now: float | None, *, with_binds: bool) -> RenderableType:
    """A table of what was decided, oldest first, and what the drains among it save an hour. `now` None: at the newest.

    Binds that went well are left out unless asked for: of a day's thousand lines they are all but fifty.
    """
    found = list(found)
    if now is None:
        now = max((entry.at for entry in found), default=0.0)
    listed = [each for each in found if with_binds or each.verb != "bind" or not OutcomeStatus(each.status).is_well]
    saved = sum(each.nanos_per_hour or 0 for each in listed if each.verb == "drain")
    left_out = len(found) - len(listed)
    is_advice = any(entry.status == OutcomeStatus.RECOMMENDED for entry in found)
    verb = "would have saved" if is_advice else "save"
    told = [f"the drains above {verb} {price_text(saved)} {currency}/h in all"] if saved else []
    if is_advice:
        told.append("recommended: nothing was carried out; this is what HTAS would have done")
    if left_out:
        told.append(f"{'1 bind is' if left_out == 1 else f'{left_out} binds are'} left out; --binds shows them")
    if not listed:
        return Text("; ".join(["these cycles have no such event", *told]))
    view = table_of(listed, now, out.width if out.is_terminal else None)
    return Group(view, Text("\n".join(told), style="dim")) if told else view


def table_of(found: Iterable[Entry], now: float, width: int | None) -> Table:
    """One line an event on a terminal of `width` columns; None: all columns, and instants, for a pipe or file."""
    is_narrow = width is not None and width < WIDE
    view = table(*(("when", "what", "on", "why") if is_narrow else ("cycle", "when", "what", "on", "", "why")))
    for each in found:
        when = instant_text(each.at) if width is None else ago(each.at, now)
        style = {"failed": "red", "dropped": "yellow", "recommended": "cyan"}.get(each.status, "")
        if is_narrow:
            why = each.why if OutcomeStatus(each.status).is_well else f"{each.status}: {each.why}"
            view.add_row(when, each.verb, each.subject, why, style=style)
        else:
            view.add_row(str(each.cycle), when, each.verb, each.subject, each.status, each.why, style=style)
    if width is not None:
        _one_line_each(view, width)
    return view


def _one_line_each(view: Table, width: int) -> None:
    """Have each event stand on one line of a terminal: what is longer ends in …, and stands whole in a pipe or file."""
    left = width - 2 * (len(view.columns) - 1)
    for i, column in enumerate(view.columns):
        longest = max(map(len, map(str, (column.header, *column.cells))))
        most = {"why": max(1, left), "on": min(longest, width // 3)}.get(str(column.header), longest)
        left -= most
        view.columns[i] = replace(column, no_wrap=True, overflow="ellipsis", max_width=most)


def node_view(loaded: Loaded, name: str) -> RenderableType:
    """The profiler's rows of one node (HTAS paper, Table 3)."""
    view = table("when", "event", "type", "runtime s", "cpu free", "of", "ram free", "of")
    with reading_store(loaded) as store:
        rows = store.profile(name)
    for row in rows:
        when = instant_text(row.event_time)
        ram = f"{row.ramavailable / 2**20:.0f} MiB", f"{row.ramcapacity / 2**20:.0f} MiB"
        cpu = f"{row.cpuavailable}m", f"{row.cpucapacity}m"
        view.add_row(when, row.event.value, row.instance_type, str(row.runtime), *cpu, *ram)
    if not view.row_count:
        raise InputError(f"node {name}: no record; htas top lists the nodes")
    return view


class Recorded:
    """The past, from the store's files."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        note_unshipped(loaded)

    def history(self, verb: str | None, limit: int, since: float) -> HistoryReport:
        with reading_store(self._loaded) as store:
            found = list(entries(store.cycles(limit=limit), verb, since))
        return HistoryReport(self._loaded.policy.catalogue.currency, present(self._loaded), found)

    def cycles(self, limit: int, since: float) -> Sequence[CycleLine]:
        with reading_store(self._loaded) as store:
            return list(map(cycle_line, store.cycles(since, limit)))

    def replay(self, number: int) -> Replayed:
        with reading_store(self._loaded) as store:
            return replayed(store, self._loaded.policy, number)


class DaemonPast:
    """The past, as a daemon tells it."""

    def __init__(self, server: DaemonClient) -> None:
        self._server = server

    def history(self, verb: str | None, limit: int, since: float) -> HistoryReport:
        return self._server.get("/history", HistoryReport, verb=verb, cycles=_at_most(limit), since=since)

    def cycles(self, limit: int, since: float) -> Sequence[CycleLine]:
        return self._server.get("/cycles", Cycles, limit=_at_most(limit), since=since).items

    def replay(self, number: int) -> Replayed:
        return self._server.get(f"/cycles/{number}/replay", Replayed)


def _at_most(limit: int) -> int:
    if limit > MOST_CYCLES:
        err.print(f"a daemon reports the newest {MOST_CYCLES:,} cycles at most", style="dim")
    return min(limit, MOST_CYCLES)


def replay_view(found: Replayed) -> str:
    """The differences, one a line, or that there are none."""
    return "\n".join(found.differences) or f"cycle {found.cycle}: the same plan again"
