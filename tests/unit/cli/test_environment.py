"""Options from the environment: commands in the daemon's container need none."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from tests.unit.config.files import GOOD

IN_A_CONTAINER = ("check", "cost", "history", "top --recorded", "store check")


@pytest.mark.parametrize("words", IN_A_CONTAINER)
def test_the_environment_names_the_configuration(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # a folder without a configuration, as home is
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    config = tmp_path / "htas.yaml"
    config.write_text(GOOD)
    SqliteStore(str(tmp_path / "htas.db")).close()
    result = CliRunner().invoke(app, words.split(), env={"HTAS_CONFIG": str(config)})
    assert result.exit_code == 0, result.output
    without = CliRunner().invoke(app, words.split(), env={"HTAS_CONFIG": ""})
    assert without.exit_code == 2
    assert "--config" in without.stderr


def test_an_option_counts_before_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "htas.yaml"
    config.write_text(GOOD)
    result = CliRunner().invoke(app, ["check", "-c", str(config)], env={"HTAS_CONFIG": "/nowhere.yaml"})
    assert result.exit_code == 0, result.output
