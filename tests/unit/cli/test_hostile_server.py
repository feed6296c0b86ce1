"""What a server that is none, or a bad one, can do to those who ask it: be told as such, and nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from htas.cli.main import app
from htas.documents.approvals import ApprovalsReport
from htas.documents.costs import CostReport
from htas.documents.history import Cycles, Explained, HistoryReport, Replayed
from htas.documents.nodes import PresentCluster
from htas.model.plan import Plan
from tests.unit.cli.test_migrate import written

HOSTILE = "a\x1b[2Jb\x1b]8;;http://there\x07c\x9b31md\x7fe\u202etxt.f\u2066g\u2028h"
"""Clears the screen, makes a link, colours in one character, turns what follows round, and ends a line."""
FORBIDDEN = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u202e\u2066\u2028"} - {"\n"}
COMMANDS = [
    pytest.param(["approve", "--list"], ApprovalsReport, id="what waits for a word"),
    pytest.param(["approve", "--all"], ApprovalsReport, id="a word"),
    pytest.param(["plan"], Plan, id="a plan"),
    pytest.param(["plan", "-o", "json"], Plan, id="a plan for programs"),
    pytest.param(["plan", "-o", "yaml"], Plan, id="a plan as YAML"),
    pytest.param(["top"], PresentCluster, id="the cluster now"),
    pytest.param(["top", "-o", "csv"], PresentCluster, id="nodes as CSV"),
    pytest.param(["cost"], CostReport, id="what was spent"),
    pytest.param(["cost", "-o", "jsonl"], CostReport, id="that as lines of JSON"),
    pytest.param(["history"], HistoryReport, id="what was done"),
    pytest.param(["history", "-o", "csv"], HistoryReport, id="that as CSV"),
    pytest.param(["history", "--cycles"], Cycles, id="cycles"),
    pytest.param(["explain", "pod", "x"], Explained, id="why"),
    pytest.param(["replay", "7"], Replayed, id="a cycle planned again"),
]


class Liar(ThreadingHTTPServer):
    """Answers whatever is asked with one status and body."""

    status, body = 200, b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Liar

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def liar() -> Iterator[Liar]:
    server = Liar()
    yield server
    server.shutdown()
    server.server_close()


def asked(liar: Liar, arguments: list[str]) -> Result:
    said = CliRunner().invoke(app, [*arguments, "--server", liar.url])
    assert said.exception is None or isinstance(said.exception, SystemExit), said.exception
    return said


def document(kind: msgspec.inspect.Type, number: float) -> Any:
    """A document of a type with hostile words wherever words may be, and that number wherever a number may be."""
    match kind:
        case msgspec.inspect.StrType() | msgspec.inspect.AnyType():
            return HOSTILE
        case msgspec.inspect.IntType():
            return int(min(number, 2**62))
        case msgspec.inspect.FloatType():
            return number
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.EnumType():
            return next(iter(kind.cls)).value
        case msgspec.inspect.LiteralType():
            return kind.values[0]
        case msgspec.inspect.UnionType():
            return document(kind.types[0], number)
        case msgspec.inspect.StructType():
            tag = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
            return tag | {field.encode_name: document(field.type, number) for field in kind.fields}
        case msgspec.inspect.DictType():
            return {HOSTILE: document(kind.value_type, number)}
        case msgspec.inspect.TupleType():
            return [document(each, number) for each in kind.item_types]
        case msgspec.inspect.CollectionType():
            return [document(kind.item_type, number)]
    raise AssertionError(f"{kind}: how is one made?")


@pytest.mark.parametrize("number", [1.0, 1e300], ids=["plain numbers", "no calendar reaches there"])
@pytest.mark.parametrize(("command", "kind"), COMMANDS)
def test_no_word_of_a_server_moves_the_cursor(command: list[str], kind: type[Any], number: float, liar: Liar) -> None:
    liar.body = msgspec.json.encode(document(msgspec.inspect.type_info(kind), number))
    said = asked(liar, command)
    assert not FORBIDDEN & set(said.stdout + said.stderr)
    assert r"a\x1b[2Jb" in said.output or r"\u001b[2J" in said.output or r"\e[2J" in said.output


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
def test_no_refusal_does(status: int, liar: Liar) -> None:
    liar.status, liar.body = status, HOSTILE.encode()
    said = asked(liar, ["approve", "--list"])
    assert said.exit_code in (1, 2)
    assert not FORBIDDEN & set(said.output)
    assert "c\\x9b31md" in said.stderr


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>Welcome to nginx</html>", id="a page"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="another shape"),
        pytest.param(b'{"items": "\xff"}', id="no text"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="lists in lists without end"),
    ],
)
@pytest.mark.parametrize(("command", "kind"), COMMANDS)
def test_what_is_no_answer_of_htas_is_told(command: list[str], kind: type[Any], body: bytes, liar: Liar) -> None:
    liar.body = body
    said = asked(liar, command)
    assert said.exit_code == 1, said.output
    for words in (liar.url, "is no such document of htas", "is this a daemon of that version?"):
        assert words in said.stderr


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"[" * 100_000, "this is no daemon of HTAS", id="lists in lists without end"),
        pytest.param(json.dumps({"id": HOSTILE, "state": HOSTILE, "isOver": True}).encode(), "of this version?", id="half a state"),
        pytest.param(
            json.dumps({"id": HOSTILE, "state": "Prepared", "isOver": True, "attempt": "x"}).encode(), "of this version?", id="no number"
        ),
    ],
)  # fmt: skip
def test_who_watches_a_move_is_told_as_well(body: bytes, words: str, liar: Liar, tmp_path: Any) -> None:
    liar.body = body
    config = written(tmp_path, "tokenFile: token")
    move = ["migrate", "pod", "train", "--to", "b", "--config", str(config), "--url", liar.url]
    said = CliRunner().invoke(app, move)
    assert (said.exit_code, words in said.stderr) == (1, True), said.output
    assert not FORBIDDEN & set(said.output)
