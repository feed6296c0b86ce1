"""What YAML from outside may come to: a few lines of aliases to aliases, or of brackets, fill any memory.

Configurations, price files, dumps and status documents are read within the same bounds. They are kept on the parser's
events, before anything is built: libyaml composes recursively in C, where too many brackets end the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

MOST_VALUES = 200_000
"""So many values may stand in for aliases, in a file: twice what a ConfigMap can hold without any."""
MOST_CHARACTERS = 64 * 2**20
"""So much text may stand in for aliases."""
MOST_WRITTEN = 5_000_000
"""So many values may be written: they take some 3 GB until they are read. JSON needs a tenth of that."""
LONGEST_NUMBER = 10_000
"""Digits. YAML 1.1 reads 1:59:59 in base 60, in a time that grows with the square of its length."""
_NUMBER = re.compile(r"[-+0-9.][0-9A-Fa-fxo_:.]*")
MOST_DEEP = 100
"""Kubernetes objects are nested some twenty deep, schemas of custom resources some fifty."""


class YamlBoundsError(Exception):
    """`why` says what is too much, in words that follow the file's name; `line` from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


class _Open:
    """A list or mapping that is not complete yet: how many values and characters it comes to, aliases written out."""

    __slots__ = ("anchor", "characters", "values")

    def __init__(self, anchor: str | None) -> None:
        self.anchor = anchor
        self.values = 1
        self.characters = 0


class Bounds:
    """Counts the events of one file, all its documents together. Raises YamlBoundsError once they are too many."""

    def __init__(self, most_values: int = MOST_VALUES) -> None:
        self._most_values = most_values
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[int, int]] = {}
        self._written = 0
        self._values = 0
        self._characters = 0

    def take(self, event: yaml.Event | None) -> None:
        """Count the next event."""
        line = event.start_mark.line + 1 if event is not None and event.start_mark is not None else 1
        if isinstance(event, yaml.AliasEvent):
            self._repeat(event.anchor, line)
        elif isinstance(event, yaml.ScalarEvent):
            if event.implicit[0] and len(event.value) > LONGEST_NUMBER and _NUMBER.fullmatch(event.value):
                raise YamlBoundsError(f"has a number of {len(event.value):,} digits", line)
            self._write(line)
            self._complete(event.anchor, 1, len(event.value))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._write(line)
            self._open.append(_Open(event.anchor))
            if len(self._open) > MOST_DEEP:
                raise YamlBoundsError(f"is nested too deeply: more than {MOST_DEEP} levels", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self._open.pop()
            self._complete(closed.anchor, closed.values, closed.characters)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}

    def _write(self, line: int) -> None:
        self._written += 1
        if self._written > MOST_WRITTEN:
            raise YamlBoundsError(f"holds more than {MOST_WRITTEN:,} values of YAML; JSON may hold more", line)

    def _repeat(self, anchor: str | None, line: int) -> None:
        """An alias stands for all of what it names; where that is not complete, it stands for itself."""
        if any(each.anchor == anchor for each in self._open):
            values, characters = self._most_values + 1, 0
        else:
            values, characters = self._anchors.get(anchor or "", (0, 0))  # an unknown one: the composer tells
        self._values += values
        self._characters += characters
        for is_beyond, most in (
            (self._values > self._most_values, f"{self._most_values:,} values"),
            (self._characters > MOST_CHARACTERS, f"{MOST_CHARACTERS // 2**20} MiB"),
        ):
            if is_beyond:
                what = f"comes to more than {most} once its aliases are written out; write fewer aliases"
                raise YamlBoundsError(what, line)
        self._complete(None, values, characters)

    def _complete(self, anchor: str | None, values: int, characters: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = values, characters
        if self._open:
            self._open[-1].values += values
            self._open[-1].characters += characters


def check(text: str | bytes, most_values: int = MOST_VALUES) -> None:
    """Raise YamlBoundsError where a text comes to too much; what is malformed is left to whoever reads it."""
    bounds, loader = Bounds(most_values), yaml.CSafeLoader(text)
    with _disposed(loader):
        try:
            while loader.check_event():
                bounds.take(loader.get_event())
        except yaml.YAMLError:
            return


@contextmanager
def _disposed(loader: yaml.CSafeLoader) -> Iterator[None]:
    try:
        yield
    finally:
        loader.dispose()


def load(text: str) -> Any:
    """A small document of plain values. Raises yaml.YAMLError and YamlBoundsError."""
    check(text)
    return yaml.load(text, Loader=yaml.CSafeLoader)
