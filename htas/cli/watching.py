"""`htas top --watch` on a terminal: keys that sort, filter and scroll the nodes."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from htas.cli.console import out
from htas.documents.forms import Sorted
from htas.documents.nodes import ORDER, NodeLine, PresentCluster

KEYS = "s sort · / filter · r reasons · ↑↓ scroll · q quit"
UP, DOWN, PAGE_UP, PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"
HEAD_LINES = 8
"""Lines of the terminal that are not nodes."""

Draw = Callable[[PresentCluster, bool], RenderableType]
"""Draws the present; the switch shows the reasons."""


@dataclass(frozen=True, slots=True)
class Watching:
    """What the reader chose. `first` is the node that the list begins with."""

    sort: Sorted
    text: str = ""
    is_typing: bool = False
    has_reasons: bool = True
    first: int = 0
    is_over: bool = False

    def pressed(self, key: str, lines: Sequence[NodeLine], page: int) -> Watching:
        """The choice after a key; of `lines` so many as `page` fit the terminal."""
        if key == "\x03":
            return replace(self, is_over=True)
        after = self._typed(key) if self.is_typing else self._commanded(key, page)
        return replace(after, first=max(0, min(after.first, len(after._found(lines)) - page)))

    def _typed(self, key: str) -> Watching:
        match key:
            case "\r" | "\n":
                return replace(self, is_typing=False)
            case "\x1b":
                return replace(self, is_typing=False, text="")
            case "\x7f" | "\b":
                return replace(self, text=self.text[:-1], first=0)
            case _:
                return replace(self, text=self.text + key, first=0) if key.isprintable() else self

    def _commanded(self, key: str, page: int) -> Watching:
        steps = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -page, PAGE_DOWN: page}
        match key:
            case "q":
                return replace(self, is_over=True)
            case "s":
                sorts = list(Sorted)
                return replace(self, sort=sorts[(sorts.index(self.sort) + 1) % len(sorts)], first=0)
            case "/":
                return replace(self, is_typing=True)
            case "\x1b":
                return replace(self, text="", first=0)
            case "r":
                return replace(self, has_reasons=not self.has_reasons)
            case _:
                return replace(self, first=self.first + steps.get(key, 0))

    def chosen(self, lines: Sequence[NodeLine], page: int) -> list[NodeLine]:
        """The nodes to show."""
        found = sorted(self._found(lines), key=ORDER[self.sort])
        return found[self.first : self.first + page]

    def _found(self, lines: Sequence[NodeLine]) -> list[NodeLine]:
        return [line for line in lines if self._takes(line)]

    def _takes(self, line: NodeLine) -> bool:
        words = (line.node, line.group, line.flavour, line.zone, line.state)
        return any(self.text.lower() in word.lower() for word in words)

    @property
    def footer(self) -> str:
        chosen = f"sorted by {self.sort.value}"
        if self.is_typing:
            return f"filter: {self.text}▏ (Enter keeps it, Esc clears it)"
        return f"{chosen}, filter {self.text!r} · {KEYS}" if self.text else f"{chosen} · {KEYS}"


def watch(look: Callable[[], PresentCluster | None], draw: Draw, sort: Sorted, refresh_s: float) -> None:
    """Draw the present until the reader ends it; what was last seen is drawn at once after each key."""
    choice, seen = Watching(sort), look()
    with _keys() as keys, Live(_drawn(seen, draw, choice), console=out, auto_refresh=False, screen=True) as live:
        while not choice.is_over:
            key = keys(refresh_s)
            if key:
                choice = choice.pressed(key, seen.lines if seen is not None else (), _page())
            else:
                seen = look()
            live.update(_drawn(seen, draw, choice), refresh=True)


def _page() -> int:
    return max(1, out.height - HEAD_LINES)


def _drawn(seen: PresentCluster | None, draw: Draw, choice: Watching) -> RenderableType:
    if seen is None:
        return Text("nothing has been recorded yet: start the daemon with htas run")
    lines = choice.chosen(seen.lines, _page())
    shown = msgspec.structs.replace(seen, lines=lines)
    more = f"{len(lines)} of {len(seen.lines)} nodes · " if len(lines) < len(seen.lines) else ""
    footer = Text(more + choice.footer, style="dim", overflow="ellipsis", no_wrap=True)
    return Group(draw(shown, choice.has_reasons), footer)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Reads one key, or "" after so many seconds; the terminal is as it was afterwards."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)

    def read(timeout_s: float) -> str:
        if not select.select([number], [], [], timeout_s)[0]:
            return ""
        return os.read(number, 16).decode(errors="replace")

    try:
        yield read
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
