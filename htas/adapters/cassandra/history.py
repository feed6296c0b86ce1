"""Bills, and runs that are over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest

from htas.adapters.cassandra.days import Days
from htas.adapters.cassandra.rows import batches, body_of, date_of, day_of, decoded, first_millis, millis, shard_of
from htas.adapters.cassandra.session import Row, Session
from htas.adapters.stored import readable
from htas.model.record import DAY_S, Bill, Run

BILL_SHARDS = 16
RUN_SHARDS = 32
"""At 25 runs ending a second a day is 2.2 million of them: 68,000, 34 MB, in a partition."""
MOST = 2**31 - 1

_OPEN = "INSERT INTO KEYSPACE.open_bills (cluster, shard, claim, body) VALUES (?, ?, ?, ?)"
_CLOSE = "DELETE FROM KEYSPACE.open_bills WHERE cluster = ? AND shard = ? AND claim = ?"
_OPEN_BILLS = "SELECT body FROM KEYSPACE.open_bills WHERE cluster = ? AND shard = ?"
_ADD_CLOSED = "INSERT INTO KEYSPACE.closed_bills (cluster, day, claim, body) VALUES (?, ?, ?, ?) USING TTL ?"
_REVISED = "DELETE FROM KEYSPACE.closed_bills WHERE cluster = ? AND day = ? AND claim = ?"
_CLOSED_BILLS = "SELECT body FROM KEYSPACE.closed_bills WHERE cluster = ? AND day = ?"
_ADD_RUN = (
    "INSERT INTO KEYSPACE.runs (cluster, day, shard, ended_at, uid, node, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?"
)
_RUNS = (
    "SELECT ended_at, uid, node, body FROM KEYSPACE.runs"
    " WHERE cluster = ? AND day = ? AND shard = ? AND ended_at >= ? LIMIT ?"
)


class StoredBills:
    """Open ones in one table, closed ones by the day of their end. The column `claim` holds the bill's id.

    One that is read twice is the one that the cloud has confirmed, else the open one.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = session.settings.cluster
        self._ttl = int(session.settings.retention.bills_s)
        self._days = Days(session, "bills", session.settings.retention.bills_s)

    def put(self, bill: Bill) -> None:
        key = (self._name, shard_of(bill.id, BILL_SHARDS), bill.id)
        what = f"writing the bill of {bill.id}"
        if bill.ended_at is None:
            self._session.write(what, _OPEN, (*key, body_of(bill)))
            return
        day = day_of(bill.ended_at)
        self._days.note([day])
        closed = (self._name, date_of(day), bill.id, body_of(bill), self._ttl)
        revised = [] if bill.is_provisional else self._days.since((day + 1) * DAY_S)
        gone = [(_REVISED, (self._name, date_of(later), bill.id)) for later in revised]  # it was thought to end later
        self._session.write_together(what, [(_ADD_CLOSED, closed), (_CLOSE, key), *gone])

    def since(self, instant: float) -> Sequence[Bill]:
        shards = [(self._name, shard) for shard in range(BILL_SHARDS)]
        # Open ones are read first: one that is closed meanwhile is then found twice, and not missed.
        found = {bill.id: bill for bill in self._read(_OPEN_BILLS, shards)}
        days = [(self._name, date_of(day)) for day in reversed(self._days.since(instant))]
        for bill in self._read(_CLOSED_BILLS, days):
            known = found.get(bill.id)
            if known is None or not bill.is_provisional or known.is_provisional:
                found[bill.id] = bill
        kept = (bill for bill in found.values() if bill.ended_at is None or bill.ended_at >= instant)
        return sorted(kept, key=lambda bill: bill.id)

    def _read(self, query: str, partitions: Sequence[tuple[object, ...]]) -> Iterable[Bill]:
        for rows in self._session.rows_of("reading bills", query, partitions):
            yield from (decoded(body, Bill) for (body,) in rows)


class Runs:
    """By the day of their end. One that is written anew with another end is there twice; the later end is read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._name = session.settings.cluster
        self._ttl = int(session.settings.retention.runs_s)
        self._days = Days(session, "runs", session.settings.retention.runs_s)

    def add(self, runs: Iterable[Run]) -> None:
        runs = list(runs)
        self._days.note(day_of(run.ended_at) for run in runs)
        writes = []
        for run in runs:
            day, shard = day_of(run.ended_at), shard_of(run.uid, RUN_SHARDS)
            key = (self._name, date_of(day), shard, millis(run.ended_at), run.uid, run.node)
            writes.append(((day, shard), (_ADD_RUN, (*key, body_of(run), self._ttl))))
        self._session.write_batches("writing runs", batches(writes))

    def since(self, instant: float, limit: int | None) -> Sequence[Run]:
        """The newest `limit`, in order of their end, without those that cannot be read (`readable`)."""
        wanted = MOST if limit is None else min(limit, MOST)
        found: dict[tuple[str, str], str] = {}
        for day in self._days.since(instant) if wanted > 0 else ():
            for _, uid, node, body in self._of_day(day, instant, wanted):
                found.setdefault((uid, node), body)
            if len(found) >= wanted:
                break
        runs = readable(list(found.values())[:wanted], lambda body: decoded(body, Run))
        return sorted((run for run in runs if run.ended_at >= instant), key=_by_end)

    def _of_day(self, day: int, instant: float, limit: int) -> list[Row]:
        """Newest first. A shard is asked for its part and some more, and again where it had still newer ones."""
        quota = min(limit, limit // RUN_SHARDS * 5 // 4 + 100)
        while True:
            shards = self._of_shards(day, instant, quota)
            newest = nlargest(limit, (row for rows in shards for row in rows), key=_key)
            if quota >= limit or all(len(rows) < quota for rows in shards):
                return newest
            if len(newest) == limit and all(len(rows) < quota or _key(rows[-1]) <= _key(newest[-1]) for rows in shards):
                return newest
            quota = min(limit, 4 * quota)

    def _of_shards(self, day: int, instant: float, quota: int) -> list[list[Row]]:
        first = first_millis(instant)
        shards = [(self._name, date_of(day), shard, first, quota) for shard in range(RUN_SHARDS)]
        return list(self._session.rows_of("reading runs", _RUNS, shards))


def _key(row: Row) -> Row:
    """When it ended, to the millisecond, its uid and its node: what orders runs without reading their bodies."""
    return row[:3]


def _by_end(run: Run) -> tuple[float, str, str]:
    return run.ended_at, run.uid, run.node
