"""`htas approve`: what waits for a word in mode approve, and the word."""

from __future__ import annotations

from typing import Annotated

import typer

from htas.cli.console import InputError, exit_on_error
from htas.cli.daemon_client import Authority, ServerUrl, TokenFile
from htas.cli.options import Config


def approve(
    ids: Annotated[list[str] | None, typer.Argument(help="What is approved, by its id as --list has it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that waits now.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Say no instead.")] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="What waits, and what was said of late; says nothing.")
    ] = False,
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
            raise InputError("--list: says nothing; leave out ids, --all and --reject")
        if not listed and bool(chosen) == everything:
            raise InputError("name what is meant by its id (htas approve --list), or write --all")
        asked = asked_server(config, server, token_file, ca)
        if listed:
            found = asked.get("/approvals", ApprovalsReport)
        else:
            word = Word(Verdict.REJECT if reject else Verdict.APPROVE, chosen, everything)
            found = asked.post("/approvals", word, ApprovalsReport)
        show(approvals_view(found))
