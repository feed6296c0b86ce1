"""`htas handback`: what an operator says before HTAS is uninstalled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from htas.cli.console import InputError, say
from htas.cli.tables import LiteralTable
from htas.config.loader import Loaded
from htas.config.values import seconds
from htas.daemon.handing_back import Handback, Which
from htas.daemon.http.audit import note_command
from htas.execution.handing_back import Left


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. `timeout_s` in seconds; `namespace` None: as configured."""

    keeps: bool
    namespace: str | None
    timeout_s: float
    needs_lease: bool
    orphans: Which | None = None

    def question(self, cluster: str) -> str:
        if self.orphans is not None:
            return f"Evict the pods on the orphans of cluster {cluster}, and delete those machines?"
        if self.keeps:
            return f"Keep every machine of cluster {cluster} without HTAS? They run on, billed, and are never deleted."
        return f"Evict the pods on every machine that HTAS launched for cluster {cluster}, and delete them?"


def span_of(text: str, option: str) -> float:
    """Seconds of a duration given on the command line."""
    try:
        return seconds(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def handed_back(loaded: Loaded, wish: Wish) -> Sequence[Left]:
    """Do it, telling each step; what is left. Raises InputError on a sandbox, whose machines end with it."""
    if loaded.sandbox is not None:
        raise InputError("provider: is the sandbox, whose machines end with it; there is nothing to hand back")
    what = "--orphans" if wish.orphans is not None else "--keep" if wish.keeps else "--all"
    note_command(loaded, "htas handback", what)
    running = Handback(loaded, say, wish.timeout_s, wish.namespace, wish.needs_lease, orphans=wish.orphans)
    left = running.keep() if wish.keeps else running.give_back()
    if not left:
        if wish.orphans is not None:
            say("done: none of those orphans is left")
            return left
        say("done: " + ("HTAS no longer manages the machines" if wish.keeps else "no machine of HTAS is left"))
    return left


def left_view(left: Sequence[Left]) -> Table:
    """What could not be handed back, and why."""
    table = LiteralTable(title="not handed back", title_justify="left")
    table.add_column("machine")
    table.add_column("why")
    for each in sorted(left, key=lambda each: each.machine):
        table.add_row(each.machine, each.why)
    return table
