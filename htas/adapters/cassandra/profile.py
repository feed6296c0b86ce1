"""The profile: Table 3 of the HTAS paper by day, and each instance's newest row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from htas.adapters.cassandra.days import Days
from htas.adapters.cassandra.rows import (
    batches,
    body_of,
    date_of,
    day_of,
    decoded,
    first_millis,
    instant_of,
    millis,
    shard_of,
)
from htas.adapters.cassandra.session import Session, Write
from htas.model.record import DAY_S, ProfileEvent, ProfileRow

SHARDS = 64
"""At 50 events a second a day is 4.3 million rows: 68,000 of them, 6 MB, in a partition."""
INSTANCE_SHARDS = 16

ADD = (
    "INSERT INTO KEYSPACE.profile (cluster, day, shard, instance_name, event_time, event, instance_type, runtime,"
    " ramcapacity, cpucapacity, ramavailable, cpuavailable) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?"
)
_COLUMNS = (
    "event_time, event, instance_name, instance_type, runtime, ramcapacity, cpucapacity, ramavailable, cpuavailable"
)
_OF_ALL = f"SELECT {_COLUMNS} FROM KEYSPACE.profile WHERE cluster = ? AND day = ? AND shard = ?"
_OF_ONE = f"{_OF_ALL} AND instance_name = ? AND event_time >= ?"
_PUT_INSTANCE = (
    "INSERT INTO KEYSPACE.instances (cluster, shard, instance_name, body)"
    " VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)
_INSTANCES = "SELECT body FROM KEYSPACE.instances WHERE cluster = ? AND shard = ?"


class Profile:
    """Rows of the profiler. Their times are kept to the millisecond, and one written twice is one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = session.settings.cluster
        self._ttl = int(session.settings.retention.profile_s)
        self._days = Days(session, "profile", session.settings.retention.profile_s)

    def add(self, rows: Iterable[ProfileRow]) -> None:
        rows = list(rows)
        self._days.note(day_of(row.event_time) for row in rows)
        writes = [self._write(row) for row in rows]
        newest: dict[str, ProfileRow] = {}
        for row in rows:
            known = newest.get(row.instance_name)
            if known is None or known.event_time <= row.event_time:
                newest[row.instance_name] = row
        writes += [self._write_newest(row) for row in newest.values()]
        self._session.write_batches("writing the profile", batches(writes))

    def rows(self, instance: str | None, since: float) -> Sequence[ProfileRow]:
        days = self._days.since(since)
        found = self._of_all(days, since) if instance is None else self._of_one(days, instance, since)
        return sorted(found, key=lambda row: row.event_time)

    def latest(self) -> Sequence[ProfileRow]:
        shards = [(self._name, shard) for shard in range(INSTANCE_SHARDS)]
        found = self._session.rows_of("reading the newest rows", _INSTANCES, shards)
        newest = (decoded(body, ProfileRow) for rows in found for (body,) in rows)
        there = (row for row in newest if row.event is not ProfileEvent.DEPROVISIONING)
        return sorted(there, key=lambda row: row.instance_name)

    def _write(self, row: ProfileRow) -> tuple[Any, Write]:
        day, shard = day_of(row.event_time), shard_of(row.instance_name, SHARDS)
        values = (
            self._name,
            date_of(day),
            shard,
            row.instance_name,
            millis(row.event_time),
            row.event.value,
            row.instance_type,
            row.runtime,
            Decimal(row.ramcapacity),
            Decimal(row.cpucapacity),
            Decimal(row.ramavailable),
            Decimal(row.cpuavailable),
            self._ttl,
        )
        return (day, shard), (ADD, values)

    def _write_newest(self, row: ProfileRow) -> tuple[Any, Write]:
        """Dated by its event, so that a row that comes late never replaces a newer one; in one column, as a whole.

        The row of one that is gone says so for a day, for those that were still under way, and then is forgotten.
        """
        shard = shard_of(row.instance_name, INSTANCE_SHARDS)
        ttl = int(DAY_S) if row.event is ProfileEvent.DEPROVISIONING else 0
        stamp = round(row.event_time * 1_000_000)
        return shard, (_PUT_INSTANCE, (self._name, shard, row.instance_name, body_of(row), stamp, ttl))

    def _of_one(self, days: Iterable[int], instance: str, since: float) -> Iterator[ProfileRow]:
        shard, first = shard_of(instance, SHARDS), first_millis(since)
        slices = [(self._name, date_of(day), shard, instance, first) for day in days]
        for rows in self._session.rows_of("reading the profile of an instance", _OF_ONE, slices):
            yield from map(_row, rows)

    def _of_all(self, days: Iterable[int], since: float) -> Iterator[ProfileRow]:
        partitions = [(self._name, date_of(day), shard) for day in days for shard in range(SHARDS)]
        first = first_millis(since) / 1000
        for rows in self._session.rows_of("reading the profile", _OF_ALL, partitions):
            yield from (row for row in map(_row, rows) if row.event_time >= first)


def _row(columns: Sequence[Any]) -> ProfileRow:
    at, event, name, kind, runtime, *amounts = columns
    return ProfileRow(instant_of(at), ProfileEvent(event), name, kind, runtime, *map(int, amounts))
