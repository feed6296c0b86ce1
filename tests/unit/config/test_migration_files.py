"""`htas check` and files that moves need: told where they are not here, and no mistake, since the daemon runs elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from tests.unit.config.files import GOOD


def told(tmp_path: Path, migration: str) -> list[str]:
    """What is said beside the result of a configuration that is sound."""
    config = tmp_path / "htas.yaml"
    config.write_text(f"{GOOD}provider: {{sandbox: {{}}}}\nmigration: {{{migration}}}\n")
    result = CliRunner().invoke(app, ["check", "--config", str(config)])
    assert result.exit_code == 0, result.stderr
    return result.stderr.splitlines()


@pytest.mark.parametrize(
    ("migration", "complaint"),
    [
        pytest.param("scp: {identityFile: no}", "scp.identityFile: {}/no is no file", id="a key"),
        pytest.param("scp: {identityFile: /no}", "scp.identityFile: /no is no file", id="a key elsewhere"),
        pytest.param("scp: {knownHostsFile: .}", "scp.knownHostsFile: {} is no file", id="a directory"),
        pytest.param("transfer: registry, registry: {caFile: no}", "registry.caFile: {}/no is no file", id="a registry's CA"),
        pytest.param("kubelet: {caFile: no}", "kubelet.caFile: {}/no is no file", id="the kubelets' CA"),
        pytest.param("commands: {checkpoint: run, transfer: run, restore: run, abort: here}", "commands.abort: {}/here cannot be run", id="a command that cannot be run"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_here_is_told_with_its_key(tmp_path: Path, migration: str, complaint: str) -> None:
    (tmp_path / "here").write_text("")
    (tmp_path / "run").write_text("#!/bin/sh")
    (tmp_path / "run").chmod(0o755)
    (line,) = told(tmp_path, migration)
    assert line == f"file htas.yaml migration.{complaint.format(tmp_path)} on this machine; look where htas runs"


def test_files_that_are_here_are_not_worth_a_word(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    assert told(tmp_path, "scp: {identityFile: here, knownHostsFile: here}") == []
