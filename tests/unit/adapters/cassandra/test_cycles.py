"""Cycles in Cassandra are asked for a few at a time and unpacked one by one."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from htas.adapters import stored
from htas.adapters.cassandra.cycles import AT_ONCE, Cycles
from htas.adapters.cassandra.rows import date_of, day_of
from htas.adapters.cassandra.session import Row, Session
from htas.adapters.cassandra.settings import CassandraSettings
from htas.model.record import CycleRecord, cycle_number
from htas.ports import PermanentError
from tests.builders import NOW
from tests.contracts.test_store_port import cycle

LARGE = 1 << 20


class Rows:
    """A session that has cycles of one day, and counts the bodies it was asked for."""

    settings = CassandraSettings((("127.0.0.1", 9042),), "dc1", "test")

    def __init__(self, records: Iterable[CycleRecord]) -> None:
        self._bodies = {cycle_number(record.at): zlib.compress(msgspec.json.encode(record)) for record in records}
        self.asked = 0

    def rows(self, what: str, query: str, values: Sequence[Any]) -> list[Row]:
        if "days" in query:
            return [(date_of(day_of(NOW)),)]
        return [(number,) for number in sorted(self._bodies, reverse=True)[: values[-1]]]

    def rows_of(self, what: str, query: str, each: Iterable[Sequence[Any]]) -> Iterator[list[Row]]:
        for _, number in each:
            self.asked += 1
            yield [(1, self._bodies[number])]


def cycles_of(rows: Rows) -> Cycles:
    return Cycles(cast(Session, rows))


def test_of_many_cycles_no_more_than_a_few_are_held() -> None:
    rows = Rows(msgspec.structs.replace(cycle(NOW + i), stages=("x" * LARGE,)) for i in range(40))
    tracemalloc.start()
    try:
        told = [record.at - NOW for record in cycles_of(rows).newest(0.0, 100)]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told == list(range(40))
    assert most < 6 * LARGE


def test_what_is_not_taken_is_not_asked_for() -> None:
    rows = Rows(cycle(NOW + i) for i in range(100))
    found = cycles_of(rows).newest(0.0, 100)
    assert rows.asked == 0
    assert next(found).at == NOW
    assert 1 <= rows.asked <= AT_ONCE


def test_a_cycle_that_unpacks_to_more_than_is_taken_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stored, "MOST_UNPACKED", LARGE)
    large = msgspec.structs.replace(cycle(NOW), stages=("x" * LARGE,))
    cycles = cycles_of(Rows([large, cycle(NOW + 1)]))
    assert [record.at for record in cycles.newest(0.0, 100)] == [NOW + 1]
    assert "1 of 2 rows of history are left out: " in caplog.text
    with pytest.raises(PermanentError, match="is damaged: it unpacks to more than 1,048,576 bytes"):
        cycles.one(cycle_number(NOW))
