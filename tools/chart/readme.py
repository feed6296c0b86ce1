"""The chart's README: prose by hand, and between two marks a table of every value, from the comments of values.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

BEGIN, END = "<!-- values: made by `make chart` from values.yaml -->", "<!-- end of values -->"
WHOLE = ("config", "flavours", "resources", "affinity", "podSecurityContext", "securityContext")
"""Mappings that are one value to their reader: what is in them is told elsewhere."""


@dataclass(frozen=True, slots=True)
class Value:
    """A key of values.yaml as a row of the table."""

    key: str
    default: str
    comment: str


class UndescribedError(Exception):
    """A value without a comment."""


def with_values(readme: str, values: str) -> str:
    """The README with its table renewed; raises UndescribedError naming values without a comment."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise UndescribedError(f"the README has no place for the table: {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{table_of(values)}{END}{tail}"


def table_of(values: str) -> str:
    rows = list(values_of(values))
    silent = [row.key for row in rows if not row.comment]
    if silent:
        raise UndescribedError(f"without a comment in values.yaml: {', '.join(silent)}")
    lines = [f"| `{row.key}` | {_cell(row.default)} | {_cell(row.comment)} |\n" for row in rows]
    return "| value | default | what it is |\n|---|---|---|\n" + "".join(lines)


def values_of(text: str) -> Iterator[Value]:
    """Every value, in the file's order."""
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    yield from _values(root, text, "")


def _values(mapping: yaml.MappingNode, text: str, prefix: str) -> Iterator[Value]:
    lines = text.splitlines()
    for key, node in mapping.value:
        name = f"{prefix}{key.value}"
        if isinstance(node, yaml.MappingNode) and not node.flow_style and name not in WHOLE:
            yield from _values(node, text, f"{name}.")
        else:
            comment = _beside(lines[key.start_mark.line]) or _above(lines, key.start_mark.line)
            yield Value(name, _default(node, text), comment)


def _default(node: yaml.Node, text: str) -> str:
    """As it is written, where that is short."""
    written = text[node.start_mark.index : node.end_mark.index].strip()
    is_short = isinstance(node, yaml.ScalarNode) or node.flow_style
    return f"`{written}`" if is_short else "see values.yaml"


def _beside(line: str) -> str:
    return line.partition(" # ")[2].strip()


def _above(lines: list[str], line: int) -> str:
    """The comment lines just above, joined."""
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("# "):
        line -= 1
        found.insert(0, lines[line].lstrip().removeprefix("# ").strip())
    return " ".join(found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
