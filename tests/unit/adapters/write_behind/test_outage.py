"""The remote store goes away: nothing waits for it, nothing is lost, and order is kept."""

from __future__ import annotations

from itertools import count
from time import monotonic

import msgspec
import pytest
from structlog.testing import capture_logs

from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.claims import ClaimState
from htas.model.disruptions import Drain, drains_of
from htas.model.record import Bill
from htas.ports import ConflictError, PermanentError, RefusedError, TransientError
from tests.builders import NOW, learned
from tests.contracts.test_store_port import claim, cycle, row, run
from tests.far_store import FarStore, Line
from tests.unit.adapters.write_behind.conftest import Start, caught_up
from tests.waiting import until


def write(store: WriteBehindStore, number: int) -> None:
    """A bit of everything, of that number."""
    first = store.put_claim(claim(f"c{number:02}"))
    drain = store.put_disruption(Drain(f"n{number:02}", first.id, "Empty", NOW))
    store.put_claim(msgspec.structs.replace(first, state=ClaimState.READY))
    store.delete_disruption(drain.id, drain.version)
    store.put_learned(f"f{number:02}", learned("1", "1Gi"))
    store.put_bill(Bill(first.id, "g", "f", 5, NOW))
    store.add_profile([row(f"n{number:02}", NOW + number)])
    store.add_runs([run(f"u{number:02}", NOW + number)])
    store.add_cycle(cycle(NOW + number))


def assert_all_is_there(far: FarStore, count: int) -> None:
    numbers = range(count)
    assert [(c.id, c.state, c.version) for c in far.claims()] == [(f"c{n:02}", ClaimState.READY, 2) for n in numbers]
    assert list(drains_of(far.disruptions())) == []
    assert list(far.learned()) == [f"f{n:02}" for n in numbers]
    assert [bill.claim for bill in far.bills()] == [f"c{n:02}" for n in numbers]
    rows = list(dict.fromkeys(far.profile()))  # a call that hung may arrive twice; SQLite's rows have no key
    assert rows == [row(f"n{n:02}", NOW + n) for n in numbers]
    assert [found.uid for found in far.runs()] == [f"u{n:02}" for n in numbers]
    assert [found.at - NOW for found in far.cycles()] == list(numbers)


def test_nothing_that_was_acknowledged_is_lost_and_order_is_kept(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    for number in range(30):
        line.is_away = 10 <= number < 20
        write(store, number)
    caught_up(store)
    assert_all_is_there(far, 30)
    for name in ("put_claim", "add_cycle", "put_bill"):
        shipped = [values[0] for called, values in line.calls if called == name]
        keys = [getattr(each, "at", None) or getattr(each, "id", None) or each.claim for each in shipped]
        assert keys == sorted(keys), name


def test_a_daemon_plans_on_from_its_copy(start: Start, line: Line) -> None:
    store = start()
    line.is_away = True
    first = store.put_claim(claim())
    second = store.put_claim(msgspec.structs.replace(first, state=ClaimState.READY))
    drain = store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    store.put_learned("f", learned("1", "1Gi"))
    store.put_bill(Bill("c1", "g", "f", 5, NOW))
    assert (list(store.claims()), list(drains_of(store.disruptions()))) == ([second], [drain])
    assert (list(store.learned()), [bill.claim for bill in store.bills()]) == (["f"], ["c1"])
    with pytest.raises(ConflictError):
        store.put_claim(first)
    assert store.state().waiting_entries == 5


def test_history_cannot_be_read_meanwhile_and_says_why(start: Start, line: Line) -> None:
    store = start()
    line.is_away = True
    store.add_runs([run("u", NOW)])
    until(lambda: store.state().is_away)
    for read in (store.cycles, store.profile, store.latest, store.runs, lambda: store.cycle(1)):
        with pytest.raises(TransientError, match="nobody answers"):
            read()
    line.is_away = False
    caught_up(store)
    assert [found.uid for found in store.runs()] == ["u"]


def test_people_are_told_when_it_went_and_when_it_has_caught_up(start: Start, line: Line) -> None:
    store = start()
    assert store.state().is_away is False
    with capture_logs() as logs:
        line.is_away = True
        store.put_claim(claim())
        store.add_cycle(cycle(NOW))
        until(lambda: line.missed == {"put_claim", "add_cycle"})
        state = store.state()
        assert (state.reason, state.waiting_entries, state.is_behind) == ("nobody answers", 2, True)
        assert state.since > NOW / 2
        assert state.waiting_bytes > 200
        line.is_away = False
        caught_up(store)
    assert store.state().waiting_bytes == 0
    told = [(log["event"].split(";")[0], log.get("entries")) for log in logs]
    assert told == [("the store is away", None), ("the store is back and has caught up", 2)]


def test_a_store_that_lets_nobody_in_is_away_and_costs_nothing(start: Start, line: Line, far: FarStore) -> None:
    line.error, line.refuses = RefusedError, lambda name, values: name.startswith(("add", "put", "claims"))
    store = start()
    write(store, 0)
    until(lambda: store.state().is_away)
    assert (store.state().reason, store.state().dropped) == ("it will never be written", 0)
    line.refuses = lambda name, values: False
    caught_up(store)
    assert_all_is_there(far, 1)


def test_a_journal_entry_that_the_store_refuses_is_kept(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.refuses = lambda name, values: name == "put_claim"
    written = store.put_claim(claim())
    assert (store.state().reason, list(far.claims())) == ("it will never be written", [])
    line.refuses = lambda name, values: False
    until(lambda: list(far.claims()) == [written])


HANGS = ShippingTiming(call_s=0.05, first_pause_s=0.01, longest_pause_s=0.02, close_s=0.1)


def test_a_store_that_hangs_delays_history_not_at_all_and_the_journal_once(
    start: Start, line: Line, far: FarStore
) -> None:
    store = start(timing=HANGS)
    line.flows.clear()
    began = monotonic()
    for number in range(20):
        write(store, number)
    assert monotonic() - began < 5.0  # one limit of 0.05 s, and the disk
    assert store.state().reason.startswith("no answer")
    line.flows.set()
    caught_up(store)
    assert_all_is_there(far, 20)


def test_a_store_that_hangs_is_told_of_though_nobody_waits_for_it(start: Start, line: Line, far: FarStore) -> None:
    store, written = start(timing=HANGS), count()
    line.flows.clear()
    until(lambda: store.add_cycle(cycle(NOW + next(written))) and store.state().is_away)
    assert store.state().reason.startswith("no answer for")
    line.flows.set()
    caught_up(store)
    assert len(list(far.cycles(limit=10**6))) == next(written)


def test_an_end_waits_for_a_hanging_store_no_longer_than_it_may(start: Start, line: Line, far: FarStore) -> None:
    store = start(timing=HANGS)
    line.flows.clear()
    write(store, 0)
    began = monotonic()
    store.close()
    assert monotonic() - began < 5.0
    line.flows.set()
    assert start().flush(10.0)
    assert_all_is_there(far, 1)


def test_an_answer_that_was_lost_is_no_conflict(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.loses_answers = True
    first = store.put_claim(claim())
    second = store.put_claim(msgspec.structs.replace(first, state=ClaimState.READY))
    drain = store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    until(lambda: list(far.claims()))
    line.loses_answers = False
    caught_up(store)
    assert (list(store.claims()), list(far.claims())) == ([second], [second])
    assert list(drains_of(store.disruptions())) == list(drains_of(far.disruptions())) == [drain]
    third = store.put_claim(msgspec.structs.replace(second, state=ClaimState.RELEASED))
    assert (third.version, list(far.claims())) == (3, [])


def test_a_lost_answer_to_the_last_write_of_a_claim_is_no_conflict_either(
    start: Start, line: Line, far: FarStore
) -> None:
    store = start()
    first = store.put_claim(claim())
    line.loses_answers = True
    with capture_logs() as logs:
        store.put_claim(msgspec.structs.replace(first, state=ClaimState.RELEASED))
        line.loses_answers = False
        caught_up(store)
    assert list(store.claims()) == list(far.claims()) == []
    assert not any("another daemon" in log["event"] for log in logs)


def test_rows_of_an_outage_go_out_in_few_calls(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.is_away = True
    for number in range(150):
        store.add_profile([row(f"n{number % 7}", NOW + number)])
        store.add_cycle(cycle(NOW + number))
    line.is_away = False
    caught_up(store)
    assert [found.event_time for found in far.profile()] == [NOW + number for number in range(150)]
    assert line.names().count("add_profile") <= 5


def test_a_record_that_cannot_be_written_does_not_stop_the_rest(start: Start, line: Line, far: FarStore) -> None:
    store = start()
    line.refuses = lambda name, values: (
        (name == "add_cycle" and values[0].at == NOW + 1)
        or (name == "add_profile" and any(each.instance_name == "bad" for each in values[0]))
    )
    line.is_away = True
    for number, name in enumerate(("a", "bad", "b")):
        store.add_profile([row(name, NOW + number)])
        store.add_cycle(cycle(NOW + number))
    line.is_away = False
    until(lambda: store.state().dropped == 2)
    caught_up(store)
    assert [found.instance_name for found in far.profile()] == ["a", "b"]
    assert [found.at - NOW for found in far.cycles()] == [0, 2]
    assert store.state().dropped == 2


def test_a_store_that_refuses_everything_does_not_cost_the_buffer(start: Start, line: Line, far: FarStore) -> None:
    patient = ShippingTiming(call_s=10.0, first_pause_s=30.0, longest_pause_s=30.0, close_s=0.05)
    line.error, line.refuses = PermanentError, lambda name, values: name == "add_cycle"
    store = start(timing=patient)
    for number in range(50):
        store.add_cycle(cycle(NOW + number))
    until(lambda: store.state().is_away)
    assert "one record after another: it will never be written" in store.state().reason
    assert store.state().dropped == 4
    store.close()
    line.refuses = lambda name, values: False
    assert start().flush(10.0)
    assert len(list(far.cycles())) >= 45
