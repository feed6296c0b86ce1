"""Who asked for what: a line for each, over a real listener; no secret in it, and nothing that makes a second line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from htas.config.audit import Audited
from htas.config.loader import load_configuration
from htas.daemon.http.audit import LONGEST, MOST_WAITING, AuditEntry, AuditLog, note_command, plain_query
from htas.daemon.http.authorization import Gate, Guarded
from htas.daemon.http.logging_in import session_routes
from htas.daemon.http.server import Listener
from htas.daemon.http.sessions import Sessions
from htas.daemon.http.wrong_tokens import WrongTokens

TOKEN = "t0ken-of-the-file"


def entry(path: str = "/planz", method: str = "GET", status: int = 200) -> AuditEntry:
    return AuditEntry("2026-11-01T00:00:00.000Z", "http", "http.tokenFile", "127.0.0.1", method, path, status=status)


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Daemon:
    """Pages behind a gate, and their audit log."""

    def __init__(self, folder: Path, what: Audited = Audited.ALL) -> None:
        (folder / "token").write_text(f"{TOKEN}\n")
        gate, sessions = Gate(folder / "token"), Sessions()
        self.file = folder / "audit.jsonl"
        self.log = AuditLog(self.file, what, 10**6)

        def answer(request: Request) -> PlainTextResponse:
            return PlainTextResponse(request.url.path)

        routes = [Route("/{rest:path}", answer, methods=["GET", "POST"])]
        app = Starlette(routes=[*session_routes(gate, sessions, WrongTokens()), *routes])
        self.listener = Listener(("127.0.0.1", 0), Guarded(app, gate, sessions, self.log), "audited")
        self.log.start()
        self.listener.start()
        self.pool = urllib3.PoolManager(retries=False)

    def ask(
        self, path: str, method: str = "GET", token: str | None = TOKEN, headers: dict | None = None, **options: Any
    ) -> int:
        shown = {"Authorization": f"Bearer {token}"} if token is not None else {}
        url = f"http://127.0.0.1:{self.listener.port}{path}"
        return self.pool.request(method, url, headers=shown | (headers or {}), **options).status

    def told(self) -> list[dict]:
        """Every line, once all is written."""
        self.listener.stop()
        self.log.close()
        return lines(self.file)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path)
    yield made
    made.pool.clear()
    made.listener.stop()


def test_each_request_is_a_line_with_who_asked(daemon: Daemon) -> None:
    assert [daemon.ask("/planz"), daemon.ask("/planz", token="guess"), daemon.ask("/healthz")] == [200, 401, 200]
    first, refused = daemon.told()
    assert (first["who"], first["method"], first["path"], first["status"]) == ("http.tokenFile", "GET", "/planz", 200)
    assert first["source"] == "127.0.0.1"
    assert first["agent"].startswith("python-urllib3/")
    assert (refused["status"], "who" in refused) == (401, False)


def test_no_header_says_where_a_request_comes_from(daemon: Daemon) -> None:
    """What a proxy on loopback said was believed, and so what anybody said who asked from there."""
    forwarded = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9", "X-Forwarded-Proto": "https"}
    daemon.ask("/planz", token=None, headers=forwarded)
    assert [each["source"] for each in daemon.told()] == ["127.0.0.1"]


def test_a_login_tells_who_and_never_the_token(daemon: Daemon) -> None:
    assert daemon.ask("/session", "POST", None, json={"token": TOKEN}) == 204
    assert daemon.ask("/session", "POST", None, json={"token": "guess"}) == 401
    told = daemon.told()
    assert [(each["path"], each["status"], each.get("who")) for each in told] == [
        ("/session", 204, "http.tokenFile"),
        ("/session", 401, None),
    ]
    assert TOKEN not in daemon.file.read_text()


def test_what_is_asked_cannot_write_lines_of_its_own(daemon: Daemon) -> None:
    daemon.ask("/x%0A%7B%22who%22:%22root%22%7D%1B%5B2J?q=%0Aevil&token=s3cret&n=1")
    daemon.ask("/" + "y" * 4_000)
    daemon.ask("/%C2%9B2J%7F%E2%80%AEtxt.exe%E2%81%A6%E2%80%A8", headers={"User-Agent": "a\x9b31m"})
    *_, turned = daemon.told()
    assert turned["path"] == "/\x9b2J\x7f\u202etxt.exe\u2066\u2028", "whoever reads the JSON has it as it was sent"
    text = daemon.file.read_bytes()
    assert text.count(b"\n") == 3
    assert b"\x1b" not in text and b"s3cret" not in text
    assert not set("\x7f\x9b\u202e\u2066\u2028") & set(text.decode())
    assert max(len(line) for line in text.splitlines()) < 1_200


def test_only_changes_and_refusals_where_that_is_asked_for(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, Audited.CHANGES)
    daemon.ask("/planz")
    daemon.ask("/api/optimize", "POST", json={})
    daemon.ask("/planz", token="guess")
    assert [(each["method"], each["status"]) for each in daemon.told()] == [("POST", 200), ("GET", 401)]


def test_a_file_is_bounded_and_its_owners_alone(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a", Audited.ALL, 65_536)
    for _ in range(2_000):
        log.write(entry())
    sizes = [(tmp_path / name).stat().st_size for name in ("a", "a.1")]
    assert max(sizes) <= 65_536 and min(sizes) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.1"]
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


def test_what_does_not_fit_is_counted_and_told_with_the_next_line(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a", Audited.ALL, 10**8)
    for _ in range(MOST_WAITING + 7):
        log.request(entry())
    log.start()
    log.close()
    told = lines(tmp_path / "a")
    assert (len(told), told[0]["dropped"]) == (MOST_WAITING, 7)


def test_a_disk_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "nowhere" / "a", Audited.ALL, 10**6)
    log.write(entry())
    log.write(entry())


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param("limit=5&why=BlockedByPod", "limit=5&why=BlockedByPod", id="as it is"),
        pytest.param("once=abc&accessToken=x&by=owner", "once=*&accessToken=*&by=owner", id="secrets"),
        pytest.param("a=" + "x" * 9_000, "a=" + "x" * 497 + "…", id="bounded"),
    ],
)
def test_queries(query: str, told: str) -> None:
    assert plain_query(query) == told


def test_a_command_that_changes_something_is_noted(tmp_path: Path) -> None:
    settings = "apiVersion: htas.io/v1alpha1\nkind: HTASConfiguration\ncluster: demo\n"
    settings += "flavours: {flavours: [{name: a, cpu: 2, memory: 4Gi, pricePerHour: 0.1}]}\n"
    settings += "audit: {to: audit.jsonl}\nnodeGroups: [{name: any}]\n"
    (tmp_path / "htas.yaml").write_text(settings)
    note_command(load_configuration(tmp_path / "htas.yaml"), "htas handback", "--all")
    (told,) = lines(tmp_path / "audit.jsonl")
    assert (told["how"], told["path"], told["said"]) == ("command", "htas handback", "--all")
    assert told["who"]


def test_a_method_of_sixty_thousand_letters_does_not_push_other_lines_out(daemon: Daemon) -> None:
    """Anybody may send one, without a token; the lines before it are in a file of a bounded size."""
    daemon.ask("/planz", "A" * 60_000, token=None)
    assert [len(each["method"]) for each in daemon.told()] == [LONGEST]
