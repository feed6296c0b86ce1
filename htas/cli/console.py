"""The two consoles and the exit codes: results go to stdout, everything said beside them to stderr.

All that a command prints goes through here: what a server, a cluster or a cloud wrote is shown, and nothing obeys it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from htas.cli.forms import Form
from htas.model.shown import literal, literal_json
from htas.ports import GivenError, HTASError

FAILED, BAD_INPUT = 1, 2

PIPE_COLUMNS = 160
"""Width of tables in a file or pipe, where nobody's window folds them."""


class LiteralConsole(Console):
    """Only its own styles and movements reach the terminal; control characters in words are written out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(literal(segment.text), segment.style)


out = LiteralConsole(highlight=False)
if not out.is_terminal:
    out.width = PIPE_COLUMNS
err = LiteralConsole(stderr=True, highlight=False)


class InputError(GivenError):
    """Something on the command line is wrong."""


def warn(text: str) -> None:
    """Say beside the results what is odd, and go on."""
    err.print(text, style="yellow", markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print lines as they are, without folding or styles."""
    typer.echo(literal(text))


def instant_of(text: str, option: str) -> float:
    """An instant given on the command line; without a time zone it is UTC."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option}: {text!r} is no instant; write it as 2026-01-31T12:00:00Z") from None
    return (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn what goes wrong into a message and an exit code: 2 for bad input, 1 for a failed operation."""
    try:
        yield
    except GivenError as error:
        for line in str(error).splitlines():
            err.print(labelled("error", line), soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from None
    except HTASError as error:
        err.print(labelled("error", str(error)), soft_wrap=True)
        raise typer.Exit(FAILED) from None


def labelled(label: str, text: str, style: str = "bold red") -> Text:
    """A line that begins with what it is. The text is no markup, whatever brackets and backslashes are in it: of a
    server's `\\[link=…]` a link was made.
    """
    return Text.assemble((label, style), " ", text)


def print_as(form: Form, view: Callable[[], RenderableType], document: Callable[[], object]) -> None:
    """Print a result as people or as programs read it."""
    match form:
        case Form.TABLE:
            out.print(view())
        case Form.JSON:
            typer.echo(literal_json(msgspec.json.format(msgspec.json.encode(document()), indent=2).decode()))
        case Form.YAML:
            import yaml  # wanted by this form alone

            typer.echo(yaml.safe_dump(document(), sort_keys=False), nl=False)
