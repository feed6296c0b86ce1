"""What waits on the disk has a bound, and some of it is worth more than the rest."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.record import Bill
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, row, run
from tests.far_store import FarStore, Line
from tests.unit.adapters.write_behind.conftest import Start, caught_up

ROUNDS = 60


def write_all(store: WriteBehindStore) -> None:
    for number in range(ROUNDS):
        store.put_claim(claim(f"c{number:02}"))
        store.put_bill(Bill(f"c{number:02}", "g", "f", 5, NOW))
        store.add_runs([run(f"u{number:02}", NOW + number)])
        store.add_profile([row(f"n{number:02}", NOW + number)])
        store.add_cycle(cycle(NOW + number))


@pytest.mark.parametrize(
    ("max_bytes", "cycles_left", "rows_left"),
    [
        pytest.param(1 << 30, range(60, 61), range(60, 61), id="room for all"),
        pytest.param(80_000, range(20, 50), range(60, 61), id="the oldest cycles go"),
        pytest.param(56_000, range(5), range(10, 50), id="all cycles go, then the oldest rows"),
        pytest.param(1, range(1), range(1), id="no room at all: what must not be lost stays"),
    ],
)
def test_the_oldest_cycles_go_first_then_rows_and_never_the_rest(
    start: Start, line: Line, far: FarStore, max_bytes: int, cycles_left: range, rows_left: range
) -> None:
    store = start(max_bytes=max_bytes)
    line.is_away = True
    with capture_logs() as logs:
        write_all(store)
    state = store.state()
    assert state.waiting_entries + state.dropped == 5 * ROUNDS
    assert sum("too much is queued" in log["event"] for log in logs) == (1 if state.dropped else 0)
    line.is_away = False
    caught_up(store)
    assert [len(kept) for kept in (far.claims(), far.bills(), far.runs())] == [ROUNDS] * 3
    cycles, rows = [found.at - NOW for found in far.cycles()], [found.event_time - NOW for found in far.profile()]
    assert (len(cycles) in cycles_left, len(rows) in rows_left) == (True, True), (len(cycles), len(rows))
    assert cycles == list(range(ROUNDS - len(cycles), ROUNDS))
    assert rows == list(range(ROUNDS - len(rows), ROUNDS))
    assert len(cycles) + len(rows) == 2 * ROUNDS - state.dropped


def test_what_waits_stays_below_the_bound(start: Start, line: Line) -> None:
    store = start(max_bytes=50_000)
    line.is_away = True
    for number in range(500):
        store.add_cycle(cycle(NOW + number))
        assert store.state().waiting_bytes <= 50_000
    assert store.state().dropped > 300
