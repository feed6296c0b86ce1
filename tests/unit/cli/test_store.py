"""`htas store` with a SQLite file, which makes and migrates itself: nobody need know which store is configured."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.adapters.sqlite.schema import MIGRATIONS
from htas.cli.main import app
from tests.unit.config.files import GOOD


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "htas.yaml"
    file.write_text(GOOD)
    return file


def run(verb: str, config: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["store", verb, "-c", str(config)])
    return done.exit_code, done.output


def test_a_file_is_made_checked_and_up_to_date(config: Path) -> None:
    file = config.parent / "htas.db"
    assert run("init", config) == (0, f"{file}: is ready; htas run would have made it, too\n")
    assert run("check", config) == (0, f"{file}: schema 4, can be read; open claims: 0\n")
    assert run("migrate", config) == (0, f"{file}: is up to date; htas run migrates it by itself, too\n")


def of_version_1(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for step in MIGRATIONS[0]:
            connection.execute(step)
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


def version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_checking_an_older_file_tells_its_version_and_leaves_it(config: Path) -> None:
    of_version_1(file := config.parent / "htas.db")
    status, told = run("check", config)
    assert (status, version(file)) == (0, 1)
    assert f"{file}: schema 1, can be read; open claims: 0" in told
    assert "this htas writes schema 4" in told and "an older htas cannot read it afterwards" in told
    assert run("migrate", config)[0] == 0
    assert version(file) == 4


@pytest.mark.parametrize("asked", [("history",), ("cost", "--by", "owner"), ("top", "--recorded")])
def test_looking_at_an_older_file_leaves_it_as_it_is(asked: tuple[str, ...], config: Path) -> None:
    of_version_1(file := config.parent / "htas.db")
    done = CliRunner().invoke(app, [*asked, "-c", str(config)])
    assert (done.exit_code, version(file)) == (0, 1), done.output


@pytest.mark.parametrize("verb", ["check", "migrate"])
def test_what_is_not_there_is_not_made_by_looking(verb: str, config: Path) -> None:
    status, told = run(verb, config)
    assert status == 1
    assert "nothing has been recorded yet" in told
    assert not (config.parent / "htas.db").exists()


@pytest.mark.parametrize("verb", ["init", "check", "migrate"])
def test_another_programs_file_is_left_alone(verb: str, config: Path) -> None:
    file = config.parent / "htas.db"
    file.write_text("no database at all, but somebody's notes")
    status, told = run(verb, config)
    assert (status, file.read_text()) == (1, "no database at all, but somebody's notes")
    assert "it is no SQLite database" in told.replace("\n", " ")


def test_a_wrong_configuration_is_bad_input(config: Path) -> None:
    config.write_text(GOOD + "store: {}")
    assert run("check", config)[0] == 2
