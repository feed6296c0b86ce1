"""StorePort on SQLite: the journal is on the disk when a call returns, history follows with the next journal entry."""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from htas.adapters.sqlite.database import Database
from htas.adapters.stored import UNREADABLE, decoded, name_of, readable, unpacked
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import ANY_DISRUPTION, Disruption
from htas.model.flavours import Learned
from htas.model.record import Bill, CycleRecord, ProfileEvent, ProfileRow, Retention, Run
from htas.ports import ConflictError, PermanentError, Queued

_T = TypeVar("_T")

KEPT_CYCLES = 20_000
KEPT_BYTES = 512 * 2**20
"""A cycle of 50,000 pods is 2 MB when compressed: then a few hundred are kept, and not 40 GB of them."""


AS_USUAL = Retention()
PROBE_BYTES = 16 * 2**10
"""Some thirty claims: with less room than that a daemon had better wait for more."""
SWEEP_S = 3600.0
"""Between looks for what has grown too old, on the cycles' clock."""

CYCLE = "SELECT id, body FROM cycles WHERE id = ?"
BEYOND = """DELETE FROM cycles WHERE id <= (
    SELECT max(id) FROM (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS total FROM cycles) WHERE total > ?)"""
"""Removes the oldest cycles beyond so many bytes."""


class SqliteStore:
    """Implements StorePort in one file (`:memory:`: in none).

    Safe from several threads; other processes may read and write beside it. Of the cycles the newest `kept_cycles`
    are kept, and no more than `kept_bytes` of them in all (looked at each time a sixteenth of that has come). What is
    older than `retention` says, counted from the newest cycle, goes. `only_reads`: the file stays as it is, of whatever
    version. Raises PermanentError where the file cannot be used.
    """

    def __init__(
        self,
        path: str,
        *,
        retention: Retention = AS_USUAL,
        kept_cycles: int = KEPT_CYCLES,
        kept_bytes: int = KEPT_BYTES,
        only_reads: bool = False,
    ) -> None:
        self._database = Database(path, only_reads=only_reads)
        self._kept_cycles = kept_cycles
        self._retention = retention
        self._swept_at = -math.inf
        self._kept_bytes = kept_bytes
        self._unweighed = kept_bytes  # what earlier processes left has not been weighed

    # The journal.

    def claims(self) -> Sequence[NodeClaim]:
        return self._bodies("SELECT body FROM claims WHERE open = 1 ORDER BY id", (), NodeClaim)

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        body = "CAST(body AS TEXT)"  # JSON, kept as bytes; a damaged one is told of where claims are read
        is_recent = f"CASE WHEN json_valid({body}) THEN json_extract({body}, '$.created_at') >= ? END"
        return self._bodies(f"SELECT body FROM claims WHERE {is_recent} ORDER BY id", (since,), NodeClaim)

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        written = msgspec.structs.replace(claim, version=claim.version + 1)
        values = (int(claim.state is not ClaimState.RELEASED), msgspec.json.encode(written))
        with self._database.transaction() as connection:
            if claim.version == 0:
                done = connection.execute("INSERT OR IGNORE INTO claims VALUES (?, 1, ?, ?)", (claim.id, *values))
            else:
                done = connection.execute(
                    "UPDATE claims SET version = version + 1, open = ?, body = ? WHERE id = ? AND version = ?",
                    (*values, claim.id, claim.version),
                )
            if done.rowcount != 1:
                raise ConflictError(f"claim {claim.id}: another writer was first (version {claim.version} is stale)")
        return written

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        with self._database.transaction():  # one wait for the disk
            return [self.put_claim(claim) for claim in claims]

    def disruptions(self) -> Sequence[Disruption]:
        return self._bodies("SELECT body FROM disruptions ORDER BY id", (), ANY_DISRUPTION)

    def put_disruption(self, disruption: Queued) -> Queued:
        written = msgspec.structs.replace(disruption, version=disruption.version + 1)
        key, version, body = disruption.id, disruption.version, msgspec.json.encode(written)
        with self._database.transaction() as connection:
            if version == 0:
                done = connection.execute("INSERT OR IGNORE INTO disruptions VALUES (?, 1, ?)", (key, body))
            else:
                done = connection.execute(
                    "UPDATE disruptions SET version = version + 1, body = ? WHERE id = ? AND version = ?",
                    (body, key, version),
                )
            if done.rowcount != 1:
                raise ConflictError(f"{key}: another writer was first (version {version} is stale)")
        return written

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        with self._database.transaction() as connection:
            key = (disruption_id,)
            done = connection.execute("DELETE FROM disruptions WHERE id = ? AND version = ?", (*key, version))
            left = connection.execute("SELECT 1 FROM disruptions WHERE id = ?", key).fetchone()
            if done.rowcount != 1 and left is not None:
                raise ConflictError(f"{disruption_id}: another writer was first (version {version} is stale)")

    def probe(self) -> None:
        # A change of a few bytes may still find room in a page that is there: this asks for new ones.
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO learned VALUES ('', zeroblob(?))", (PROBE_BYTES,))
            connection.execute("DELETE FROM learned WHERE flavour = ''")

    # What was learned and what is owed.

    def learned(self) -> dict[str, Learned]:
        rows = self._database.rows("SELECT flavour, body FROM learned ORDER BY flavour")
        return {flavour: self._decoded(body, Learned) for flavour, body in rows}

    def put_learned(self, flavour: str, allocatable: Learned) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO learned VALUES (?, ?)", (flavour, msgspec.json.encode(allocatable))
            )

    def put_bill(self, bill: Bill) -> None:
        # One that is opened reaches the disk with the claim that is written next; one that is closed may be the last.
        with self._database.transaction(durable=bill.ended_at is not None) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO bills VALUES (?, ?, ?)", (bill.id, bill.ended_at, msgspec.json.encode(bill))
            )

    def bills(self, since: float = 0.0) -> Sequence[Bill]:
        query = "SELECT body FROM bills WHERE ended_at IS NULL OR ended_at >= ? ORDER BY claim"
        return self._bodies(query, (since,), Bill)

    # History.

    def add_profile(self, rows: Iterable[ProfileRow]) -> None:
        values = [msgspec.structs.astuple(row) for row in rows]
        if values:
            with self._database.transaction(durable=False) as connection:
                connection.executemany("INSERT INTO profile VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def profile(self, instance: str | None = None, since: float = 0.0) -> Sequence[ProfileRow]:
        rows = self._database.rows(
            "SELECT * FROM profile WHERE event_time >= ? AND (? IS NULL OR instance_name = ?) "
            "ORDER BY event_time, rowid",
            (since, instance, instance),
        )
        return [self._profile_row(row) for row in rows]

    def latest(self) -> Sequence[ProfileRow]:
        # max(): of the rows of an instance the one with that time gives the other columns (SQLite, "Bare columns").
        rows = self._database.rows(
            "SELECT max(event_time), event, instance_name, instance_type, runtime, ramcapacity, cpucapacity,"
            " ramavailable, cpuavailable FROM profile GROUP BY instance_name ORDER BY instance_name"
        )
        newest = (self._profile_row(row) for row in rows)
        return [row for row in newest if row.event is not ProfileEvent.DEPROVISIONING]

    def add_runs(self, runs: Iterable[Run]) -> None:
        values = [(run.uid, run.node, run.ended_at, msgspec.json.encode(run)) for run in runs]
        if values:
            with self._database.transaction(durable=False) as connection:
                connection.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", values)

    def runs(self, since: float = 0.0, limit: int | None = None) -> Sequence[Run]:
        newest = self._database.rows(
            "SELECT body FROM runs WHERE ended_at >= ? ORDER BY ended_at DESC, uid DESC, node DESC LIMIT ?",
            (since, -1 if limit is None else limit),
        )
        return list(readable(reversed(newest), lambda row: self._decoded(row[0], Run)))

    def add_cycle(self, record: CycleRecord) -> int:
        body = zlib.compress(msgspec.json.encode(record), 1)
        with self._database.transaction(durable=False) as connection:
            done = connection.execute("INSERT INTO cycles (at, body) VALUES (?, ?)", (record.at, body))
            number = int(done.lastrowid or 0)
            connection.execute("DELETE FROM cycles WHERE id <= ?", (number - self._kept_cycles,))
            self.sweep(record.at)
            self._unweighed += len(body)
            if self._unweighed > self._kept_bytes // 16:
                connection.execute(BEYOND, (self._kept_bytes,))
                self._unweighed = 0
        return number

    def sweep(self, now: float) -> None:
        """Forget what is older than it is to be kept; looked at once an hour."""
        if now - self._swept_at < SWEEP_S:
            return
        with self._database.transaction(durable=False) as connection:
            self._forget(connection, now)
        self._swept_at = now

    def _forget(self, connection: sqlite3.Connection, now: float) -> None:
        kept = self._retention
        connection.execute("DELETE FROM cycles WHERE at < ?", (now - kept.cycles_s,))
        connection.execute("DELETE FROM profile WHERE event_time < ?", (now - kept.profile_s,))
        connection.execute("DELETE FROM runs WHERE ended_at < ?", (now - kept.runs_s,))
        connection.execute("DELETE FROM bills WHERE ended_at < ?", (now - kept.bills_s,))
        since = "json_extract(CAST(body AS TEXT), '$.since')"  # bodies are JSON, kept as bytes
        connection.execute(f"DELETE FROM claims WHERE open = 0 AND {since} < ?", (now - kept.released_s,))

    def cycle(self, cycle_id: int) -> CycleRecord | None:
        found = self._database.rows(CYCLE, (cycle_id,))
        return self._cycle(*found[0]) if found else None

    def cycles(self, since: float = 0.0, limit: int = 100) -> Iterator[CycleRecord]:
        # A query for each, and no cursor that stays open: whoever reads slowly keeps no writer waiting, and the file's
        # log can be cut back. What retention removes meanwhile is not found.
        numbers = self._database.rows("SELECT id FROM cycles WHERE at >= ? ORDER BY id DESC LIMIT ?", (since, limit))
        rows = (row for number in reversed(numbers) for row in self._database.rows(CYCLE, number))
        return readable(rows, lambda row: self._cycle(*row))

    def close(self) -> None:
        self._database.close()

    # Inside.

    def _bodies(self, query: str, values: tuple[Any, ...], kind: type[_T]) -> list[_T]:
        return [self._decoded(body, kind) for (body,) in self._database.rows(query, values)]

    def _profile_row(self, row: tuple[Any, ...]) -> ProfileRow:
        try:
            return msgspec.convert(dict(zip(ProfileRow.__struct_fields__, row, strict=True)), ProfileRow)
        except msgspec.ValidationError as error:
            raise self._unreadable(ProfileRow, error) from error

    def _cycle(self, number: int, body: bytes) -> CycleRecord:
        try:
            plain = unpacked(body)
        except UNREADABLE as error:
            raise self._unreadable(CycleRecord, error) from error
        return msgspec.structs.replace(self._decoded(plain, CycleRecord), id=number)

    def _decoded(self, body: bytes, kind: type[_T]) -> _T:
        """SQLite finds no wrong bits in a body, and gives other types than bytes where they stand in a file."""
        try:
            return decoded(body, kind)
        except UNREADABLE as error:
            raise self._unreadable(kind, error) from error

    def _unreadable(self, kind: type[Any], error: Exception) -> PermanentError:
        return PermanentError(
            f"{self._database.path}: a stored {name_of(kind)} cannot be read: {error}; "
            "it is damaged, or another version of htas wrote it: use that one or move the file away"
        )
