"""Who is at fault: the record, the store, or nobody but another daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.adapters.write_behind.outbox import waiting_in
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.claims import ClaimState
from htas.ports import ConflictError, PermanentError, StorePort
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, row, run
from tests.far_store import FarStore, Line
from tests.unit.adapters.write_behind.conftest import QUICK, Start, caught_up
from tests.waiting import until


def test_a_store_that_cannot_be_opened_costs_no_record(far: FarStore, tmp_path: Path) -> None:
    tried: list[int] = []

    def opened() -> StorePort:
        tried.append(1)
        if len(tried) < 6:
            raise PermanentError("it was written by a newer htas")
        return far

    store = WriteBehindStore(str(tmp_path / "mine.db"), opened, timing=QUICK)
    store.catch_up(0.0)
    store.add_profile([row("n", NOW)])
    store.add_cycle(cycle(NOW))
    until(lambda: len(tried) >= 6)
    caught_up(store)
    assert store.state().dropped == 0
    assert (len(far.profile()), len(list(far.cycles()))) == (1, 1)
    store.close()


def test_runs_are_never_given_up(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.refuses = lambda name, values: name == "add_runs"
    for number in range(10):
        store.add_runs([run(f"r{number}", NOW + number)])
        store.add_cycle(cycle(NOW + number))
    until(lambda: len(list(far.cycles(limit=100))) == 10)  # the rest goes on
    until(lambda: store.state().is_away)
    assert "it refuses a run (r9)" in store.state().reason
    line.refuses = lambda name, values: False
    caught_up(store)
    assert store.state().dropped == 0
    assert [found.uid for found in far.runs()] == [f"r{number}" for number in range(10)]


def test_a_conflict_that_is_known_before_anybody_waits_is_told_all_the_same(
    start: Start, far: FarStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = start()
    far.put_claim(claim("c1"))  # another daemon was first
    journal = store._journal
    wake = journal.wake

    def slow_wake() -> None:
        wake()
        until(lambda: journal.is_idle)  # as if this thread had been stopped for a while

    monkeypatch.setattr(journal, "wake", slow_wake)
    with pytest.raises(ConflictError):
        store.put_claim(claim("c1"))


def test_whoever_acts_before_the_remote_journal_is_known_is_told_when_it_is(start: Start, line: Line) -> None:
    line.is_away = True
    store = start(leads=False)
    told: list[int] = []
    store.on_late_take_over = lambda: told.append(1)
    assert not store.catch_up(0.05)
    mine = store.put_claim(claim("mine"))
    line.is_away = False
    caught_up(store)
    until(lambda: bool(told))
    assert [found.id for found in store.claims()] == [mine.id]
    assert store.catch_up(10.0)
    assert told == [1], "one that is waited for is no surprise"


def test_the_local_copy_forgets_what_is_old(start: Start) -> None:
    store = start()
    for day in range(3):
        made = store.put_claim(claim(f"c{day}"))
        at = NOW + day * 86_400
        store.put_claim(type(made)(made.id, "g", "f", ClaimState.RELEASED, at, at, version=made.version))
        store.add_cycle(cycle(at + 86_400 * 0.5))
    kept = store._copy.database.rows("SELECT id FROM claims")
    assert kept == [("c2",)]


def test_entries_of_a_newer_htas_are_refused_and_kept(start: Start) -> None:
    store = start("old", leads=False)
    store.add_profile([row("n", NOW)])
    with store._copy.database.transaction() as connection:
        connection.execute("UPDATE outbox SET kind = 'dreams'")
    store.close()
    with pytest.raises(PermanentError, match=r"holds entries of a newer htas \(dreams\); start that one"):
        start("old")


def test_others_can_see_how_much_waits(start: Start, tmp_path: Path) -> None:
    store = start(leads=False)
    store.add_profile([row("n", NOW)])
    store.add_cycle(cycle(NOW))
    assert waiting_in(str(tmp_path / "mine.db")) == 2
    assert waiting_in(str(tmp_path / "nowhere.db")) == 0
    assert not (tmp_path / "nowhere.db").exists()
