"""How `htas --help` is arranged: commands in groups, each group with an example."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Look", "htas explain pod default/web-1", ("top", "explain", "history", "ui")),
    ("Plan", "htas plan --from dump.json", ("plan", "optimize", "replay", "check")),
    ("Money", "htas simulate --from dump.json --flavours prices.yaml", ("simulate", "cost", "flavours")),
    ("Operate", "htas approve --list", ("run", "approve", "migrate", "store", "adopt", "handback", "agent")),
    ("Develop", "htas demo --hours 4", ("demo", "sandbox", "completion", "man")),
)
"""(title, example, commands) of each group, in the order of the help."""


class PlainCommand(TyperCommand):
    """A command whose help shows no type after a switch."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands whose help shows no type after a switch."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def arrange(app: typer.Typer) -> None:
    """Put every command of `app` into its group. Raises KeyError for one without a group."""
    panels = {name: f"{title} · {example}" for title, example, names in GROUPS for name in names}
    order = {name: i for i, name in enumerate(panels)}

    def name_of(command: Any) -> str:
        return str(command.name or getattr(command.callback, "__name__", ""))

    for registered in (app.registered_commands, app.registered_groups):
        for each in registered:
            each.rich_help_panel = panels[name_of(each)]
        registered.sort(key=lambda each: order[name_of(each)])
    for typed in (app, *(group.typer_instance for group in app.registered_groups)):
        if typed is not None:
            typed.info.cls = PlainGroup
            for command in typed.registered_commands:
                command.cls = PlainCommand


def _without_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params
