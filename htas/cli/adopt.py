"""`htas adopt`: takes machines that the configuration has no place for into a group."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from htas.cli.console import InputError, exit_on_error, say
from htas.cli.options import Config, configured

Names = Annotated[list[str] | None, typer.Argument(help="Nodes or servers; else every orphan.", show_default=False)]
OldCluster = Annotated[
    str | None, typer.Option("--cluster", help="Also machines of this cluster of HTAS, as `cluster` was called before.")
]


def adopt(
    group: Annotated[str, typer.Option("--group", help="The group that they are of from now on.")],
    names: Names = None,
    config: Config = None,
    cluster: OldCluster = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="HTAS's own.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print which they are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take orphans (machines of a removed group or an old cluster name) into a group."""
    from htas.daemon.http.audit import note_command
    from htas.daemon.orphans import adopted
    from htas.model.outcomes import OutcomeStatus

    with exit_on_error():
        loaded = configured(config)
        if loaded.sandbox is not None:
            raise InputError("provider: is the sandbox, whose machines end with it; there is nothing to adopt")
        if loaded.policy.group(group) is None:
            known = ", ".join(each.name for each in loaded.policy.groups)
            raise InputError(f"--group {group}: no such group in {loaded.path}; there are {known}")
        if not dry_run and not yes:
            if not sys.stdin.isatty():
                raise InputError("--yes: required where no terminal can ask for confirmation")
            them, _ = adopted(loaded, group, cluster, names or (), namespace, dry_run=True)
            for each in them:
                say(each.says)
            if not typer.confirm(f"Take {len(them)} machines into group {group}?", err=True):
                raise InputError("nothing was done")
        if not dry_run:
            note_command(loaded, "htas adopt", f"--group {group}")
        them, outcomes = adopted(loaded, group, cluster, names or (), namespace, dry_run=dry_run)
        for each in them if dry_run else ():
            say(f"would adopt: {each.says}")
        for outcome in outcomes:
            say(f"{outcome.action} {outcome.status}: machine {outcome.subject} {outcome.message}")
        if not them:
            say("there is no orphan to adopt")
    if any(outcome.status is not OutcomeStatus.DONE for outcome in outcomes):
        raise typer.Exit(1)
