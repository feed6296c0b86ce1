"""Cycles: an index by day, and the records themselves, compressed and in chunks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import msgspec

from htas.adapters.cassandra.days import Days
from htas.adapters.cassandra.rows import date_of, day_of, decoded, first_millis
from htas.adapters.cassandra.session import Row, Session
from htas.adapters.stored import readable, unpacked
from htas.model.record import CycleRecord, cycle_number
from htas.ports import PermanentError

CHUNK = 512 * 1024
"""A cycle of 50,000 pods is 2 MB when compressed; one write may be 4 MiB with small commit log segments."""
AT_ONCE = 16
"""Records asked for at one time, and held until they are taken: compressed, 2 MB each of 50,000 pods."""
MOST = 2**31 - 1

_ADD_CHUNK = "INSERT INTO KEYSPACE.cycle_bodies (cluster, id, chunk, chunks, body) VALUES (?, ?, ?, ?, ?) USING TTL ?"
_ADD = "INSERT INTO KEYSPACE.cycles (cluster, day, id) VALUES (?, ?, ?) USING TTL ?"
_CHUNKS = "SELECT chunks, body FROM KEYSPACE.cycle_bodies WHERE cluster = ? AND id = ?"
_NEWEST = "SELECT id FROM KEYSPACE.cycles WHERE cluster = ? AND day = ? AND id >= ? LIMIT ?"


class Cycles:
    """A cycle's id is its instant in milliseconds: written twice it is one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = session.settings.cluster
        self._ttl = int(session.settings.retention.cycles_s)
        self._days = Days(session, "cycles", session.settings.retention.cycles_s)

    def add(self, record: CycleRecord) -> int:
        """The body first: what the index names is there."""
        number, day = cycle_number(record.at), day_of(record.at)
        body = zlib.compress(msgspec.json.encode(record), 1)
        chunks = [body[i : i + CHUNK] for i in range(0, len(body), CHUNK)]
        self._session.write_batches(
            "writing a cycle",
            (
                [(_ADD_CHUNK, (self._name, number, i, len(chunks), chunk, self._ttl))]  # one by one: they are large
                for i, chunk in enumerate(chunks)
            ),
        )
        self._days.note([day])
        self._session.write("writing a cycle", _ADD, (self._name, date_of(day), number, self._ttl))
        return number

    def one(self, number: int) -> CycleRecord | None:
        [chunks] = self._chunks([number])
        return _record(number, chunks)

    def newest(self, since: float, limit: int) -> Iterator[CycleRecord]:
        """Oldest first, each unpacked as it is taken."""
        numbers = self._numbers(since, limit)[::-1]
        parts = (numbers[i : i + AT_ONCE] for i in range(0, len(numbers), AT_ONCE))
        rows = (row for part in parts for row in zip(part, self._chunks(part), strict=True))
        found = readable(rows, lambda row: _record(*row))
        return (record for record in found if record is not None and record.at >= since)

    def _numbers(self, since: float, limit: int) -> list[int]:
        """Newest first."""
        numbers: list[int] = []
        first = first_millis(since)
        for day in self._days.since(since):
            left = min(limit - len(numbers), MOST)
            if left <= 0:
                break
            values = (self._name, date_of(day), first, left)
            numbers += [number for (number,) in self._session.rows("reading cycles", _NEWEST, values)]
        return numbers

    def _chunks(self, numbers: Sequence[int]) -> Iterator[list[Row]]:
        return self._session.rows_of("reading cycles", _CHUNKS, [(self._name, number) for number in numbers])


def _record(number: int, chunks: Sequence[Row]) -> CycleRecord | None:
    """None where it is not there, or only a part of it: its writer was ended, or it is expiring."""
    if not chunks or len(chunks) < chunks[0][0]:
        return None
    try:
        body = unpacked(b"".join(chunk for _, chunk in chunks))
    except zlib.error as error:
        raise PermanentError(f"Cassandra: cycle {number} is damaged: {error}") from error
    return msgspec.structs.replace(decoded(body, CycleRecord), id=number)
