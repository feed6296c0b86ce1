"""`htas man`, and the commands as kubectl's plugin: found, named and completed as kubectl wants it."""

from __future__ import annotations

import re
import sys

import pytest
from typer.testing import CliRunner

from htas.cli import kubectl
from htas.cli.main import app
from htas.cli.manual import entries


def test_the_manual_has_every_command_with_its_options() -> None:
    said = CliRunner().invoke(app, ["man"])
    assert said.exit_code == 0
    for entry in entries(app):
        assert f".SS {entry.usage}" in said.stdout.replace(r"\-", "-")
    assert r"\fB\-c, \-\-config <path>\fR" in said.stdout


def test_no_line_of_its_text_is_taken_for_a_request() -> None:
    said = CliRunner().invoke(app, ["man"]).stdout
    requests = {line.split(" ")[0] for line in said.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I"}


@pytest.mark.parametrize(
    ("words", "some"),
    [
        pytest.param(["pl"], ["plan"], id="a verb half written"),
        pytest.param([""], ["plan", "explain", "migrate"], id="nothing written"),
        pytest.param(["explain", ""], ["pod", "node"], id="a verb within a group"),
        pytest.param(["plan", "--s"], ["--steady", "--server"], id="an option half written"),
        pytest.param(["cost", "--by", "n"], ["namespace"], id="a choice half written"),
        pytest.param(["plan", "--from", "it's a "], [], id="a file, with signs that a shell obeys"),
    ],
)
def test_what_may_follow(words: list[str], some: list[str]) -> None:
    found = kubectl.candidates(words)
    assert set(some) <= set(found)
    assert all(word.startswith(words[-1]) for word in found)


@pytest.mark.parametrize(
    ("words", "directive"),
    [(["cost", "--by", ""], ":4"), (["plan", "--from", ""], ":0"), ([], ":4")],
    ids=["choices alone", "names of files", "verbs, where kubectl gives no word"],
)
def test_kubectl_is_answered_in_its_form(
    words: list[str], directive: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-htas", *words])
    kubectl.complete()
    assert capsys.readouterr().out.splitlines()[-1] == directive


def test_as_a_plugin_it_calls_itself_what_was_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/kubectl-htas", "plan", "--help"])
    with pytest.raises(SystemExit) as ended:
        kubectl.main()
    assert ended.value.code == 0
    assert re.search(r"Usage:.* kubectl htas plan", capsys.readouterr().out)
