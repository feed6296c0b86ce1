"""`htas approve`: what waits for a word in mode approve, and the word."""

from __future__ import annotations

from typing import Annotated

import typer

from htas.cli.console import InputError, exit_on_error
from htas.cli.daemon_client import Authority, ServerUrl, TokenFile
from htas.cli.options import Config


def approve(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids to approve, as --list prints them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pending proposals.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject instead.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List pending and recent proposals; change nothing.")] = False,
    config: Config = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """With mode approve: list, approve or reject what disrupts running pods."""
    from htas.cli.approve import approvals_view, asked_server
    from htas.cli.tables import show
    from htas.documents.approvals import ApprovalsReport, Verdict, Word

    with exit_on_error():
        chosen = tuple(ids or ())
        if listed and (chosen or everything or reject):
            raise InputError("--list: changes nothing; leave out ids, --all and --reject")
        if not listed and bool(chosen) == everything:
            raise InputError("name ids (htas approve --list prints them), or write --all")
        asked = asked_server(config, server, token_file, ca)
        if listed:
            found = asked.get("/approvals", ApprovalsReport)
        else:
            word = Word(Verdict.REJECT if reject else Verdict.APPROVE, chosen, everything)
            found = asked.post("/approvals", word, ApprovalsReport)
        show(approvals_view(found))
