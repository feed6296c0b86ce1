"""Completion asks the daemon that is named, with its token, and is silent where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.cli.kubectl import candidates
from htas.web.seat import Seat


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    return str(tmp_path / "token")  # as the daemon's fixture writes it


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(("pod", "default/"), ["default/huge", "default/job", "default/web-1"], id="pods"),
        pytest.param(("pod", "web"), ["web-1"], id="a pod by its name alone"),
        pytest.param(("node", "f"), ["foreign"], id="nodes"),
    ],
)
def test_names_that_a_daemon_knows_are_offered(
    words: tuple[str, str], offered: list[str], saw: Seat, url: str, token_file: str
) -> None:
    kind, typed = words
    assert candidates(["explain", kind, "--server", url, "--token-file", token_file, typed]) == offered


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "http://"])
def test_without_an_answer_none_is_offered(server: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert candidates(["explain", "pod", "--server", server, ""]) == []
    assert capfd.readouterr() == ("", "")


def test_a_token_that_is_refused_is_not_complained_of(saw: Seat, url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert candidates(["explain", "pod", "--server", url, ""]) == []
    assert capfd.readouterr() == ("", "")
