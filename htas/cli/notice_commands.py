"""`htas notices`: the command."""

from __future__ import annotations

import typer

from htas.cli.console import err as stderr
from htas.cli.console import exit_on_error, labelled
from htas.cli.console import out as stdout
from htas.cli.options import Config, configured

app = typer.Typer(
    help="Test the receivers of notices (limits, failed launches and drains, budget).", no_args_is_help=True
)


@app.command("test")
def send_a_test(config: Config = None) -> None:
    """Send each configured receiver a test notice now, and print the result."""
    from htas.cli.notices import tried

    with exit_on_error():
        answers = tried(configured(config))
    for name, problem in answers:
        if problem:
            stderr.print(labelled(name, problem), soft_wrap=True)
        else:
            stdout.print(f"{name}: delivered", markup=False)
    if any(problem for _, problem in answers):
        raise typer.Exit(1)
