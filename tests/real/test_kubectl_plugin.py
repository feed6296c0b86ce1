"""A real kubectl finds `kubectl htas`, runs it and completes what follows it. It needs no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
KUBECTL = Path(os.environ.get("HTAS_KUBE_BIN", CACHE / "htas" / "kube-bin")) / "kubectl"


def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
    """As with the folder of `htas` on the PATH."""
    environment = os.environ | {"PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run([KUBECTL, *words], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("words", [["--version"], ["plan", "--help"]], ids=["its version", "a command's help"])
def test_kubectl_runs_it(words: list[str]) -> None:
    ended = kubectl("htas", *words)
    assert ended.returncode == 0, ended.stderr
    assert "htas" in ended.stdout


def test_kubectl_lists_it() -> None:
    assert str(SCRIPTS / "kubectl-htas") in kubectl("plugin", "list").stdout


def test_kubectl_completes_what_follows() -> None:
    ended = kubectl("__complete", "htas", "explain", "")
    assert ended.stdout.splitlines() == ["pod", "node", ":4"]
