"""`htas store` with a SQLite file, which makes itself: nobody need know which store is configured."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.adapters.owning import owned
from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import Drain
from htas.model.record import Bill
from tests.builders import NOW
from tests.unit.config.files import GOOD


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "htas.yaml"
    file.write_text(GOOD)
    return file


def run(verb: str, config: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["store", verb, "-c", str(config)])
    return done.exit_code, done.output


def test_a_file_is_made_and_checked(config: Path) -> None:
    file = config.parent / "htas.db"
    assert run("init", config) == (0, f"{file}: is ready; htas run would have made it, too\n")
    assert run("check", config) == (0, f"{file}: schema 1, can be read; open claims: 0\n")


def version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


ASKED = [("store", "init"), ("store", "check"), ("history",), ("cost", "--by", "owner"), ("top", "--recorded")]


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_a_store_of_another_schema_is_refused_untouched(asked: tuple[str, ...], config: Path) -> None:
    assert run("init", config)[0] == 0
    with closing(sqlite3.connect(file := config.parent / "htas.db")) as connection:
        connection.execute("PRAGMA user_version = 4")
    done = CliRunner().invoke(app, [*asked, "-c", str(config)])
    assert (done.exit_code, version(file)) == (1, 4), done.output
    assert "this store is of schema 4, this htas reads 1" in done.output.replace("\n", " ")


def test_what_is_not_there_is_not_made_by_looking(config: Path) -> None:
    status, told = run("check", config)
    assert status == 1
    assert "nothing has been recorded yet" in told
    assert not (config.parent / "htas.db").exists()


@pytest.mark.parametrize("verb", ["init", "check"])
def test_another_programs_file_is_left_alone(verb: str, config: Path) -> None:
    file = config.parent / "htas.db"
    file.write_text("no database at all, but somebody's notes")
    status, told = run(verb, config)
    assert (status, file.read_text()) == (1, "no database at all, but somebody's notes")
    assert "it is no SQLite database" in told.replace("\n", " ")


def test_a_wrong_configuration_is_bad_input(config: Path) -> None:
    config.write_text(GOOD + "store: {}")
    assert run("check", config)[0] == 2


# Backups.


def store_of(config: Path, *claims: str) -> Path:
    """A store with claims, each with an open bill."""
    path = config.parent / "htas.db"
    store = SqliteStore(str(path))
    for claim in claims:
        store.put_claim(NodeClaim(claim, "any", "small", ClaimState.READY, NOW, NOW, instance=f"vm-{claim}"))
        store.put_bill(Bill(claim, "any", "small", 100, NOW, instance=f"vm-{claim}"))
    store.close()
    return path


def copied(verb: str, config: Path, file: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["store", verb, str(file), "-c", str(config)])
    return done.exit_code, done.output.replace("\n", " ")


def claims_in(file: Path) -> list[str]:
    store = SqliteStore(str(file), only_reads=True)
    try:
        return [claim.id for claim in store.claims()]
    finally:
        store.close()


def test_a_backup_of_a_store_in_use_is_one_whole_file(config: Path, tmp_path: Path) -> None:
    """All that a daemon wrote may still be in its log: a plain copy of the file had nothing of it."""
    path = store_of(config)
    writing = SqliteStore(str(path))
    writing.put_claim(NodeClaim("c1", "any", "small", ClaimState.WANTED, NOW, NOW))
    file = tmp_path / "backup.db"
    status, told = copied("backup", config, file)
    writing.close()
    assert (status, claims_in(file)) == (0, ["c1"])
    assert "1 machines, 0 bills (0 open), no cycle" in told
    assert [each.name for each in tmp_path.glob("backup.db*")] == ["backup.db"], "it may be copied as it is"


def test_a_backup_overwrites_nothing(config: Path, tmp_path: Path) -> None:
    store_of(config, "c1")
    (file := tmp_path / "backup.db").write_text("yesterday's")
    status, told = copied("backup", config, file)
    assert (status, file.read_text()) == (1, "yesterday's")
    assert "is there already" in told


def test_a_restored_store_intends_nothing_and_the_other_is_kept(config: Path, tmp_path: Path) -> None:
    path = store_of(config, "c1")
    store = SqliteStore(str(path))
    store.put_claim(NodeClaim("w1", "any", "small", ClaimState.WANTED, NOW, NOW))
    store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    store.close()
    assert copied("backup", config, tmp_path / "backup.db")[0] == 0
    file = tmp_path / "backup.db"
    path.unlink()
    store_of(config, "c1", "c2", "c3")
    (path.parent / "htas.db.term").write_text("3\n")
    status, told = copied("restore", config, file)
    assert (status, claims_in(path)) == (0, ["c1", "w1"])
    assert "2 machines, 1 bills (1 open)" in told
    [aside] = [each for each in path.parent.glob("htas.db.replaced-*") if not each.name.endswith(("-wal", "-shm"))]
    assert (claims_in(aside), str(aside) in told.replace(" ", "")) == (["c1", "c2", "c3"], True)
    restored = SqliteStore(str(path))
    wanted = next(claim for claim in restored.claims() if claim.id == "w1")
    assert (wanted.since, restored.disruptions()) == (0.0, []), "it is not asked for again"
    restored.close()
    assert not (path.parent / "htas.db.term").exists(), "the daemon drops what an old journal intended"
    assert not list(path.parent.glob("*.unfinished*"))


def test_what_is_only_in_the_log_of_the_replaced_store_is_kept(config: Path, tmp_path: Path) -> None:
    path = store_of(config, "c1")
    assert copied("backup", config, tmp_path / "backup.db")[0] == 0
    file = tmp_path / "backup.db"
    killed = SqliteStore(str(path))  # a daemon that was killed leaves its log
    killed.put_claim(NodeClaim("c2", "any", "small", ClaimState.READY, NOW, NOW))
    assert copied("restore", config, file)[0] == 0
    killed.close()
    [aside] = [each for each in path.parent.glob("htas.db.replaced-*") if not each.name.endswith(("-wal", "-shm"))]
    assert (claims_in(path), claims_in(aside)) == (["c1"], ["c1", "c2"])


@pytest.mark.parametrize("is_shared", [False, True], ids=["a daemon without a lease", "a daemon with a lease"])
def test_a_store_that_a_daemon_uses_is_not_replaced(config: Path, tmp_path: Path, is_shared: bool) -> None:
    path = store_of(config, "c1")
    assert copied("backup", config, tmp_path / "backup.db")[0] == 0
    file = tmp_path / "backup.db"
    lock = owned(str(path), 0.0, "", is_shared=is_shared)
    status, told = copied("restore", config, file)
    os.close(lock)
    assert status == 1
    assert "end every daemon that uses this store first" in told
    assert copied("restore", config, file)[0] == 0


def damage(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[4096 : len(whole) - 4096] = bytes(len(whole) - 8192)
    file.write_bytes(whole)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.write_text("somebody's notes, and not a short line of them"), id="no database"),
        pytest.param(damage, id="damaged"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:9000]), id="cut off"),
        pytest.param(lambda file: file.unlink(), id="not there"),
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
    ],
)
def test_a_file_that_is_no_whole_backup_replaces_nothing(
    spoil: Callable[[Path], object], config: Path, tmp_path: Path
) -> None:
    path = store_of(config, *(f"c{i}" for i in range(200)))
    assert copied("backup", config, tmp_path / "backup.db")[0] == 0
    file = tmp_path / "backup.db"
    spoil(file)
    status, _ = copied("restore", config, file)
    assert (status, len(claims_in(path))) == (1, 200)
    assert not list(path.parent.glob("htas.db.*unfinished*"))


def beside(file: Path) -> list[str]:
    return sorted(each.name for each in file.parent.glob(f"{file.name}*"))


def copied_plainly(config: Path, file: Path, *suffixes: str) -> Path:
    """Copy files of a store while a daemon has it open, as `cp` does: c1 is in the file, c2 is in its log alone."""
    path = store_of(config, "c1")
    running = SqliteStore(str(path))
    running.put_claim(NodeClaim("c2", "any", "small", ClaimState.READY, NOW, NOW))
    for suffix in suffixes:
        shutil.copyfile(f"{path}{suffix}", f"{file}{suffix}")
    running.close()
    return path


def test_a_plain_copy_without_its_log_is_refused(config: Path, tmp_path: Path) -> None:
    """It is whole and of our schema, but lacks what was written last: nothing in it says so but its journal mode."""
    path = copied_plainly(config, file := tmp_path / "plain.db", "")
    status, told = copied("restore", config, file)
    assert (status, claims_in(path)) == (1, ["c1", "c2"])
    assert f"{file}: may lack what was written last" in told
    assert "its log plain.db-wal is not beside it" in told
    assert "add --without-log" in told
    assert (beside(file), beside(path)) == (["plain.db"], ["htas.db", "htas.db.lock"])


def test_a_plain_copy_is_restored_without_its_log_where_somebody_says_so(config: Path, tmp_path: Path) -> None:
    path = copied_plainly(config, file := tmp_path / "plain.db", "")
    done = CliRunner().invoke(app, ["store", "restore", str(file), "--without-log", "-c", str(config)])
    assert (done.exit_code, claims_in(path)) == (0, ["c1"]), done.output
    [aside] = path.parent.glob("htas.db.replaced-*")
    assert claims_in(aside) == ["c1", "c2"]
    assert beside(file) == ["plain.db"]


def test_a_plain_copy_with_its_log_is_whole(config: Path, tmp_path: Path) -> None:
    path = copied_plainly(config, file := tmp_path / "plain.db", "", "-wal")
    before = file.read_bytes(), Path(f"{file}-wal").read_bytes()
    path.unlink()
    status, told = copied("restore", config, file)
    assert (status, claims_in(path)) == (0, ["c1", "c2"]), told
    assert (file.read_bytes(), Path(f"{file}-wal").read_bytes()) == before, "a backup stays as it is"
    assert beside(file) == ["plain.db", "plain.db-wal"]


def test_the_file_of_a_store_that_was_closed_is_a_backup(config: Path, tmp_path: Path) -> None:
    path = store_of(config, "c1")
    assert beside(path) == ["htas.db"], "a daemon that ends leaves one file"
    shutil.copyfile(path, file := tmp_path / "plain.db")
    path.unlink()
    store_of(config, "c2")
    assert copied("restore", config, file)[0] == 0
    assert (claims_in(path), beside(file)) == (["c1"], ["plain.db"])


def test_what_replaced_a_store_may_be_taken_back(config: Path, tmp_path: Path) -> None:
    path = store_of(config, "c1")
    assert copied("backup", config, file := tmp_path / "backup.db")[0] == 0
    path.unlink()
    store_of(config, "c2")
    assert copied("restore", config, file)[0] == 0
    [aside] = path.parent.glob("htas.db.replaced-*")
    assert copied("restore", config, aside)[0] == 0
    assert claims_in(path) == ["c2"]


def test_a_log_of_another_file_beside_a_backup_is_not_played_into_it(config: Path, tmp_path: Path) -> None:
    path = store_of(config, "c1")
    assert copied("backup", config, file := tmp_path / "backup.db")[0] == 0
    path.unlink()
    copied_plainly(config, tmp_path / "other.db", "-wal")
    (tmp_path / "other.db-wal").rename(tmp_path / "backup.db-wal")
    assert copied("restore", config, file)[0] == 0
    assert claims_in(path) == ["c1"]


@pytest.mark.parametrize("link", [None, os.link, os.symlink], ids=["itself", "a hard link to it", "a link to it"])
def test_a_store_is_not_restored_from_itself(
    link: Callable[[Path, Path], None] | None, config: Path, tmp_path: Path
) -> None:
    file = path = store_of(config, "c1")
    if link is not None:
        link(path, file := tmp_path / "other.db")
    before = path.read_bytes()
    status, told = copied("restore", config, file)
    assert (status, path.read_bytes()) == (1, before)
    assert "is the store itself, nothing is changed; name a backup" in told
    assert not list(path.parent.glob("htas.db.replaced-*"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param("DROP TABLE bills", "it lacks bills", id="a table is missing"),
        pytest.param("ALTER TABLE runs DROP COLUMN body", "it lacks runs.body", id="a column is missing"),
        pytest.param("DROP TABLE claims", "a database of another program", id="another program's"),
        pytest.param("UPDATE claims SET body = x'00'", "a stored NodeClaim cannot be read", id="its rows are damaged"),
        pytest.param("PRAGMA user_version = 99", "this store is of schema 99", id="of another schema"),
    ],
)
def test_a_database_that_is_no_store_of_this_htas_replaces_nothing(
    spoil: str, says: str, config: Path, tmp_path: Path
) -> None:
    path, file = store_of(config, "c1"), tmp_path / "backup.db"
    assert copied("backup", config, file)[0] == 0
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(spoil)
        connection.commit()
    before = file.read_bytes()
    status, told = copied("restore", config, file)
    assert (status, claims_in(path), file.read_bytes()) == (1, ["c1"], before)
    assert f"error {file}: " in told and says in told
    assert beside(path) == ["htas.db", "htas.db.lock"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("missing/b.db", "{file}: create the folder {file.parent}", id="its folder is missing"),
        pytest.param("", "{file}: is there already", id="a folder"),
    ],
)
def test_a_backup_that_cannot_be_made_names_the_file_that_is_to_be_made(
    name: str, says: str, config: Path, tmp_path: Path
) -> None:
    store_of(config, "c1")
    file = tmp_path / "backups" / name
    (tmp_path / "backups").mkdir()
    status, told = copied("backup", config, file)
    assert (status, says.format(file=file) in told) == (1, True), told


def test_a_backup_is_not_made_beside_the_log_of_another_file(config: Path, tmp_path: Path) -> None:
    """SQLite would play it into the backup when that is opened."""
    store_of(config, "c1")
    (stale := tmp_path / "backup.db-wal").write_bytes(b"")
    status, told = copied("backup", config, tmp_path / "backup.db")
    assert (status, f"{stale}: is there already" in told) == (1, True)
    assert beside(tmp_path / "backup.db") == ["backup.db-wal"]


@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_a_store_that_is_no_file_has_backups_of_its_own(verb: str, config: Path, tmp_path: Path) -> None:
    config.write_text(GOOD + "store: {cassandra: {contactPoints: [localhost], localDatacenter: dc1}}")
    status, told = copied(verb, config, tmp_path / "backup.db")
    assert status == 1
    assert "it is no file" in told
