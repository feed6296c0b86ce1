"""`htas history`: what was done when, why, and what it saved; `htas replay`: whether it would be done again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.console import InputError, err, out
from htas.cli.daemon_client import DaemonClient
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store, store_path, unshipped
from htas.documents.history import MOST_CYCLES, CycleLine, Cycles, HistoryReport, Replayed, cycle_line, replayed
from htas.documents.words import ago
from htas.model.money import price_text
from htas.model.outcomes import OutcomeStatus
from htas.model.plan_document import instant_text
from htas.profiler.history import Entry, entries


def note_unshipped(loaded: Loaded) -> None:
    """Say what is not in the figures that follow."""
    waiting = unshipped(loaded)
    if waiting:
        err.print(f"{waiting} entries wait in {store_path(loaded)}: they are not in here yet", style="yellow")


def present(loaded: Loaded) -> float | None:
    """The wall's time. None: a sandbox's clock is not the wall's, and there the newest entry is the present."""
    return None if loaded.sandbox is not None else time.time()


def history_view(found: Iterable[Entry], currency: str, now: float | None, *, with_binds: bool) -> RenderableType:
    """A table of what was decided, oldest first, and what the drains among it save an hour. `now` None: at the newest.

    Binds that went well are left out unless asked for: of a day's thousand lines they are all but fifty.
    """
    view, saved, left_out = table("cycle", "when", "what", "on", "", "why"), 0, 0
    found = list(found)
    if now is None:
        now = max((entry.at for entry in found), default=0.0)
    for entry in found:
        if entry.verb == "bind" and OutcomeStatus(entry.status).is_well and not with_binds:
            left_out += 1
            continue
        when = ago(entry.at, now) if out.is_terminal else instant_text(entry.at)
        style = {"failed": "red", "dropped": "yellow", "recommended": "cyan"}.get(entry.status, "")
        view.add_row(str(entry.cycle), when, entry.verb, entry.subject, entry.status, entry.why, style=style)
        if entry.verb == "drain" and entry.nanos_per_hour is not None:
            saved += entry.nanos_per_hour
    is_advice = any(entry.status == OutcomeStatus.RECOMMENDED for entry in found)
    verb = "would have saved" if is_advice else "save"
    told = [f"the drains above {verb} {price_text(saved)} {currency}/h in all"] if saved else []
    if is_advice:
        told.append(
            "recommended: nothing of it was carried out; it is the course that things would have taken with HTAS"
        )
    if left_out:
        told.append(f"{'1 bind is' if left_out == 1 else f'{left_out} binds are'} left out; --binds shows them")
    if not view.row_count:
        return Text("; ".join(["nothing of that kind is on record in these cycles", *told]))
    return Group(view, Text("\n".join(told), style="dim")) if told else view


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
        raise InputError(f"node {name}: nothing is written of it; htas top names the nodes there are")
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
        err.print(f"a daemon tells of the newest {MOST_CYCLES:,} cycles at most", style="dim")
    return min(limit, MOST_CYCLES)


def replay_view(found: Replayed) -> str:
    """The differences, one a line, or that there are none."""
    return "\n".join(found.differences) or f"cycle {found.cycle}: the same plan again"
