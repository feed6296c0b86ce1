"""`htas store`: the commands."""

from __future__ import annotations

import typer

from htas.cli.console import exit_on_error, say
from htas.cli.options import Config, configured

app = typer.Typer(help="Make, bring up to date and check the store.", no_args_is_help=True)


@app.command("init")
def init_store(config: Config = None) -> None:
    """Make what the configured store needs: keyspace and tables, or a file. What is there already is left alone."""
    from htas.cli import store  # it loads the stores, which most commands need not

    with exit_on_error():
        say(store.init(configured(config)))


@app.command("migrate")
def migrate_store(config: Config = None) -> None:
    """Bring a store of an older htas up to date; end every daemon that uses it first."""
    from htas.cli import store  # it loads the stores, which most commands need not

    with exit_on_error():
        say(store.migrate(configured(config)))


@app.command("check")
def check_store(config: Config = None) -> None:
    """Whether the store can be reached, read and written, and of which version it is. The schema is not changed."""
    from htas.cli import store  # it loads the stores, which most commands need not

    with exit_on_error():
        say(store.check(configured(config)))
