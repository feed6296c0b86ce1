import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from htas.adapters.sqlite import database
from htas.adapters.sqlite.database import Database
from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.record import Bill, ProfileEvent, ProfileRow, Retention
from htas.ports import ConflictError, PermanentError, TransientError
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, run

FULL, NORMAL = 2, 1
HOUR = 3600.0


def test_journal_entries_wait_for_the_disk_and_history_does_not(tmp_path: Path) -> None:
    opened = Database(str(tmp_path / "htas.db"))
    levels = []
    for durable in (True, False, True):
        with opened.transaction(durable=durable) as connection:
            levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])
    assert levels == [FULL, NORMAL, FULL]
    assert opened.rows("PRAGMA journal_mode") == [("wal",)]
    opened.close()


def test_who_closes_it_last_leaves_one_file(tmp_path: Path) -> None:
    """It says so by its journal mode (1 in place of 2 in its header), which a copy while it is open does not."""
    path = tmp_path / "htas.db"
    first, second = SqliteStore(str(path)), SqliteStore(str(path))
    first.close()
    assert second.put_claim(claim()).version == 1
    assert path.read_bytes()[18] == 2
    second.close()
    assert path.read_bytes()[18] == 1
    assert list(tmp_path.iterdir()) == [path]
    third = SqliteStore(str(path))
    assert [each.id for each in third.claims()] == [claim().id]
    third.close()


def test_a_transaction_that_ends_in_an_error_leaves_nothing(tmp_path: Path) -> None:
    opened = Database(str(tmp_path / "htas.db"))
    with pytest.raises(ZeroDivisionError), opened.transaction() as connection:
        connection.execute("INSERT INTO learned VALUES ('f', '{}')")
        raise ZeroDivisionError
    assert opened.rows("SELECT * FROM learned") == []
    with opened.transaction() as connection:
        connection.execute("INSERT INTO learned VALUES ('f', '{}')")
    opened.close()


def test_a_transaction_inside_another_is_a_part_of_it() -> None:
    opened = Database(":memory:")
    with pytest.raises(ZeroDivisionError), opened.transaction():
        with opened.transaction(durable=False) as connection:
            connection.execute("INSERT INTO learned VALUES ('f', '{}')")
        raise ZeroDivisionError
    assert opened.rows("SELECT * FROM learned") == []
    opened.close()


def test_a_file_that_another_process_keeps_locked_is_worth_another_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "htas.db")
    monkeypatch.setattr(database, "BUSY_S", 0.0)
    store = SqliteStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransientError, match=r"htas\.db: database is locked"):
        store.put_claim(claim())
    other.execute("ROLLBACK")
    other.close()
    assert store.put_claim(claim()).version == 1
    store.close()


def test_a_full_disk_is_worth_another_try() -> None:
    opened = Database(":memory:")
    opened.rows("PRAGMA max_page_count = 1")
    with pytest.raises(TransientError, match="database or disk is full"), opened.transaction() as connection:
        connection.execute("INSERT INTO learned VALUES ('f', zeroblob(1000000))")
    opened.rows("PRAGMA max_page_count = 100000")
    with opened.transaction() as connection:
        connection.execute("INSERT INTO learned VALUES ('f', zeroblob(1000000))")
    opened.close()


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes: the kernel refuses the write, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_in_the_middle_of_the_work_loses_nothing_and_is_used_again(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "htas.db"))
    written: list[NodeClaim] = []
    with files_end_at(300_000), pytest.raises(TransientError, match=r"htas\.db: "):
        for number in range(1000):
            written += [store.put_claim(claim(f"claim-{number:04d}"))]
    assert 10 < len(written) < 1000
    assert list(store.claims()) == written
    with files_end_at(300_000), pytest.raises(TransientError):
        store.probe()
    store.probe()
    written.append(store.put_claim(claim("one-more")))
    assert list(store.claims()) == written
    store.close()


def test_a_closed_store_says_so() -> None:
    store = SqliteStore(":memory:")
    store.close()
    for use in (store.claims, lambda: store.put_claim(claim())):
        with pytest.raises(PermanentError, match="closed database"):
            use()


def test_what_another_version_wrote_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "htas.db")
    store = SqliteStore(path)
    opened = Database(path)
    with opened.transaction() as connection:
        connection.execute("""INSERT INTO claims VALUES ('c', 1, 1, '{"id": "c", "state": "Levitating"}')""")
    with pytest.raises(PermanentError, match=r"htas.db: a stored NodeClaim cannot be read: .*another version of htas"):
        store.claims()
    opened.close()
    store.close()


def test_cycles_are_kept_within_bounds_of_bytes_too() -> None:
    store = SqliteStore(":memory:", kept_bytes=1 << 14)
    for number in range(300):
        store.add_cycle(cycle(NOW + number))
    kept = list(store.cycles(limit=1000))
    assert 10 < len(kept) < 290
    assert kept[-1].at == NOW + 299
    store.close()


@pytest.mark.parametrize(
    ("kept_cycles", "kept_h", "left"),
    [
        pytest.param(3, 10**6, [7, 8, 9], id="by count"),
        pytest.param(100, 4.0, [5, 6, 7, 8, 9], id="by age, measured from the newest"),
        pytest.param(2, 4.0, [8, 9], id="by both, whichever is stricter"),
    ],
)
def test_cycles_are_kept_within_bounds(kept_cycles: int, kept_h: float, left: list[int]) -> None:
    store = SqliteStore(":memory:", kept_cycles=kept_cycles, retention=Retention(cycles_s=kept_h * HOUR))
    for number in range(10):
        store.add_cycle(cycle(NOW + number * HOUR))
    assert [(found.at - NOW) / HOUR for found in store.cycles()] == left
    store.close()


def test_what_is_older_than_it_is_to_be_kept_goes() -> None:
    kept = Retention(profile_s=2 * HOUR, runs_s=3 * HOUR, bills_s=4 * HOUR, released_s=HOUR)
    store = SqliteStore(":memory:", retention=kept)
    for hour in range(6):
        at = NOW + hour * HOUR
        store.add_profile([ProfileRow(at, ProfileEvent.DEPLOYMENT, "n", "f", 0, 1, 1, 1, 1)])
        store.add_runs([run(f"r{hour}", at)])
        store.put_bill(Bill(f"b{hour}", "g", "f", 1, NOW, at))
        done = store.put_claim(claim(f"c{hour}"))
        store.put_claim(msgspec.structs.replace(done, state=ClaimState.RELEASED, since=at))
    store.put_bill(Bill("open", "g", "f", 1, NOW - 1000 * HOUR))
    kept_claim = store.put_claim(claim("open"))
    store.add_cycle(cycle(NOW + 5 * HOUR))
    assert [(row.event_time - NOW) / HOUR for row in store.profile()] == [3, 4, 5]
    assert [found.uid for found in store.runs()] == ["r2", "r3", "r4", "r5"]
    assert [bill.claim for bill in store.bills()] == ["b1", "b2", "b3", "b4", "b5", "open"]
    assert list(store.claims()) == [kept_claim]
    assert store.put_claim(claim("c0")).version == 1  # long released: forgotten
    with pytest.raises(ConflictError):
        store.put_claim(claim("c5"))
    store.close()
