"""`htas store`: the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from htas.cli.console import exit_on_error, say
from htas.cli.options import Config, configured

app = typer.Typer(help="Create, check, back up and restore the store.", no_args_is_help=True)


@app.command("init")
def init_store(config: Config = None) -> None:
    """Make what the configured store needs: keyspace and tables, or a file. What is there already is left alone."""
    from htas.cli import store  # it loads the stores, which most commands need not

    with exit_on_error():
        say(store.init(configured(config)))


@app.command("check")
def check_store(config: Config = None) -> None:
    """Whether the store can be reached, read and written, and of which version it is. The schema is not changed."""
    from htas.cli import store  # it loads the stores, which most commands need not

    with exit_on_error():
        say(store.check(configured(config)))


Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)]


@app.command("backup")
def backup_store(file: Backup, config: Config = None) -> None:
    """Copy the store into one new file, while a daemon writes it, and print what is in it. Nothing is overwritten."""
    from htas.daemon import backups  # it loads the stores, which most commands need not

    with exit_on_error():
        say(backups.backup(configured(config), file))


WithoutLog = Annotated[
    bool,
    typer.Option(
        "--without-log",
        help="Take a file that a daemon had open although its log (-wal) is lost; what was written last is missing.",
    ),
]


@app.command("restore")
def restore_store(file: Backup, without_log: WithoutLog = False, config: Config = None) -> None:
    """Put a backup in the store's place; end every daemon that uses the store first. What was there is kept aside.

    The backup is checked first: made by htas store backup, or the file of a store that no daemon had open.

    The daemon that starts afterwards launches and deletes nothing for what the backup intended. It takes up machines
    that were launched since, and has the bills of those that came and went from the cloud's own usage.
    """
    from htas.daemon import backups  # it loads the stores, which most commands need not

    with exit_on_error():
        say(backups.restore(configured(config), file, without_log=without_log))
