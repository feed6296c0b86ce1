"""Asking a daemon for moves: who is listened to, and how much of what is said."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from htas.daemon.health import Health
from htas.daemon.http import LONGEST_BODY, HttpServer
from htas.daemon.metrics import Metrics
from htas.daemon.move_desk import MoveDesk
from htas.daemon.search_desk import SearchDesk
from htas.model.policy import Cycles

TOKEN = "let-me"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def port(token_file: Path) -> Iterator[int]:
    """Of a daemon that does not lead: whom it listens to is answered with 503."""
    server = HttpServer(("127.0.0.1", 0), Health(Cycles()), Metrics(), MoveDesk(token_file), SearchDesk())
    server.start()
    yield server.port
    server.stop()


def asked(port: int, token: str, framing: str, body: bytes = b"") -> str:
    """The answer to a request as it stands, the connection being left open."""
    head = f"POST /api/migrate HTTP/1.1\r\nHost: htas\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection:
        connection.sendall(head.encode() + body)
        return connection.recv(4096).decode()


def test_nothing_of_a_body_is_waited_for_where_the_token_is_wrong(port: int) -> None:
    assert " 401 " in asked(port, "wrong", "Content-Length: 1000000000")


@pytest.mark.parametrize(
    ("size", "status"), [pytest.param(LONGEST_BODY, 503, id="as long as may be"), pytest.param(LONGEST_BODY + 1, 413, id="longer")]
)  # fmt: skip
def test_no_more_is_read_than_a_request_can_have(port: int, size: int, status: int) -> None:
    assert f" {status} " in asked(port, TOKEN, f"Content-Length: {size}", b" " * size)


def test_a_body_of_unknown_length_is_cut_off_where_it_is_too_long(port: int) -> None:
    piece = f"{LONGEST_BODY:x}\r\n".encode() + b" " * LONGEST_BODY + b"\r\n"
    assert " 413 " in asked(port, TOKEN, "Transfer-Encoding: chunked", piece * 2)
