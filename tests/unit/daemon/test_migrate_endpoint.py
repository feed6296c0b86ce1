"""Asking a daemon for moves: who is listened to, and how much of what is said."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.types import Message

from htas.daemon.http.app import LONGEST_BODY, Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.policy import Cycles
from htas.web.seat import Seat
from htas.web.sent import RequestRefusedError, sent_body
from tests.builders import make_policy

TOKEN = "let-me"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def port(token_file: Path) -> Iterator[int]:
    """Of a daemon that does not lead: whom it listens to is answered with 503."""
    server = HttpServer(
        ("127.0.0.1", 0),
        Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy)),
        Gate(token_file),
    )
    server.start()
    yield server.port
    server.stop()


def asked(port: int, token: str, framing: str, body: bytes = b"") -> tuple[int, str]:
    """The answer to a request as it stands, the connection being left open."""
    head = f"POST /api/migrate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection:
        connection.sendall(head.encode() + body)
        answer = HTTPResponse(connection, method="POST")
        answer.begin()
        return answer.status, answer.read().decode()


def test_nothing_of_a_body_is_waited_for_where_the_token_is_wrong(port: int) -> None:
    assert asked(port, "wrong", "Content-Length: 1000000000")[0] == 401


@pytest.mark.parametrize(
    ("size", "status"), [pytest.param(LONGEST_BODY, 503, id="as long as may be"), pytest.param(LONGEST_BODY + 1, 413, id="longer")]
)  # fmt: skip
def test_no_more_is_read_than_a_request_can_have(port: int, size: int, status: int) -> None:
    assert asked(port, TOKEN, f"Content-Length: {size}", b" " * size)[0] == status


def test_a_body_of_unknown_length_is_cut_off_where_it_is_too_long(port: int) -> None:
    piece = f"{LONGEST_BODY:x}\r\n".encode() + b" " * LONGEST_BODY + b"\r\n"
    assert asked(port, TOKEN, "Transfer-Encoding: chunked", piece * 2)[0] == 413


def test_a_connection_that_ends_within_a_body_is_no_defect_to_be_logged() -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(RequestRefusedError, match="ended before the body"):
        asyncio.run(sent_body(Request({"type": "http", "headers": []}, gone), LONGEST_BODY))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"a-secret\xff", "is no text in ASCII", id="no text"),
        pytest.param(b"a-secret\nb-secret\n", "is of several lines", id="two lines"),
    ],
)
def test_a_token_file_that_cannot_be_used_is_named_and_not_shown(
    content: bytes | None, words: str, port: int, token_file: Path
) -> None:
    token_file.unlink()
    if content is not None:
        token_file.write_bytes(content)
    status, said = asked(port, "a-secret", "Content-Length: 0")
    assert (status, f"http.tokenFile: {token_file}: " in said, words in said) == (500, True, True)
    assert "-secret" not in said
