"""What the commands say of themselves, as a manual: for `htas man` a page of man, for the site a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer
from typer.main import get_command

import htas
from htas.cli.help import GROUPS

ENVIRONMENT = (
    ("HTAS_CONFIG", "The configuration, where --config is not given."),
    ("HTAS_SERVER", "The daemon to use, where --server is not given."),
    ("HTAS_TOKEN_FILE", "The token for that daemon, where --token-file is not given."),
    ("KUBECONFIG", "The cluster, where kubernetes.kubeconfig is not configured."),
)


@dataclass(frozen=True, slots=True)
class ManualPage:
    """A command with what it takes: each a form such as `--at <str>`, and what it means."""

    name: str
    summary: str
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]

    @property
    def usage(self) -> str:
        words = [form for form, _ in self.arguments]
        return " ".join([self.name, *words, *(["[options]"] if self.options else [])])


def entries(app: typer.Typer) -> Iterator[ManualPage]:
    """Every command that does something, in the order of the help; groups only hold others."""
    yield from _entries(get_command(app), "htas")


def _entries(command: Any, name: str) -> Iterator[ManualPage]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for word, each in inner.items():
            yield from _entries(each, f"{name} {word}")
        return
    context = command.make_context(name, [], resilient_parsing=True)
    arguments = (each for each in command.params if each.param_type_name == "argument")
    options = (each for each in command.params if each.param_type_name == "option")
    yield ManualPage(
        name,
        " ".join((command.help or "").split()),
        tuple((each.name.upper(), each.help or "") for each in arguments),
        tuple(record for each in options if (record := each.get_help_record(context)) is not None),
    )


def man_page(app: typer.Typer) -> str:
    """htas(1), in roff (groff_man(7))."""
    command = get_command(app)
    lines = [
        f'.TH HTAS 1 "" "htas {htas.__version__}" "HTAS"',
        ".SH NAME",
        r"htas \- cost-aware autoscaler, batch scheduler and rescheduler for Kubernetes",
        ".SH SYNOPSIS",
        ".B htas",
        ".I command",
        r"[\fIoptions\fR]",
        ".SH DESCRIPTION",
        _roff(command.help or ""),
        ".PP",
        "As a plugin of kubectl it is",
        ".B kubectl htas",
        "with the same commands.",
        ".SH COMMANDS",
    ]
    for entry in entries(app):
        lines += [f".SS {_roff(entry.usage)}", _roff(entry.summary)]
        for form, said in (*entry.arguments, *entry.options):
            lines += [".TP", rf"\fB{_roff(form)}\fR", _roff(said) or r"\&"]
    lines += [
        ".SH EXAMPLES",
        *(line for title, example, _ in GROUPS for line in (".TP", _roff(example), f"{title}.")),
        ".SH ENVIRONMENT",
        *(line for name, said in ENVIRONMENT for line in (".TP", rf"\fB{name}\fR", _roff(said))),
        ".SH FILES",
        _roff(command.epilog or ""),
        ".SH EXIT STATUS",
        "0: done. 1: the operation failed. 2: bad usage or bad input.",
    ]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text as roff takes it for text: no line of it is a request, and a hyphen stays one."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in escaped.splitlines())
