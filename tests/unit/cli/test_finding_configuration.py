"""Which configuration a command reads, and that it is told where nobody named it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from htas.cli.options import PLACES
from tests.unit.config.files import GOOD

AT_HOME = ".config/htas/htas.yaml"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, beside an empty home."""
    (tmp_path / "home").mkdir()
    (folder := tmp_path / "here").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HTAS_CONFIG", raising=False)
    return folder


def written(path: Path, cluster: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GOOD.replace("cluster: test", f"cluster: {cluster}"))
    return path


@pytest.mark.parametrize(
    ("files", "variable", "option", "cluster", "told"),
    [
        pytest.param(["htas.yaml", "config/htas.yaml"], "", "", "c0", "configuration: htas.yaml", id="here"),
        pytest.param(["config/htas.yaml", f"../home/{AT_HOME}"], "", "", "c0", "configuration: config/htas.yaml", id="in a checkout"),
        pytest.param([f"../home/{AT_HOME}"], "", "", "c0", "configuration: {home}/.config/htas/htas.yaml", id="at home"),
        pytest.param(["htas.yaml", "other.yaml"], "other.yaml", "", "c1", "configuration: other.yaml", id="HTAS_CONFIG comes before them"),
        pytest.param(["htas.yaml", "other.yaml", "mine.yaml"], "other.yaml", "mine.yaml", "c2", "", id="--config before all, and is not told"),
    ],
)  # fmt: skip
def test_the_first_that_is_there_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], variable: str, option: str, cluster: str, told: str
) -> None:
    for i, name in enumerate(files):
        written(here / name, f"c{i}")
    monkeypatch.setenv("HTAS_CONFIG", variable)
    said = CliRunner().invoke(app, ["check", *(["--config", option] if option else [])])
    assert (said.exit_code, f"cluster {cluster}," in said.stdout) == (0, True), said.output
    assert [line for line in said.stderr.splitlines() if line.startswith("configuration:")] == [
        told.format(home=here.parent / "home")
    ] * bool(told)


@pytest.mark.parametrize(
    ("provider", "is_told"),
    [
        pytest.param("", True, id="left out"),
        pytest.param("provider: {sandbox: {}}\n", False, id="the sandbox, written"),
        pytest.param("provider: {kwok: {}}\n", False, id="a real one"),
    ],
)
def test_check_tells_which_provider_is_assumed(here: Path, provider: str, is_told: bool) -> None:
    (here / "htas.yaml").write_text(GOOD + provider)
    said = CliRunner().invoke(app, ["check"])
    assert said.exit_code == 0, said.output
    assert ("provider: not written, so the sandbox is assumed" in said.stderr) is is_told


def test_where_there_is_none_the_places_are_told(here: Path) -> None:
    said = CliRunner().invoke(app, ["cost"])
    assert said.exit_code == 2
    assert all(place in said.stderr for place in (*PLACES, "HTAS_CONFIG", "--config"))


def test_one_that_is_named_and_not_there_is_an_error_whatever_else_is(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(here / "htas.yaml", "c0")
    monkeypatch.setenv("HTAS_CONFIG", "gone.yaml")
    said = CliRunner().invoke(app, ["check"])
    assert said.exit_code == 2
    assert "gone.yaml" in said.stderr


def test_what_a_dump_would_cost_goes_by_the_configuration_that_is_there(here: Path) -> None:
    """In a folder with config/htas.yaml `htas simulate` and `htas ui` wanted a price file."""
    written(here / "config/htas.yaml", "c0")
    (here / "dump.json").write_text('{"kind": "List", "items": []}')
    said = CliRunner().invoke(app, ["simulate", "--from", "dump.json"])
    assert ("configuration: config/htas.yaml" in said.stderr, "--flavours" in said.stderr) == (True, False), said.stderr
