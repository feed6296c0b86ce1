"""One SQLite file: opened safely, written in transactions, its errors translated. Knows nothing of what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from htas.adapters.sqlite.errors import primary_code, translated
from htas.adapters.sqlite.schema import create, stand_in, version_of

BUSY_S = 10.0
"""How long a call waits for another process to finish writing before it is a TransientError."""


class Database:
    """One connection and one lock: safe from several threads, and beside other processes (WAL)."""

    def __init__(self, path: str, *, only_reads: bool = False) -> None:
        """Open, and create where needed; raises PermanentError or TransientError, naming the file.

        `only_reads`: the file must be there and stays as it is.
        """
        self.path = path
        self._only_reads = only_reads
        self._lock = RLock()
        try:
            self._connection = sqlite3.connect(
                f"{Path(path).absolute().as_uri()}?mode=rw" if only_reads else path,  # mode=rw does not create
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
                uri=only_reads,
            )
        except sqlite3.Error as error:
            raise translated(path, error) from error
        try:
            (_prepare_reading if only_reads else _prepare)(self._connection, path)
        except sqlite3.Error as error:
            self._connection.close()
            raise translated(path, error) from error
        except BaseException:
            self._connection.close()
            raise

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise translated(self.path, error) from error

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All of it is written, or nothing.

        `durable`: it is on the disk when the block is left. Otherwise it reaches the disk with the next durable
        transaction or checkpoint: the end of the process loses nothing, a power cut may lose the newest of it. One that
        is begun inside another, by the same thread, is a part of it.
        """
        with self._lock:
            if self._is_in_transaction():
                yield self._connection
                return
            try:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise translated(self.path, error) from error
            except BaseException:
                self._roll_back()
                raise

    def close(self) -> None:
        with self._lock:
            if not self._only_reads:
                _leave_one_file(self._connection)
            self._connection.close()

    def _is_in_transaction(self) -> bool:
        try:
            return self._connection.in_transaction
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def _roll_back(self) -> None:
        # Fails where the connection is closed or SQLite has rolled back by itself: the first error is the one to tell.
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")


def _prepare_reading(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what is not ours, and leave the rest as it is."""
    if version_of(connection, path) == 0:
        stand_in(connection)
    connection.execute("PRAGMA query_only = ON")


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what is not ours before anything is changed; then WAL, then the schema."""
    version = version_of(connection, path)
    # SQLite does not wait for others when it changes the journal mode: of 240 processes that opened new files, six to
    # a file, 6 were refused at once. So the waiting is done here.
    waiting = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, sqlite3.Error) and _is_busy(error)),
        stop=stop_after_delay(BUSY_S),
        wait=wait_fixed(0.01),
        reraise=True,
    )
    waiting(connection.execute, "PRAGMA journal_mode = WAL")
    if version == 0:
        try:
            create(connection, path)
        except BaseException:
            _leave_one_file(connection)
            raise


def _leave_one_file(connection: sqlite3.Connection) -> None:
    """Have all in one file that may be copied as it is, and that says so by its journal mode: `backup.take_in`.

    While other connections have it open, that is left to the last.
    """
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = DELETE")


def _is_busy(error: sqlite3.Error) -> bool:
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
