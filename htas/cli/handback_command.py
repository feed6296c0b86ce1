"""`htas handback`: the command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from htas.cli.adopt import OldCluster
from htas.cli.console import InputError, exit_on_error
from htas.cli.console import out as stdout
from htas.cli.options import Config, configured


def handback(
    config: Config,
    give_all: Annotated[
        bool,
        typer.Option("--all", help="Drain and delete every machine that HTAS launched, within disruption budgets."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the machines without HTAS: their nodes lose HTAS's labels.")
    ] = False,
    orphans: Annotated[
        bool,
        typer.Option("--orphans", help="Drain and delete only the machines that match no node group."),
    ] = False,
    names: Annotated[
        list[str] | None, typer.Argument(help="Of --orphans: nodes or servers; else all.", show_default=False)
    ] = None,
    cluster: OldCluster = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="HTAS's own; else kubernetes.namespace, else this context's."),
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="When to give up, such as 15m.")] = "15m",
    without_lease: Annotated[
        bool, typer.Option("--without-lease", help="Go on where no lease is: no daemon runs.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Before an uninstall: drain and delete every machine, or keep them without HTAS."""
    from htas.cli.handback import Wish, handed_back, left_view, span_of
    from htas.daemon.handing_back import Which

    with exit_on_error():
        if [give_all, keep, orphans].count(True) != 1:
            raise InputError("name one of --all, --keep and --orphans")
        if (names or cluster) and not orphans:
            raise InputError("names of machines and --cluster go with --orphans alone")
        which = Which(cluster, tuple(names or ())) if orphans else None
        wish = Wish(keep, namespace, span_of(timeout, "--timeout"), not without_lease, which)
        loaded = configured(config)
        if not yes and not sys.stdin.isatty():
            raise InputError("--yes: required where no terminal can ask for confirmation")
        if not yes and not typer.confirm(wish.question(loaded.policy.cluster), err=True):
            raise InputError("nothing was done")
        left = handed_back(loaded, wish)
    if left:
        stdout.print(left_view(left))
        raise typer.Exit(1)
