"""The schema, by version. A file of an older version is migrated; one of a newer version is refused untouched."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from htas.ports import PermanentError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE claims (id TEXT PRIMARY KEY, version INTEGER NOT NULL, open INTEGER NOT NULL, body BLOB)",
        "CREATE INDEX open_claims ON claims (id) WHERE open = 1",
        "CREATE TABLE drains (node TEXT PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL)",
        "CREATE TABLE learned (flavour TEXT PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE bills (claim TEXT PRIMARY KEY, ended_at REAL, body BLOB NOT NULL)",
        """CREATE TABLE profile (
            event_time REAL NOT NULL, event TEXT NOT NULL, instance_name TEXT NOT NULL, instance_type TEXT NOT NULL,
            runtime INTEGER NOT NULL, ramcapacity INTEGER NOT NULL, cpucapacity INTEGER NOT NULL,
            ramavailable INTEGER NOT NULL, cpuavailable INTEGER NOT NULL)""",
        "CREATE INDEX profile_by_instance ON profile (instance_name, event_time)",
        "CREATE INDEX profile_by_time ON profile (event_time)",
        "CREATE TABLE cycles (id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, body BLOB NOT NULL)",
        "CREATE INDEX cycles_by_time ON cycles (at)",
    ),
)
"""What brings a file from each version to the next; version 0 is an empty file."""


def open_database(path: str) -> sqlite3.Connection:
    """A connection to a file of the present version; raises PermanentError with what to do."""
    try:
        connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error as error:
        where = "" if Path(path).parent.is_dir() else "; its folder does not exist, create it"
        raise PermanentError(f"{path}: cannot be opened as a database: {error}{where}") from error
    try:
        if version > len(MIGRATIONS):
            raise PermanentError(
                f"{path}: written by a newer htas (schema {version}, this one knows {len(MIGRATIONS)}); upgrade htas"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if version < len(MIGRATIONS):
            _migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise PermanentError(f"{path}: cannot be written: {error}; check its permissions and the disk") from error
    except PermanentError:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date in one transaction; a second process that was first is noticed inside it."""
    connection.execute("BEGIN IMMEDIATE")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for steps in MIGRATIONS[version:]:
        for step in steps:
            connection.execute(step)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
