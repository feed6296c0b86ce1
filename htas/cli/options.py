"""Options that many commands have, and where a configuration is found that no option names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htas.cli.console import InputError, err

if TYPE_CHECKING:  # pydantic is loaded by commands that read a configuration, not by their help
    from htas.config.loader import Loaded

VARIABLE = "HTAS_CONFIG"
PLACES = ("htas.yaml", "config/htas.yaml", "~/.config/htas/htas.yaml", "/etc/htas/htas.yaml")
"""Where a configuration is looked for, in this order: here, in a checkout, at home, on a host or in the chart's pod."""

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help=f"The configuration; else ${VARIABLE}, else one of those that htas --help lists."
    ),
]
Dump = Annotated[
    Path | None,
    typer.Option(
        "--from", help="A dump: kubectl get nodes,pods,… -A -o json (.gz too; -: stdin). Else the cluster now."
    ),
]
At = Annotated[str | None, typer.Option("--at", help="The dump's present (ISO 8601); else the latest instant in it.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="The flavour of nodes without a label for it: 'worker-*=m1.large'; repeatable."),
]
Steady = Annotated[
    bool, typer.Option("--steady", help="As if the cluster had been like this long enough for every scale-down rule.")
]


def configured(path: Path | None) -> Loaded:
    """The configuration of a command. Which one was found is told on stderr, where nobody named it on the command line.

    Raises InputError where there is none, ConfigurationError where there is something wrong with it.
    """
    from htas.config.loader import load_configuration

    if path is None:
        path = found()
    if path is None:
        raise InputError(
            f"--config: name a configuration, or set {VARIABLE}; there is none of {', '.join(PLACES)} either"
        )
    return load_configuration(path)


def found() -> Path | None:
    """The configuration that a command reads which nobody has named one, if there is one: told on stderr."""
    named = os.environ.get(VARIABLE)
    files = [Path(named)] if named else [file for place in PLACES if (file := Path(place).expanduser()).is_file()]
    if not files:
        return None
    err.print(f"configuration: {files[0]}", style="dim", markup=False, soft_wrap=True)
    return files[0]
