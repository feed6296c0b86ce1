"""The commands on what a daemon sees and has done: top, cost, history and replay; from its files, or asked of it."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from htas.cli.console import InputError, exit_on_error, instant_of, say
from htas.cli.daemon_client import Authority, DaemonClient, ServerUrl, TokenFile, server_at
from htas.cli.forms import Export
from htas.cli.options import Config, configured
from htas.documents.forms import CostBy, Sorted
from htas.model.outcomes import Action


def top(
    config: Config = None,
    sort: Annotated[Sorted, typer.Option("--sort", help="By what; most and oldest first.")] = Sorted.NAME,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh each second; keys sort and filter.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="As last written to the store; contact nothing.")
    ] = False,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """Show nodes, their requests and prices, and pending pods."""
    from htas.cli import top as present
    from htas.cli.tables import print_lines, show
    from htas.documents.nodes import NodeLine

    with exit_on_error():
        if form is not Export.TABLE and (watch or recorded):
            raise InputError("--output: lines are of the present alone; leave out --watch and --recorded")
        asked = server_at(server, token_file, ca)
        if asked is not None and recorded:
            raise InputError("--recorded: contacts nothing; leave out --server")
        if recorded:
            show(present.recorded_view(configured(config)))
            return
        look = present.asking(asked, sort) if asked is not None else present.looking(configured(config), sort)
        if form is Export.TABLE:
            present.top(look, watch, sort)
        else:
            found = look()
            print_lines(found.lines if found is not None else (), NodeLine, form)


def cost(
    config: Config = None,
    by: Annotated[CostBy, typer.Option("--by", help="What to split the sum by.")] = CostBy.GROUP,
    against: Annotated[
        str | None,
        typer.Option("--against", help='Compared with: "3 m1.large", "homogeneous [FLAVOUR]", "peak [FLAVOUR]".'),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="From an instant or day on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Until before an instant or day.")] = None,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """Show what was spent, by flavour, namespace, owner or day."""
    from htas.cli import cost as costs
    from htas.cli.history import note_unshipped
    from htas.cli.tables import print_lines, show
    from htas.documents.asking import said_in
    from htas.documents.costs import CostLine, CostReport, cost_lines, cost_report
    from htas.profiler.accounts import Window

    with exit_on_error():
        window = Window(_instant(since, "--since", 0.0), _instant(until, "--until", math.inf))
        if window.since >= window.until:
            raise InputError("--since: is not before --until; there is nothing between them")
        if against is not None and form is not Export.TABLE:
            raise InputError("--against: is printed under a table; leave out --output")
        asked = server_at(server, token_file, ca)
        if asked is not None:
            report = asked.get(
                "/costs", CostReport, by=by.value, against=against, since=window.since, until=window.until
            )
        else:
            loaded = configured(config)
            note_unshipped(loaded)
            found = costs.read_books(loaded, window)
            with said_in("--against"), costs.shown_progress() as progress:
                report = cost_report(found, by, against, progress)
        if form is Export.TABLE:
            show(costs.cost_view(report))
        else:
            print_lines(cost_lines(report), CostLine, form)


def history(
    config: Config = None,
    verb: Annotated[
        str | None,
        typer.Option("--verb", help=f"Only this: {', '.join(Action)}."),
    ] = None,
    binds: Annotated[bool, typer.Option("--binds", help="In the table, too: they are most of all.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, help="Of the newest so many cycles.")] = 100,
    since: Annotated[str | None, typer.Option("--since", help="Only from an instant on (ISO 8601).")] = None,
    node: Annotated[str | None, typer.Option("--node", help="What the profiler wrote of one node instead.")] = None,
    cycles: Annotated[bool, typer.Option("--cycles", help="With csv or jsonl: one line a cycle instead.")] = False,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """List decisions: when, what, why, and what each saved."""
    from htas.cli import history as past
    from htas.cli.tables import print_lines, show
    from htas.documents.history import CycleLine, EntryLine, entry_lines, known_verb

    with exit_on_error():
        start, asked = _instant(since, "--since", 0.0), server_at(server, token_file, ca)
        if node is not None:
            if form is not Export.TABLE:
                raise InputError("--node: prints a table; leave out --output")
            if asked is not None:
                raise InputError("--node: is read from the store; leave out --server")
            show(past.node_view(configured(config), node))
            return
        source = past.Recorded(configured(config)) if asked is None else past.DaemonPast(asked)
        if cycles:
            rows = source.cycles(limit, start)
            print_lines(rows, CycleLine, Export.JSONL if form is Export.TABLE else form)
            return
        found = source.history(known_verb(verb), limit, start)
        if form is Export.TABLE:
            show(past.history_view(found.entries, found.currency, found.now, with_binds=binds or verb == "bind"))
        else:
            print_lines(entry_lines(found.entries), EntryLine, form)


def replay(
    record: Annotated[int, typer.Argument(min=1, max=10**15, help="A cycle's number.")],
    config: Config = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """Plan a recorded cycle again, offline, and show the differences."""
    from htas.cli import history as past

    with exit_on_error():
        asked: DaemonClient | None = server_at(server, token_file, ca)
        source = past.Recorded(configured(config)) if asked is None else past.DaemonPast(asked)
        found = source.replay(record)
        say(past.replay_view(found))
    if found.differences:
        raise typer.Exit(1)


def _instant(text: str | None, option: str, default: float) -> float:
    return instant_of(text, option) if text is not None else default
