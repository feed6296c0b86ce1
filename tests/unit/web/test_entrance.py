"""The link of `htas ui`: it opens the pages once, and what stands in it is good for nothing else."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from typer.testing import CliRunner

from htas.cli.console import InputError
from htas.cli.main import app
from htas.cli.ui import serve, token_in
from htas.web.seat import Seat


@pytest.fixture
def link(saw: Seat) -> Iterator[str]:
    listener, made = serve(saw, 0)
    listener.start()
    yield made
    listener.stop()


def ask(url: str, method: str = "GET", body: object = None, **headers: str) -> urllib3.BaseHTTPResponse:
    sent = {"Connection": "close", **headers}
    return urllib3.request(method, url, headers=sent, json=body, timeout=10.0, retries=False, redirect=False)


def test_it_opens_once_for_a_browser_that_gets_it(link: str) -> None:
    base = link.partition("/assets")[0]
    assert ask(link, "HEAD").status == 405, "a preview does not use it up"
    assert ask(f"{link}x").status == 401
    opened = ask(link)
    assert (opened.status, opened.headers["Cache-Control"]) == (303, "no-store")
    cookie = opened.headers["Set-Cookie"].partition(";")[0]
    assert ask(f"{base}/api/v1/cluster", Cookie=cookie).status == 200
    again = ask(link)
    assert (again.status, "Set-Cookie" in again.headers) == (403, False)


@pytest.mark.parametrize("is_used", [False, True], ids=["before it is opened", "afterwards"])
def test_its_secret_is_no_token(is_used: bool, link: str) -> None:
    base, secret = link.partition("/assets")[0], link.partition("once=")[2]
    if is_used:
        assert ask(link).status == 303
    refused = ask(f"{base}/api/v1/cluster", Authorization=f"Bearer {secret}")
    assert (refused.status, "once=" in refused.data.decode()) == (401, False)
    assert ask(f"{base}/session", "POST", {"token": secret}).status == 401


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[str, Path, subprocess.Popen[str]]]:
    """`htas ui` of a small day with a token for commands, as a process."""
    token = tmp_path / "a token"
    arguments = ["ui", "--demo", "--hours", "0.2", "--speed", "0", "--token-file", str(token)]
    with subprocess.Popen([sys.executable, "-m", "htas", *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(2)]
        found = re.search(r"--server (http://127.0.0.1:\d+) --token-file '(.*)'", told[1])
        assert found is not None and found[2] == str(token), told
        yield found[1], token, process
        process.kill()


def test_commands_ask_the_pages_of_this_machine(demo: tuple[str, Path, subprocess.Popen[str]]) -> None:
    """`htas top --server` was refused by `htas ui`, and there was no token to give."""
    url, token, process = demo
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    deadline, server = time.monotonic() + 60.0, ["--server", url, "--token-file", str(token)]
    while (said := CliRunner().invoke(app, ["top", *server])).exit_code != 0 and time.monotonic() < deadline:
        time.sleep(0.2)  # the day has not begun yet
    assert said.exit_code == 0, said.output
    refused = CliRunner().invoke(app, ["top", "--server", url])
    assert (refused.exit_code, "htas ui --token-file FILE" in " ".join(refused.stderr.split())) == (1, True)
    process.send_signal(signal.SIGINT)
    assert process.wait(20.0) == 0
    assert not token.exists(), "it is good for nothing any more"


def test_no_other_file_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a daemon's")
    with pytest.raises(InputError, match="is there already"), token_in(tmp_path / "token"):
        pass
    assert (tmp_path / "token").read_text() == "a daemon's"


def test_a_file_that_somebody_else_has_put_in_the_tokens_place_is_theirs(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with token_in(path):
        path.unlink()
        path.write_text("another daemon's")
    assert path.read_text() == "another daemon's"
    path.unlink()
    with token_in(path) as token:
        assert (path.read_text(), path.stat().st_mode & 0o777) == (f"{token}\n", 0o600)
    assert not path.exists()
