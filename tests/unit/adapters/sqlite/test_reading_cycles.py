"""Reading many cycles holds one at a time, and nothing of the file."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.documents.history import cycle_line
from htas.model.record import CycleRecord
from htas.profiler.history import entries
from htas.web.chronicle import Chronicle
from tests.contracts.test_store_port import NOW, cycle

LARGE = 1 << 20
MANY = 30


def fill(store: SqliteStore) -> None:
    for i in range(MANY):
        store.add_cycle(msgspec.structs.replace(cycle(NOW + i), stages=("x" * LARGE,)))


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda records: Chronicle().remember(records), id="decisions"),
        pytest.param(lambda records: list(entries(records)), id="history"),
        pytest.param(lambda records: sum(len(cycle_line(record).stages) for record in records), id="cycles"),
    ],
)
def test_of_many_cycles_no_more_than_two_are_held(read: Callable[[Iterable[CycleRecord]], object]) -> None:
    """A hundred of 18 MB each took 3 GB. Beside the one before, a record is held as its body and as what that says."""
    store = SqliteStore(":memory:")
    fill(store)
    tracemalloc.start()
    try:
        read(store.cycles(limit=MANY))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        store.close()
    assert most < 5 * LARGE


def test_who_reads_slowly_holds_nothing_of_the_file(tmp_path: Path) -> None:
    """An open cursor would keep the log of writes growing for as long as a page is being put together."""
    path = tmp_path / "h.db"
    store = SqliteStore(str(path))
    fill(store)
    found = store.cycles()
    next(found)
    with closing(sqlite3.connect(path)) as other:
        (is_held, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not is_held
    store.close()


def test_what_is_forgotten_while_others_are_read_is_not_found() -> None:
    store = SqliteStore(":memory:", kept_cycles=3)
    for i in range(3):
        store.add_cycle(cycle(NOW + i))
    found = store.cycles()
    assert next(found).at == NOW
    store.add_cycle(cycle(NOW + 3))
    store.add_cycle(cycle(NOW + 4))
    assert [record.at for record in found] == [NOW + 2]
    store.close()
