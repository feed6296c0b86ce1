"""Rows that a failing disk, or a person, has changed: SQLite finds nothing wrong with them, and HTAS says what is."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from htas.adapters import stored
from htas.adapters.sqlite.store import SqliteStore
from htas.ports import PermanentError
from tests.contracts.test_store_port import claim, cycle, run
from tests.stories.play import Story, job

BODIES = [
    pytest.param(b'{"id": "c-\xff"}', id="a byte that is no text"),
    pytest.param(b"\x00", id="no JSON"),
    pytest.param("{}", id="text"),
    pytest.param(7, id="a number"),
]
DEEP = b"[" * 100_000 + b"]" * 100_000
"""Lists in lists, beyond what a parser takes: it raises RecursionError."""


def with_change(path: Path, change: str, *values: object) -> SqliteStore:
    store = SqliteStore(str(path))
    store.put_claim(claim("c"))
    store.add_cycle(cycle(1.0))
    store.close()
    with sqlite3.connect(path) as file:
        file.execute(change, values)
    file.close()
    return SqliteStore(str(path))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("table", "read"),
    [
        pytest.param("claims", SqliteStore.claims, id="a claim"),
        pytest.param("cycles", lambda store: list(store.cycles()), id="a cycle"),
    ],
)
def test_a_body_that_cannot_be_read_is_told(
    body: object, table: str, read: Callable[[SqliteStore], object], tmp_path: Path
) -> None:
    store = with_change(tmp_path / "h.db", f"UPDATE {table} SET body = ?", body)
    with pytest.raises(PermanentError, match=r"h\.db: a stored \w+ cannot be read"):
        read(store)
    store.close()


@pytest.mark.parametrize("body", [b'{"a": "\xff"}', DEEP], ids=["no text", "lists in lists without end"])
def test_a_cycle_whose_unpacked_body_is_none_is_told(body: bytes, tmp_path: Path) -> None:
    store = with_change(tmp_path / "h.db", "UPDATE cycles SET body = ?", zlib.compress(body))
    with pytest.raises(PermanentError, match="a stored CycleRecord cannot be read"):
        list(store.cycles())
    store.close()


@pytest.mark.parametrize("body", [*BODIES, zlib.compress(DEEP)])
def test_one_row_of_history_that_cannot_be_read_does_not_lose_the_others(
    body: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = with_change(tmp_path / "h.db", "UPDATE cycles SET body = ?", body)
    store.add_cycle(cycle(2.0))
    store.add_cycle(cycle(3.0))
    assert [found.at for found in store.cycles()] == [2.0, 3.0]
    assert "1 of 3 rows of history are left out: " in caplog.text
    store.close()


@pytest.mark.parametrize(("beyond", "is_read"), [(0, True), (1, False)])
def test_a_cycle_that_unpacks_to_more_than_is_taken_is_told(
    beyond: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousandth of its size on the disk: 900 MB took 1.8 GB to be read."""
    most = 1 << 20
    monkeypatch.setattr(stored, "MOST_UNPACKED", most)
    large = msgspec.json.encode(cycle(1.0)).ljust(most + beyond)
    store = with_change(tmp_path / "h.db", "UPDATE cycles SET body = ?", zlib.compress(large))
    store.add_cycle(cycle(2.0))
    assert [found.at for found in store.cycles()] == ([1.0, 2.0] if is_read else [2.0])
    assert ("it unpacks to more than 1,048,576 bytes" in caplog.text) is not is_read
    if not is_read:
        with pytest.raises(PermanentError, match=r"h\.db: a stored CycleRecord cannot be read: it unpacks"):
            store.cycle(1)
    store.close()


def test_a_cycle_of_which_the_end_is_missing_is_told(tmp_path: Path) -> None:
    packed = zlib.compress(msgspec.json.encode(cycle(1.0)))
    store = with_change(tmp_path / "h.db", "UPDATE cycles SET body = ?", packed[:-5])
    with pytest.raises(PermanentError, match="a stored CycleRecord cannot be read: it ends too early"):
        store.cycle(1)
    store.close()


def test_nor_does_one_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = with_change(tmp_path / "h.db", "INSERT INTO runs VALUES ('u', 'n', 5.0, ?)", DEEP)
    store.add_runs([run("a", 1.0), run("b", 9.0)])
    assert [found.uid for found in store.runs()] == ["a", "b"]
    assert "1 of 3 rows" in caplog.text
    store.close()


@pytest.mark.parametrize(
    "values", ["1, 'nonsense', 'n', 't', 1, 1, 1, 1, 1", "1, 'deployment', 'n', 't', 'x', 1, 1, 1, 1"]
)
def test_a_profile_row_that_makes_no_sense_is_told(values: str, tmp_path: Path) -> None:
    store = with_change(tmp_path / "h.db", f"INSERT INTO profile VALUES ({values})")
    for read in (store.profile, store.latest):
        with pytest.raises(PermanentError, match="a stored ProfileRow cannot be read"):
            read()
    store.close()


def test_a_daemon_whose_newest_cycle_on_record_is_damaged_goes_on() -> None:
    """Each of its cycles ended in a zlib.error, so that nothing was placed any more."""
    story = Story(None, *(job(f"job-{i}", at_s=400.0 * i) for i in range(2))).play(200)
    with story.store._database.transaction() as connection:
        connection.execute("UPDATE cycles SET body = x'00'")
    story.crash()
    story.play(3 * 3600).assert_over(2)
