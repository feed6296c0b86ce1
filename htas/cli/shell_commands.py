"""`htas completion` and `htas man`: what a shell and a reader of manuals want."""

from __future__ import annotations

from typing import Annotated

import typer

from htas.cli.forms import Shell


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that is to complete.")]) -> None:
    """Print the completion script for a shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # there, but not in its __all__

    typer.echo(get_completion_script(prog_name="htas", complete_var="_HTAS_COMPLETE", shell=shell.value))


def man() -> None:
    """Print the manual: htas man > ~/.local/share/man/man1/htas.1"""
    from htas.cli.main import app
    from htas.cli.manual import man_page

    typer.echo(man_page(app), nl=False)
