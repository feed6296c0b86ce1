"""Rows that a failing disk, or a person, has changed: SQLite finds nothing wrong with them, and HTAS says what is."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.ports import PermanentError
from tests.contracts.test_store_port import claim, cycle
from tests.stories.play import Story, job

BODIES = [
    pytest.param(b'{"id": "c-\xff"}', id="a byte that is no text"),
    pytest.param(b"\x00", id="no JSON"),
    pytest.param("{}", id="text"),
    pytest.param(7, id="a number"),
]


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
        pytest.param("cycles", SqliteStore.cycles, id="a cycle"),
    ],
)
def test_a_body_that_cannot_be_read_is_told(
    body: object, table: str, read: Callable[[SqliteStore], object], tmp_path: Path
) -> None:
    store = with_change(tmp_path / "h.db", f"UPDATE {table} SET body = ?", body)
    with pytest.raises(PermanentError, match=r"h\.db: a stored \w+ cannot be read"):
        read(store)
    store.close()


def test_a_cycle_whose_unpacked_body_is_no_text_is_told(tmp_path: Path) -> None:
    store = with_change(tmp_path / "h.db", "UPDATE cycles SET body = ?", zlib.compress(b'{"a": "\xff"}'))
    with pytest.raises(PermanentError, match="a stored CycleRecord cannot be read"):
        store.cycles()
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
