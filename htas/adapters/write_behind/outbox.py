"""The queue on the local disk: entries in the order they were written, until the remote store has acknowledged them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import structlog

from htas.adapters.sqlite.database import Database
from htas.adapters.write_behind.entries import JournalEntry, Kind
from htas.adapters.write_behind.state import Lane
from htas.ports import PermanentError

log = structlog.get_logger()

TABLE = (
    "CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, lane TEXT NOT NULL,"
    " kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS outbox_by_lane ON outbox (lane, number)",
    "CREATE INDEX IF NOT EXISTS outbox_by_kind ON outbox (kind, key, number)",
)
OVERHEAD = 100
"""Bytes that an entry takes beside its body: its row and its place in two indexes."""
MAY_BE_DROPPED = (Kind.CYCLE, Kind.PROFILE)
"""What goes when the bound is reached, in this order: a cycle is the largest and missed the least. Never the journal,
bills or runs: they are what machines, money and estimates depend on."""


def waiting_in(path: str) -> int:
    """How many entries wait in a file that another process may have; 0 where there is none that can be read."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as file,
    ):
        return int(file.execute("SELECT count(*) FROM outbox").fetchone()[0])
    return 0


class Outbox:
    """Entries in a table of the local file. Safe from several threads; one process may have it at a time.

    Waiting bytes are kept below `max_bytes`, as far as dropping may go. Raises what Database raises.
    """

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._entries: dict[Kind, int] = {}
        self._bytes = 0
        self.dropped = 0
        self._is_full = False
        with database.transaction() as connection:
            for statement in TABLE:
                connection.execute(statement)
        self.count_anew()

    def count_anew(self) -> None:
        """Find out what waits: at the start, and after a transaction that was rolled back."""
        with self._database.transaction(durable=False):  # nobody adds or removes meanwhile
            rows = self._database.rows("SELECT kind, count(*), sum(length(body)) FROM outbox GROUP BY kind")
            unknown = sorted({kind for kind, _, _ in rows} - set(Kind))
            if unknown:
                raise PermanentError(
                    f"{self._database.path}: holds entries of a newer htas ({', '.join(unknown)});"
                    " start that one until they are shipped, or move the file away and lose them"
                )
            self._entries = {Kind(kind): count for kind, count, _ in rows}
            self._bytes = sum(size + OVERHEAD * count for _, count, size in rows)

    @property
    def entries(self) -> int:
        return sum(tuple(self._entries.values()))

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def waits(self, lane: Lane) -> int:
        """How many entries of a lane wait."""
        return sum(count for kind, count in tuple(self._entries.items()) if kind.lane is lane)

    def newest(self) -> int:
        """The highest number ever given."""
        rows = self._database.rows("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'")
        return int(rows[0][0]) if rows else 0

    def add(self, kind: Kind, key: str, body: bytes, *, durable: bool) -> int:
        """Queue an entry, as part of the transaction under way if there is one; returns its number."""
        with self._database.transaction(durable=durable) as connection:
            done = connection.execute(
                "INSERT INTO outbox (lane, kind, key, body) VALUES (?, ?, ?, ?)", (kind.lane, kind, key, body)
            )
            self._entries[kind] = self._entries.get(kind, 0) + 1
            self._bytes += len(body) + OVERHEAD
            if self._bytes > self._max_bytes:
                self._drop()
            return int(done.lastrowid or 0)

    def oldest(self, lane: Lane, most: int, most_bytes: int) -> Sequence[JournalEntry]:
        """The first entries of a lane: at least one if there is any, no more than so many and so many bytes."""
        sizes = self._database.rows(
            "SELECT number, length(body) FROM outbox WHERE lane = ? ORDER BY number LIMIT ?", (lane, most)
        )
        last, total = 0, 0
        for number, size in sizes:
            total += size
            if last and total > most_bytes:
                break
            last = number
        query = "SELECT number, kind, key, body FROM outbox WHERE lane = ? AND number <= ? ORDER BY number"
        return [JournalEntry(row[0], Kind(row[1]), *row[2:]) for row in self._database.rows(query, (lane, last))]

    def about(self, kinds: Iterable[Kind], key: str) -> Sequence[JournalEntry]:
        """Entries of these kinds about one thing, in order."""
        query = "SELECT number, kind, key, body FROM outbox WHERE kind = ? AND key = ?"
        found = [
            JournalEntry(row[0], Kind(row[1]), *row[2:])
            for kind in kinds
            for row in self._database.rows(query, (kind, key))
        ]
        return sorted(found, key=lambda entry: entry.number)

    def remove(self, numbers: Iterable[int]) -> int:
        """Forget entries, in one transaction; returns how many there were. Those that are gone already are no error.

        It need not reach the disk at once: after a power cut they are shipped again, which does no harm.
        """
        removed = 0
        with self._database.transaction(durable=False) as connection:
            for number in numbers:
                query = "DELETE FROM outbox WHERE number = ? RETURNING kind, length(body)"
                for kind, size in connection.execute(query, (number,)).fetchall():
                    self._entries[Kind(kind)] -= 1
                    self._bytes -= size + OVERHEAD
                    removed += 1
        if self._is_full and self._bytes < self._max_bytes // 2:
            self._is_full = False
        return removed

    def _drop(self) -> None:
        """Bring what waits below the bound, the oldest first; a sixteenth more, so as not to do it at every write."""
        excess = self._bytes - self._max_bytes + self._max_bytes // 16
        dropped = 0
        for kind in MAY_BE_DROPPED:
            numbers = []
            query = "SELECT number, length(body) FROM outbox WHERE kind = ? ORDER BY number"
            for number, size in self._database.rows(query, (kind,)):
                if excess <= 0:
                    break
                numbers.append(number)
                excess -= size + OVERHEAD
            dropped += self.remove(numbers)
        self.dropped += dropped
        if dropped and not self._is_full:
            self._is_full = True
            log.warning(
                "too much is queued for the store: the oldest cycles are dropped, then the oldest profile rows",
                bound_bytes=self._max_bytes,
                dropped=dropped,
            )
