"""docs/fidelity.md: every file, test and command that it names exists, and its words are the page's own."""

import ast
import functools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command

from htas.cli.main import app

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "fidelity.md"
COMMANDS = set(get_command(app).commands)  # type: ignore[attr-defined]  # a group has them, its protocol does not say so
HOW = {"As written", "By a setting", "Otherwise, and why", "Measured"}
DOCUMENTS = {
    "000": 25,
    "001": 18,
    "002": 30,
    "003": 8,
    "004": 80,
}  # rows at least, of the 135 mechanisms an audit counted


@dataclass(frozen=True)
class Row:
    document: str
    how: str
    where: str
    says: str
    shown: str


def rows_of(text: str) -> list[Row]:
    """The items of the page's lists, below a document's heading and one of `HOW`. What shows an item ends it, in brackets."""
    found = []
    document = how = ""
    for block in re.split(r"\n(?=- |#)", text):
        line = " ".join(block.split())
        if heading := re.match(r"## (\d{3}): ", line):
            document, how = heading[1], ""
        elif line.startswith("### "):
            how = line.removeprefix("### ")
        elif document and line.startswith("- "):
            parts = re.fullmatch(r"- \*\*(.+?)\*\*: (.+) \(((?:`[^`]+`(?:, )?)+)\)", line)
            assert parts, f"no place, text or proof: {line}"
            found.append(Row(document, how, *parts.groups()))
    return found


ROWS = rows_of(PAGE.read_text())


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    names = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    takes_a_contract = any(
        isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names) for node in tree.body
    )
    return frozenset(names | ({"*"} if names or takes_a_contract else set()))


def missing(proof: str) -> str:
    """What is not there of a test (`path::name`) or of a command; empty if all is."""
    if "::" in proof:
        path, name = proof.split("::")
        file = ROOT / "tests" / path
        return "" if file.is_file() and name in names_in(file) else proof
    words = proof.split()
    if words[:2] == ["python", "-m"]:
        module = ROOT / Path(*words[2].split("."))
        return "" if module.with_suffix(".py").is_file() or (module / "__main__.py").is_file() else proof
    return "" if words[0] == "htas" and words[1] in COMMANDS else proof


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.document} {row.where}: {row.says}"[:70])
def test_what_shows_a_line_exists(row: Row) -> None:
    proofs = re.findall(r"`([^`]+)`", row.shown)
    assert [proof for proof in proofs if missing(proof)] == []
    assert row.how in HOW


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"(?<![\w/])(?:htas|tools|config|docs)/[\w./-]*\w", PAGE.read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_document_has_all_its_lines() -> None:
    counted = Counter(row.document for row in ROWS)
    assert {document: counted[document] for document, least in DOCUMENTS.items() if counted[document] < least} == {}
