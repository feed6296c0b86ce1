from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.plan import Plan
from htas.model.record import Bill, CycleRecord, ProfileEvent, ProfileRow
from htas.model.snapshot import ClusterSnapshot, ClusterView, Drain
from htas.ports import ConflictError, PermanentError, StorePort
from tests.builders import NOW, amounts


def claim(name: str = "c1", state: ClaimState = ClaimState.WANTED, version: int = 0) -> NodeClaim:
    return NodeClaim(name, "g", "f", state, NOW, NOW, version=version)


def cycle(at: float) -> CycleRecord:
    return CycleRecord(0, at, ("scheduling",), ClusterSnapshot(at, ClusterView()), Plan(at))


def test_claims_are_compared_and_set(store: StorePort) -> None:
    first = store.put_claim(claim())
    assert (first.version, list(store.claims())) == (1, [first])
    second = store.put_claim(msgspec.structs.replace(first, state=ClaimState.REQUESTED))
    with pytest.raises(ConflictError):
        store.put_claim(msgspec.structs.replace(first, state=ClaimState.FAILED))
    with pytest.raises(ConflictError):
        store.put_claim(claim())
    assert list(store.claims()) == [second]


def test_released_claims_are_history(store: StorePort) -> None:
    first = store.put_claim(claim())
    store.put_claim(msgspec.structs.replace(first, state=ClaimState.RELEASED))
    assert list(store.claims()) == []
    with pytest.raises(ConflictError):
        store.put_claim(claim())


def test_of_two_writers_exactly_one_wins(store: StorePort) -> None:
    won: list[str] = []

    def write(name: str) -> None:
        try:
            store.put_claim(msgspec.structs.replace(claim(), message=name))
            won.append(name)
        except ConflictError:
            return

    threads = [Thread(target=write, args=(f"writer-{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.message for found in store.claims()] == won


def test_drains_come_and_go(store: StorePort) -> None:
    drain = store.put_drain(Drain("n1", "c1", "Empty", NOW))
    assert list(store.drains()) == [drain]
    with pytest.raises(ConflictError):
        store.put_drain(Drain("n1", "c1", "Empty", NOW))
    store.delete_drain("n1")
    store.delete_drain("n1")
    assert list(store.drains()) == []


def test_what_was_learned_is_kept(store: StorePort) -> None:
    store.put_learned("f", amounts("1", "1Gi", 10))
    store.put_learned("f", amounts("2", "2Gi", 10))
    assert store.learned() == {"f": amounts("2", "2Gi", 10)}


def test_bills_are_opened_and_closed(store: StorePort) -> None:
    bill = Bill("c1", "g", "f", 5, NOW)
    store.put_bill(bill)
    store.put_bill(msgspec.structs.replace(bill, ended_at=NOW + 60))
    store.put_bill(Bill("c2", "g", "f", 5, NOW))
    assert [(b.claim, b.ended_at) for b in store.bills()] == [("c1", NOW + 60), ("c2", None)]
    assert [b.claim for b in store.bills(since=NOW + 61)] == ["c2"]


def test_profile_rows_come_back_in_order(store: StorePort) -> None:
    rows = [
        ProfileRow(NOW + i, ProfileEvent.DEPLOYMENT, f"n{i % 2}", "f", i, 2**34, 8000, 2**33, 4000) for i in range(4)
    ]
    store.add_profile(rows)
    assert list(store.profile()) == rows
    assert list(store.profile("n1", NOW + 2)) == [rows[3]]


def test_cycles_come_back_as_they_were(store: StorePort) -> None:
    numbers = [store.add_cycle(cycle(NOW + i)) for i in range(5)]
    assert store.cycle(numbers[2]) == msgspec.structs.replace(cycle(NOW + 2), id=numbers[2])
    assert [found.id for found in store.cycles(limit=2)] == numbers[-2:]
    assert [found.id for found in store.cycles(since=NOW + 4)] == numbers[-1:]
    assert store.cycle(999) is None


def _race(path: str, name: str, won: object) -> None:
    store = SqliteStore(path)
    try:
        store.put_claim(msgspec.structs.replace(claim(), message=name))
        won.put(name)  # type: ignore[attr-defined]
    except ConflictError:
        won.put("")  # type: ignore[attr-defined]
    store.close()


def test_of_two_processes_exactly_one_wins(tmp_path: Path) -> None:
    path = str(tmp_path / "htas.db")
    SqliteStore(path).close()
    context = multiprocessing.get_context("spawn")
    won = context.SimpleQueue()
    processes = [context.Process(target=_race, args=(path, name, won)) for name in ("a", "b")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    names = sorted([won.get(), won.get()])
    assert names[0] == ""
    assert names[1] in ("a", "b")


WRITER = """
import sys
from htas.adapters.sqlite.store import SqliteStore
from tests.contracts.test_store_port import claim
store = SqliteStore(sys.argv[1])
number = 0
while True:
    number += 1
    store.put_claim(claim(f"c{number:05d}"))
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "htas.db")
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 50:
            acknowledged = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    store = SqliteStore(path)
    assert len(store.claims()) >= acknowledged
    store.close()


def test_history_is_kept_within_bounds(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "htas.db"), kept_cycles=3, kept_s=100)
    for i in range(6):
        store.add_cycle(cycle(NOW + i))
    assert len(store.cycles()) == 3
    store.add_cycle(cycle(NOW + 1000))
    assert len(store.cycles()) == 1
    store.close()


@pytest.mark.parametrize("case", ["newer", "garbage", "no folder"])
def test_a_file_that_cannot_be_used_is_refused_untouched(tmp_path: Path, case: str) -> None:
    path = tmp_path / "htas.db"
    if case == "newer":
        import sqlite3

        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
    elif case == "garbage":
        path.write_bytes(b"this is no database, " * 100)
    else:
        path = tmp_path / "missing" / "htas.db"
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(PermanentError, match=str(path)):
        SqliteStore(str(path))
    assert (path.read_bytes() if path.exists() else None) == before
