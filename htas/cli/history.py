"""`htas history`: what was done when, why, and what it saved; `htas replay`: whether it would be done again."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.console import InputError, err, out
from htas.cli.instants import absolute, ago
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store, store_path, unshipped
from htas.model.money import price_text
from htas.model.record import CycleRecord, OutcomeStatus
from htas.model.stages import Stage
from htas.profiler.compare import differences
from htas.profiler.history import Entry, entries


class CycleLine(msgspec.Struct, frozen=True):
    """One cycle of an export. Prices are an hour's, in the catalogue's currency; times are ISO 8601 in UTC."""

    cycle: int
    at: str
    stages: str
    planning_s: float
    nodes: int
    pods: int
    waiting: int
    bind: int
    launch: int
    migrate: int
    remove: int
    unplaced: int
    done: int
    dropped: int
    failed: int
    price_per_hour_before: str
    price_per_hour_after: str
    currency: str


class EntryLine(msgspec.Struct, frozen=True):
    """One thing that was done, in an export. `price_per_hour` is a launch's price or a drain's saving; else empty."""

    cycle: int
    at: str
    verb: str
    subject: str
    status: str
    why: str
    price_per_hour: str


def note_unshipped(loaded: Loaded) -> None:
    """Say what is not in the figures that follow."""
    waiting = unshipped(loaded)
    if waiting:
        err.print(f"{waiting} entries wait in {store_path(loaded)}: they are not in here yet", style="yellow")


def history_entries(loaded: Loaded, verb: str | None, limit: int, since: float) -> list[Entry]:
    with reading_store(loaded) as store:
        return list(entries(store.cycles(limit=limit), verb, since))


def history_view(found: Iterable[Entry], loaded: Loaded, *, with_binds: bool) -> RenderableType:
    """A table of what was decided, oldest first, and what the drains among it save an hour.

    Binds that went well are left out unless asked for: of a day's thousand lines they are all but fifty.
    """
    view, saved, left_out = table("cycle", "when", "what", "on", "", "why"), 0, 0
    found = list(found)
    # A sandbox's clock is not the wall's: there the newest entry is the present.
    now = max((entry.at for entry in found), default=0.0) if loaded.sandbox is not None else time.time()
    for entry in found:
        if entry.verb == "bind" and entry.status == OutcomeStatus.DONE and not with_binds:
            left_out += 1
            continue
        when = ago(entry.at, now) if out.is_terminal else absolute(entry.at)
        style = {"failed": "red", "dropped": "yellow"}.get(entry.status, "")
        view.add_row(str(entry.cycle), when, entry.verb, entry.subject, entry.status, entry.why, style=style)
        if entry.verb == "drain" and entry.nanos_per_hour is not None:
            saved += entry.nanos_per_hour
    told = [f"the drains above save {price_text(saved)} {loaded.policy.catalogue.currency}/h in all"] if saved else []
    if left_out:
        told.append(f"{'1 bind is' if left_out == 1 else f'{left_out} binds are'} left out; --binds shows them")
    if not view.row_count:
        return Text("; ".join(["nothing of that kind is on record in these cycles", *told]))
    return Group(view, Text("\n".join(told), style="dim")) if told else view


def entry_lines(found: Iterable[Entry]) -> list[EntryLine]:
    return [
        EntryLine(
            entry.cycle,
            _iso(entry.at),
            entry.verb,
            entry.subject,
            entry.status,
            entry.why,
            price_text(entry.nanos_per_hour) if entry.nanos_per_hour is not None else "",
        )
        for entry in found
    ]


def cycle_lines(loaded: Loaded, limit: int, since: float) -> list[CycleLine]:
    with reading_store(loaded) as store:
        return [_line(record) for record in store.cycles(since, limit)]


def _line(record: CycleRecord) -> CycleLine:
    made, view = record.plan, record.snapshot.cluster
    statuses = [outcome.status for outcome in record.outcomes]
    return CycleLine(
        cycle=record.id,
        at=_iso(record.at),
        stages=" ".join(record.stages),
        planning_s=round(record.planning_s, 4),
        nodes=len(view.nodes),
        pods=len(view.pods),
        waiting=sum(pod.node is None for pod in view.pods),
        bind=len(made.bind),
        launch=len(made.launch),
        migrate=len(made.migrate),
        remove=len(made.remove),
        unplaced=len(made.unplaced),
        done=statuses.count(OutcomeStatus.DONE),
        dropped=statuses.count(OutcomeStatus.DROPPED),
        failed=statuses.count(OutcomeStatus.FAILED),
        price_per_hour_before=price_text(made.cost.before_nanos),
        price_per_hour_after=price_text(made.cost.after_nanos),
        currency=made.cost.currency,
    )


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def node_view(loaded: Loaded, name: str) -> RenderableType:
    """The profiler's rows of one node (HTAS paper, Table 3)."""
    view = table("when", "event", "type", "runtime s", "cpu free", "of", "ram free", "of")
    with reading_store(loaded) as store:
        rows = store.profile(name)
    for row in rows:
        when = absolute(row.event_time)
        ram = f"{row.ramavailable / 2**20:.0f} MiB", f"{row.ramcapacity / 2**20:.0f} MiB"
        cpu = f"{row.cpuavailable}m", f"{row.cpucapacity}m"
        view.add_row(when, row.event.value, row.instance_type, str(row.runtime), *cpu, *ram)
    if not view.row_count:
        raise InputError(f"node {name}: nothing is written of it; htas top names the nodes there are")
    return view


def replay(loaded: Loaded, number: int) -> bool:
    """Plan a recorded cycle again and print the differences; whether there were none."""
    with reading_store(loaded) as store:
        record = store.cycle(number)
    if record is None:
        raise InputError(f"cycle {number}: not in the store (it may have been too old); htas history lists them")
    from htas.planning.planner import plan  # numpy, which no other command on the store needs

    again = plan(record.snapshot, loaded.policy, record.at, frozenset(Stage(stage) for stage in record.stages))
    found = differences(record.plan, again)
    for line in found:
        out.print(line, markup=False)
    if not found:
        out.print(f"cycle {number}: the same plan again")
    return not found
