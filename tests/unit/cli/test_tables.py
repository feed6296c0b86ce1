"""Tables show what tenants and servers wrote as it stands."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from htas.cli.tables import table


def shown(*cells: str) -> str:
    console = Console(width=120, file=StringIO(), force_terminal=True, highlight=False, color_system=None)
    view = table("name", "why")
    view.add_row(*cells)
    with console.capture() as captured:
        console.print(view)
    return captured.get()


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("web", "web", id="a plain name"),
        pytest.param("[/red]", "[/red]", id="a closing tag, which was an error and no table at all"),
        pytest.param("[bold]x[/bold]", "[bold]x[/bold]", id="markup"),
        pytest.param("[link=https://example.com]pay here[/link]", "[link=https://example.com]pay here[/link]", id="a link"),
        pytest.param("a\x1b[2Jb", r"a\x1b[2Jb", id="what clears the screen"),
        pytest.param("a\x1b]0;title\x07b", r"a\x1b]0;title\x07b", id="what sets the window's title"),
        pytest.param("a\x9b31mb", r"a\x9b31mb", id="the same in one byte"),
        pytest.param("a\rb", r"a\x0db", id="what writes over the line"),
        pytest.param("Größe 机", "Größe 机", id="letters of all the world"),
    ],
)  # fmt: skip
def test_words_are_shown_as_they_stand(written: str, want: str) -> None:
    for line in (shown(written, "x"), shown("x", written)):
        assert want in line
        assert "\x1b" not in line.replace(want, "")
