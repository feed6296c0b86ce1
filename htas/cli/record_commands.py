"""The commands on what a daemon sees and has done: top, cost, history and replay."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from htas.cli.console import InputError, exit_on_error, instant_of
from htas.cli.forms import CostBy, Export, Sorted
from htas.cli.options import Config, configured


def top(
    config: Config = None,
    sort: Annotated[Sorted, typer.Option("--sort", help="By what; most and oldest first.")] = Sorted.NAME,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on looking.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="As last written to the store; asks nobody.")] = False,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
) -> None:
    """The cluster now (a sandbox within a daemon: as that last saw it): nodes, what is asked of them, queue, price."""
    from htas.cli import top as present
    from htas.cli.tables import print_lines, show

    with exit_on_error():
        if form is not Export.TABLE and (watch or recorded):
            raise InputError("--output: lines are of the present alone; leave out --watch and --recorded")
        loaded = configured(config)
        if recorded:
            show(present.recorded_view(loaded))
        elif form is Export.TABLE:
            present.top(loaded, sort, watch)
        else:
            print_lines(present.node_lines(loaded, sort), present.NodeLine, form)


def cost(
    config: Config = None,
    by: Annotated[CostBy, typer.Option("--by", help="What to split the sum by.")] = CostBy.GROUP,
    against: Annotated[
        str | None,
        typer.Option("--against", help='Beside another way: "3 m1.large", "homogeneous [FLAVOUR]", "peak [FLAVOUR]".'),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="From an instant or day on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Until before an instant or day.")] = None,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
) -> None:
    """What was spent, exactly: on what, or for whom."""
    from htas.cli import cost as costs
    from htas.cli.history import note_unshipped
    from htas.cli.tables import print_lines, show
    from htas.profiler.accounts import Window

    with exit_on_error():
        window = Window(_instant(since, "--since", 0.0), _instant(until, "--until", math.inf))
        if window.since >= window.until:
            raise InputError("--since: is not before --until; there is nothing between them")
        if against is not None and form is not Export.TABLE:
            raise InputError("--against: is told beside a table; leave out --output")
        loaded = configured(config)
        note_unshipped(loaded)
        books = costs.books_of(loaded, window)
        if form is Export.TABLE:
            show(costs.cost_view(books, by, against))
        else:
            print_lines(costs.cost_lines(books, by), costs.CostLine, form)


def history(
    config: Config = None,
    verb: Annotated[
        str | None,
        typer.Option("--verb", help="Only this: launch, drain, release, bind, evict, moved, suggest, suggested …"),
    ] = None,
    binds: Annotated[bool, typer.Option("--binds", help="In the table, too: they are most of all.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, help="Of the newest so many cycles.")] = 100,
    since: Annotated[str | None, typer.Option("--since", help="Only from an instant on (ISO 8601).")] = None,
    node: Annotated[str | None, typer.Option("--node", help="What the profiler wrote of one node instead.")] = None,
    cycles: Annotated[bool, typer.Option("--cycles", help="With csv or jsonl: one line a cycle instead.")] = False,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
) -> None:
    """What was done when, why, and what it saved."""
    from htas.cli import history as past
    from htas.cli.tables import print_lines, show

    with exit_on_error():
        loaded, start = configured(config), _instant(since, "--since", 0.0)
        past.note_unshipped(loaded)
        if node is not None:
            if form is not Export.TABLE:
                raise InputError("--node: is told as a table; leave out --output")
            show(past.node_view(loaded, node))
        elif cycles:
            rows = past.cycle_lines(loaded, limit, start)
            print_lines(rows, past.CycleLine, Export.JSONL if form is Export.TABLE else form)
        else:
            found = past.history_entries(loaded, verb, limit, start)
            if form is Export.TABLE:
                show(past.history_view(found, loaded, with_binds=binds or verb == "bind"))
            else:
                print_lines(past.entry_lines(found), past.EntryLine, form)


def replay(
    record: Annotated[int, typer.Argument(min=1, max=10**15, help="A cycle's number.")],
    config: Config = None,
) -> None:
    """Plan a recorded cycle again, offline, and show what would be different now."""
    from htas.cli import history as past

    with exit_on_error():
        is_same = past.replay(configured(config), record)
    if not is_same:
        raise typer.Exit(1)


def _instant(text: str | None, option: str, default: float) -> float:
    return instant_of(text, option) if text is not None else default
