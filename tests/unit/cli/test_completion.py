"""Completion: what each shell is given to read, and what it is answered when somebody presses the key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.forms import Shell
from htas.cli.kubectl import candidates
from htas.cli.main import app
from tests.programs import write_program

ASKED = {
    Shell.BASH: lambda words: {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
    Shell.ZSH: lambda words: {"_TYPER_COMPLETE_ARGS": words},
    Shell.FISH: lambda words: {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""How each shell tells what has been typed, by its script."""


def script_of(shell: Shell) -> str:
    said = CliRunner().invoke(app, ["completion", shell.value])
    assert said.exit_code == 0, said.output
    return said.stdout


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        pytest.param("htas hist", ["history"], ["top"], id="a verb"),
        pytest.param("htas store ", ["init", "check", "backup"], ["plan", "migrate"], id="a verb of a group"),
        pytest.param("htas top --so", ["--sort"], ["--watch"], id="an option"),
        pytest.param("htas top --sort ", ["cpu", "memory", "age", "price", "name"], ["--sort"], id="its choices"),
    ],
)
def test_what_is_offered(shell: Shell, typed: str, offered: list[str], not_offered: list[str]) -> None:
    script = script_of(shell)
    asked = ASKED[shell](typed)
    assert all(name in script for name in asked)  # else the shell would ask in another way than this test
    code = "from htas.cli.main import app; app(prog_name='htas')"
    environment = {**os.environ, **asked, "_HTAS_COMPLETE": f"complete_{shell.value}"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    words = ended.stdout.replace('"', " ").replace(":", " ").split()
    assert [word for word in offered if word not in words] == []
    assert [word for word in not_offered if word in words] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_by_the_script_it_is_given(tmp_path: Path) -> None:
    write_program(tmp_path / "htas", f"#!{sys.executable}\nfrom htas.cli.main import main\nmain()\n")
    (tmp_path / "script").write_text(script_of(Shell.BASH))
    typing = f"source {tmp_path}/script; COMP_WORDS=(htas cost --by own); COMP_CWORD=3; _htas_completion htas"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    ended = subprocess.run(
        ["bash", "-c", f'{typing}; echo "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert ended.stdout.split() == ["owner"]


KUBECTL = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$2" in
  pods) printf 'shop/web-1\\nshop/web-2\\nbatch/job-1\\n' ;;
  nodes) printf 'n1\\nn2\\nedge-1\\n' ;;
esac
"""


def completed(monkeypatch: pytest.MonkeyPatch, *words: str, path: Path) -> list[str]:
    """What is offered for the last word; programs are looked for in `path`, and /bin."""
    monkeypatch.setenv("PATH", f"{path}:/bin")
    return candidates(list(words))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(("pod", "shop/"), ["shop/web-1", "shop/web-2"], id="pods of a namespace"),
        pytest.param(("pod", "job"), ["job-1"], id="a pod by its name alone"),
        pytest.param(("pod", "none"), [], id="no such pod"),
        pytest.param(("node", "n"), ["n1", "n2"], id="nodes"),
        pytest.param(("node", "--from", "dump.json", "n"), [], id="a dump's nodes are not the cluster's"),
        pytest.param(("node", "--server", "system/htas", "e"), ["edge-1"], id="of a release: its cluster's"),
    ],
)
def test_names_of_the_cluster_are_offered(
    words: tuple[str, ...], offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "kubectl", KUBECTL.format(folder=tmp_path))
    assert completed(monkeypatch, "explain", *words, path=tmp_path) == offered


@pytest.mark.parametrize(
    "kubectl",
    [
        pytest.param("#!/bin/sh\necho 'no cluster' >&2; exit 1\n", id="no cluster"),
        pytest.param("#!/bin/sh\nexec sleep 30\n", id="no answer"),
        pytest.param(None, id="no kubectl"),
    ],
)
def test_without_a_cluster_no_name_is_offered_and_nothing_said(
    kubectl: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if kubectl is not None:
        write_program(tmp_path / "kubectl", kubectl)
    began = time.monotonic()
    assert completed(monkeypatch, "explain", "node", "", path=tmp_path) == []
    assert time.monotonic() - began < 10
    assert capfd.readouterr() == ("", "")
