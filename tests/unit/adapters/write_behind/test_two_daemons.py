"""One remote journal, several daemons one after another: what each knows, and whose word counts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from htas.model.claims import ClaimState
from htas.model.disruptions import Drain, drains_of, rearrangement_of
from htas.model.record import Bill
from htas.ports import ConflictError, PermanentError
from tests.builders import NOW, learned
from tests.contracts.test_store_port import claim, cycle, rearrangement
from tests.far_store import FarStore, Line
from tests.unit.adapters.write_behind.conftest import Start, caught_up


def in_state(found, state: ClaimState, message: str = ""):  # type: ignore[no-untyped-def] # a claim
    return msgspec.structs.replace(found, state=state, message=message)


def test_the_second_writer_is_told_and_learns_what_the_first_wrote(start: Start, line: Line) -> None:
    one = start("one")
    first = one.put_claim(claim())
    other = start("other", by=Line(line.store))
    theirs = other.put_claim(in_state(first, ClaimState.REQUESTED))
    with pytest.raises(ConflictError, match="another writer was first"):
        one.put_claim(in_state(first, ClaimState.FAILED))
    assert list(one.claims()) == [theirs]
    assert one.state().waiting_entries == 0
    assert one.put_claim(in_state(theirs, ClaimState.ACTIVE)).version == 3


def test_after_an_outage_the_word_of_a_daemon_that_was_first_counts(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    first, untouched = store.put_claim(claim("c1")), store.put_claim(claim("c2"))
    line.is_away = True
    store.put_claim(in_state(store.put_claim(in_state(first, ClaimState.REQUESTED)), ClaimState.ACTIVE))
    store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    ours = store.put_claim(in_state(untouched, ClaimState.ACTIVE))
    theirs = far.put_claim(in_state(first, ClaimState.FAILED))
    their_drain = far.put_disruption(Drain("n1", "c1", "Underutilized", NOW))
    with capture_logs() as logs:
        line.is_away = False
        caught_up(store)
    assert list(store.claims()) == list(far.claims()) == [theirs, ours]
    assert list(drains_of(store.disruptions())) == list(drains_of(far.disruptions())) == [their_drain]
    warned = [(log.get("claim") or log.get("disruption"), log["entries"]) for log in logs if "another" in log["event"]]
    assert warned == [("c1", 2), ("drain/n1", 1)]


def test_a_claim_that_another_daemon_released_is_released_here(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    first = store.put_claim(claim())
    far.put_claim(in_state(first, ClaimState.RELEASED))
    with pytest.raises(ConflictError):
        store.put_claim(in_state(first, ClaimState.ACTIVE))
    assert list(store.claims()) == list(far.claims()) == []
    with pytest.raises(ConflictError):
        store.put_claim(claim())


def test_a_drain_that_another_daemon_ended_is_ended_here(start: Start, far: FarStore) -> None:
    store = start()
    drain = store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    far.delete_disruption(drain.id, drain.version)
    with pytest.raises(ConflictError):
        store.put_disruption(msgspec.structs.replace(drain, reason="Underutilized"))
    assert list(drains_of(store.disruptions())) == []


def test_a_rearrangement_that_another_daemon_wrote_counts(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    ours = store.put_disruption(rearrangement())
    theirs = far.put_disruption(msgspec.structs.replace(ours, moved=3))
    with pytest.raises(ConflictError):
        store.put_disruption(msgspec.structs.replace(ours, moved=1))
    assert rearrangement_of(store.disruptions()) == rearrangement_of(far.disruptions()) == theirs
    line.is_away = True
    moved = store.put_disruption(msgspec.structs.replace(theirs, moved=4))
    store.delete_disruption(moved.id, moved.version)
    far.delete_disruption(theirs.id, theirs.version)
    again = far.put_disruption(rearrangement(settled=("u9",)))
    far.put_disruption(msgspec.structs.replace(again, moved=7))
    line.is_away = False
    caught_up(store)
    assert rearrangement_of(store.disruptions()) == rearrangement_of(far.disruptions())


def test_a_rearrangement_that_another_daemon_goes_on_with_is_not_ended_here(
    start: Start, line: Line, far: FarStore
) -> None:
    store = start()
    ours = store.put_disruption(rearrangement())
    theirs = far.put_disruption(msgspec.structs.replace(ours, moved=3))
    with pytest.raises(ConflictError):
        store.delete_disruption(ours.id, ours.version)
    assert rearrangement_of(store.disruptions()) == rearrangement_of(far.disruptions()) == theirs
    line.is_away = True
    store.delete_disruption(theirs.id, theirs.version)
    after = far.put_disruption(msgspec.structs.replace(theirs, moved=4))
    line.is_away = False
    caught_up(store)
    assert rearrangement_of(store.disruptions()) == rearrangement_of(far.disruptions()) == after


def test_a_rearrangement_whose_answer_was_lost_is_ours(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.loses_answers = True
    written = store.put_disruption(rearrangement())
    line.loses_answers = False
    caught_up(store)
    assert rearrangement_of(store.disruptions()) == rearrangement_of(far.disruptions()) == written


def test_claims_that_the_store_has_lost_are_written_anew_and_not_taken_for_released(
    start: Start, line: Line, far: FarStore
) -> None:
    store = start()
    first, second = store.put_claim(claim("c1")), store.put_claim(claim("c2"))
    with far._database.transaction() as connection:
        connection.execute("DELETE FROM claims")
    with pytest.raises(ConflictError):
        store.put_claim(in_state(first, ClaimState.ACTIVE))
    assert [(c.id, c.state, c.version) for c in far.claims()] == [("c1", ClaimState.ACTIVE, 1)]
    assert list(store.claims()) == [*far.claims(), second]
    assert store.catch_up(10.0)
    assert [c.id for c in far.claims()] == ["c1", "c2"]
    assert list(store.claims()) == list(far.claims())


def test_an_empty_file_learns_everything_from_the_store(start: Start, far: FarStore) -> None:
    first = far.put_claim(claim("c1"))
    far.put_claim(in_state(far.put_claim(claim("c2")), ClaimState.RELEASED))
    drain = far.put_disruption(Drain("n1", "c1", "Empty", NOW))
    far.put_learned("f", learned("1", "1Gi"))
    bills = [Bill("c1", "g", "f", 5, NOW - 10**7), Bill("c2", "g", "f", 5, NOW - 10**7, NOW)]
    for bill in (*bills, Bill("c0", "g", "f", 5, NOW - 10**7, NOW - 10**6)):  # closed long ago: not asked for again
        far.put_bill(bill)
    store = start()
    assert (list(store.claims()), list(drains_of(store.disruptions()))) == ([first], [drain])
    assert (store.learned(), list(store.bills())) == ({"f": learned("1", "1Gi")}, bills)
    assert store.put_claim(in_state(first, ClaimState.ACTIVE)).version == 2


def test_what_another_daemon_did_meanwhile_is_taken_over(start: Start, far: FarStore) -> None:
    before = start()
    changed, released = before.put_claim(claim("c1")), before.put_claim(claim("c2"))
    drain = before.put_disruption(Drain("n1", "c1", "Empty", NOW))
    before.put_bill(Bill("c1", "g", "f", 5, NOW))
    before.close()
    far.put_claim(in_state(changed, ClaimState.READY))
    far.put_claim(in_state(released, ClaimState.RELEASED))
    far.put_claim(claim("c3"))
    far.delete_disruption(drain.id, drain.version)
    far.put_bill(Bill("c1", "g", "f", 5, NOW, NOW + 60))
    store = start()
    assert list(store.claims()) == list(far.claims())
    assert [(c.id, c.state) for c in store.claims()] == [("c1", ClaimState.READY), ("c3", ClaimState.WANTED)]
    assert (list(drains_of(store.disruptions())), [bill.ended_at for bill in store.bills()]) == ([], [NOW + 60])


def test_claims_that_another_daemon_launched_and_released_of_late_are_known(start: Start, far: FarStore) -> None:
    """Launches of the last hour count, also those of another leader, and where the buffer was lost."""
    of_late = msgspec.structs.replace(claim("c1"), created_at=NOW - 60, launched_for=("o",))
    gone = far.put_claim(in_state(far.put_claim(of_late), ClaimState.RELEASED))
    long_ago = msgspec.structs.replace(claim("c2"), created_at=NOW - 7200)
    far.put_claim(in_state(far.put_claim(long_ago), ClaimState.RELEASED))
    store = start()
    assert (list(store.claims()), list(store.claims_made_since(0.0))) == ([], [gone])


def test_what_an_earlier_process_left_is_shipped_before_anything_is_taken_over(
    start: Start, line: Line, far: FarStore
) -> None:
    before = start()
    first = before.put_claim(claim())
    line.is_away = True
    second = before.put_claim(in_state(first, ClaimState.ACTIVE))
    before.add_cycle(cycle(NOW))
    before.close()
    line.is_away = False
    store = start()
    assert list(store.claims()) == list(far.claims()) == [second]
    assert store.flush(10.0)
    assert [found.at for found in far.cycles()] == [NOW]


def test_a_start_without_the_store_uses_the_copy_and_takes_over_later(start: Start, line: Line, far: FarStore) -> None:
    start().close()
    theirs, released = far.put_claim(claim("c1")), far.put_claim(claim("c2"))
    far.put_claim(in_state(released, ClaimState.RELEASED))
    line.is_away = True
    store = start(leads=False)
    assert store.catch_up(10.0) is False
    assert store.state().reason == "nobody answers"
    store.put_claim(claim("c1"))  # its machine was found in the cloud: no answer says whether that is right
    store.put_claim(claim("c2"))
    line.is_away = False
    caught_up(store)
    assert list(store.claims()) == list(far.claims()) == [theirs]


def test_a_stand_by_writes_nothing(start: Start, line: Line, far: FarStore) -> None:
    leading = start("leading", by=Line(line.store))
    leading.put_claim(claim())
    stand_by = start("stand-by", leads=False)
    assert list(stand_by.claims()) == []
    assert line.calls == []
    leading.close()
    assert stand_by.catch_up(10.0)
    assert list(stand_by.claims()) == list(far.claims())


def test_two_processes_do_not_ship_from_one_buffer(start: Start, tmp_path: Path) -> None:
    first = start()
    second = start(leads=False)
    with pytest.raises(
        PermanentError,
        match=r"mine\.db: process \d+ on .* uses it; end it, or name another store\.cassandra\.buffer\.path",
    ):
        second.catch_up(10.0)
    first.close()
    assert second.catch_up(10.0)


def test_a_bill_that_waited_is_not_opened_again(start: Start, line: Line, far: FarStore) -> None:
    before = start()
    line.is_away = True
    before.put_bill(Bill("c1", "g", "f", 5, NOW))
    before.put_bill(Bill("c2", "g", "f", 5, NOW))
    before.close()
    line.is_away = False
    closed = Bill("c1", "g", "f", 5, NOW, NOW + 60)
    far.put_bill(closed)
    store = start()
    assert list(store.bills()) == list(far.bills()) == [closed, Bill("c2", "g", "f", 5, NOW)]
