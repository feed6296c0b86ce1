"""`htas migrate pod`: whom it asks, and what is said where that is not known."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from htas.cli.main import app
from htas.cli.migrate import Asker, asker_of, line_of
from htas.config.loader import load_configuration
from tests.unit.config.files import GOOD


def migrate(tmp_path: Path, http: str, *options: str) -> Result:
    config = written(tmp_path, http)
    words = ["migrate", "pod", "train", "--to", "b", "--config", str(config), *options]
    return CliRunner().invoke(app, words)


def written(tmp_path: Path, http: str) -> Path:
    config = tmp_path / "htas.yaml"
    config.write_text(f"{GOOD}http: {{{http}}}\n")
    (tmp_path / "token").write_text("secret\n")
    return config


@pytest.mark.parametrize(
    ("http", "url"),
    [
        pytest.param("listen: '0.0.0.0:8080'", "http://127.0.0.1:8080", id="every address: this machine"),
        pytest.param("listen: '192.0.2.1:81'", "http://192.0.2.1:81", id="one address"),
        pytest.param("listen: '[2001:db8::1]:81'", "http://[2001:db8::1]:81", id="an IPv6 address"),
        pytest.param("listen: '[::]:81'", "http://127.0.0.1:81", id="every address of both kinds"),
    ],
)
def test_the_daemon_is_where_the_configuration_has_it_listen(tmp_path: Path, http: str, url: str) -> None:
    loaded = load_configuration(written(tmp_path, f"{http}, tokenFile: token"))
    assert asker_of(loaded, None, None) == Asker(url, "secret")


def test_options_name_another_daemon_and_token(tmp_path: Path) -> None:
    loaded = load_configuration(written(tmp_path, "listen: '0.0.0.0:8080', tokenFile: nowhere"))
    assert asker_of(loaded, "http://there:1", tmp_path / "token") == Asker("http://there:1", "secret")


@pytest.mark.parametrize(
    ("http", "options", "code", "words"),
    [
        pytest.param("tokenFile: token", [], 2, "--url: http.listen is not configured", id="nobody listens"),
        pytest.param("listen: ':81'", [], 2, "--token-file: http.tokenFile is not configured", id="no token"),
        pytest.param("listen: ':81', tokenFile: no", [], 2, "no: No such file or directory", id="a token that is not there"),
        pytest.param("tokenFile: token", ["--url", "there:1"], 2, "'there:1' is no http://HOST:PORT", id="no url"),
        pytest.param("tokenFile: token", ["--url", "http://127.0.0.1:9"], 1, "no daemon answers", id="nobody there"),
        pytest.param("tokenFile: token", ["--method", "beam"], 2, "beam", id="no such method"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(tmp_path: Path, http: str, options: list[str], code: int, words: str) -> None:
    result = migrate(tmp_path, http, *options)
    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"a-secret\xff", "token: is no text in ASCII", id="no text"),
        pytest.param(b"a-secret\nb-secret\n", "token: is of several lines", id="two lines"),
        pytest.param(b"\n", "token: is empty", id="empty"),
    ],
)
def test_a_token_that_cannot_be_sent_is_told_in_a_line(tmp_path: Path, content: bytes, words: str) -> None:
    config = written(tmp_path, "listen: ':81'")
    (tmp_path / "token").write_bytes(content)
    options = ["--config", str(config), "--token-file", str(tmp_path / "token")]
    result = CliRunner().invoke(app, ["migrate", "pod", "train", "--to", "b", *options])
    assert (result.exit_code, words in result.stderr, "-secret" in result.stderr) == (2, True, False), result.stderr


class _Elsewhere(BaseHTTPRequestHandler):
    """Something else than a daemon of HTAS: it answers everything with one page."""

    page = b""

    def do_POST(self) -> None:  # the library's own name
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.mark.parametrize("page", [b"<html>it works</html>", b"", b"[]", b'{"status": "ok"}', b"\xff"])
def test_who_is_no_daemon_of_htas_is_told_in_a_line(tmp_path: Path, page: bytes) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Elsewhere,), {"page": page})) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        result = migrate(tmp_path, "tokenFile: token", "--url", f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    assert result.exit_code == 1
    assert "this is no daemon of HTAS" in result.stderr


ASKED: dict[str, Any] = {"id": "1a2b", "pod": "default/train", "node": "b", "isOver": False}
MOVING: dict[str, Any] = {**ASKED, "from": "a", "attempt": 1, "archiveBytes": 0, "seconds": {}, "reason": "", "detail": "", "twin": ""}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "line"),
    [
        pytest.param({**ASKED, "state": "Asked"}, "Asked         default/train to b (request 1a2b)", id="asked"),
        pytest.param({**ASKED, "state": "Refused", "reason": "", "detail": "node b is gone"}, "Refused       node b is gone", id="refused without a kind"),
        pytest.param({**MOVING, "state": "Prepared"}, "Prepared", id="begun"),
        pytest.param({**MOVING, "state": "Prepared", "attempt": 2, "reason": "NoSpaceLeft", "detail": "disk full"}, "Prepared      attempt 2, after NoSpaceLeft: disk full", id="again"),
        pytest.param({**MOVING, "state": "Transferred", "archiveBytes": 2**20}, "Transferred   1.0 MiB", id="there"),
        pytest.param({**MOVING, "state": "Done", "twin": "train-m1", "seconds": {"copy": 1.0, "total": 2.5}, "repeatedSeconds": 2.0}, "Done          as train-m1 on b after 2.5 s (copy 1.0 s); 2.0 s of work done again", id="done"),
    ],
)  # fmt: skip
def test_a_state_is_a_line(state: dict[str, Any], line: str) -> None:
    assert line_of(state).rstrip() == line
