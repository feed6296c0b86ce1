import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread

import pytest

from htas.adapters.sqlite import schema
from htas.adapters.sqlite.store import SqliteStore
from htas.ports import HTASError, PermanentError
from tests.contracts.test_store_port import claim


def sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [str(connection.execute("PRAGMA user_version").fetchone()), *connection.iterdump()]


def of_schema(version: int, *changes: str) -> Callable[[Path], None]:
    """Makes a store of that version, with changes to its tables."""

    def make(path: Path) -> None:
        SqliteStore(str(path)).close()
        sql(path, *changes, f"PRAGMA user_version = {version}")

    return make


def damage(path: Path) -> None:
    SqliteStore(str(path)).close()
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8000)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(of_schema(99), "is of schema 99, this htas reads 1; use the htas that wrote it, or move the file away", id="of another schema"),
        pytest.param(of_schema(4), "is of schema 4, this htas reads 1", id="of a schema before the first release"),
        pytest.param(of_schema(1, "DROP TABLE disruptions"), "another program", id="of the first schema before the first release"),
        pytest.param(lambda path: path.write_bytes(b"apiVersion: htas.io/v1alpha1\n" * 40), "no SQLite database", id="a text file"),
        pytest.param(lambda path: sql(path, "CREATE TABLE customers (name TEXT)"), "another program", id="a database of another program"),
        pytest.param(lambda path: sql(path, "CREATE TABLE claims (x)", "PRAGMA user_version = 1"), "another program", id="another program with a table of the same name"),
        pytest.param(damage, "the file is damaged", id="a damaged file"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_ours_is_refused_untouched(tmp_path: Path, make: Callable[[Path], None], says: str) -> None:
    path = tmp_path / "htas.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(PermanentError, match=says) as caught:
        SqliteStore(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("missing/htas.db", "create the folder .*missing", id="its folder is missing"),
        pytest.param(".", "it is a folder: name a file in it", id="a folder"),
    ],
)
def test_a_path_that_cannot_be_a_file_says_what_to_do(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(PermanentError, match=says):
        SqliteStore(str(tmp_path / name))


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter, none but its owner may write; we are not its owner while the test runs."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_that_may_not_be_written_is_refused(shared_folder: Path) -> None:
    path = shared_folder / "htas.db"
    SqliteStore(str(path)).close()
    path.chmod(0o444)
    shared_folder.chmod(0o555)
    owner = os.geteuid()
    if owner == 0:
        os.seteuid(65534)  # permissions do not bind root: be nobody meanwhile
    try:
        with pytest.raises(PermanentError, match="the right to write the file and its folder"):
            SqliteStore(str(path))
    finally:
        os.seteuid(owner)


def test_tables_that_cannot_all_be_made_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "htas.db"
    monkeypatch.setattr(schema, "STATEMENTS", (*schema.STATEMENTS, "ALTER TABLE absent ADD COLUMN note TEXT"))
    with pytest.raises(PermanentError, match="no such table: absent"):
        SqliteStore(str(path))
    assert content(path) == ["(0,)", "BEGIN TRANSACTION;", "COMMIT;"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_that_another_process_is_writing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself refuses to change the journal mode at once in this state, whatever its busy timeout."""
    path = str(tmp_path / "htas.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(time, "sleep", lambda seconds: other.execute("ROLLBACK"))
    store = SqliteStore(path)
    assert not other.in_transaction
    assert store.put_claim(claim()).version == 1
    store.close()
    other.close()


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    failed: list[HTASError] = []

    def open_it(path: str, start: Barrier) -> None:
        start.wait(30)
        try:
            SqliteStore(path).close()
        except HTASError as error:
            failed.append(error)

    for number in range(10):
        start = Barrier(8)
        path = str(tmp_path / f"{number}.db")
        threads = [Thread(target=open_it, args=(path, start)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
