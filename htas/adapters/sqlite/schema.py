"""The schema of a file. A file of another version, or another program's, is refused untouched."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from htas.ports import PermanentError

VERSION = 1
"""Of the schema below, in a file's `user_version`; 0 is an empty file."""
STATEMENTS = (
    "CREATE TABLE claims (id TEXT PRIMARY KEY, version INTEGER NOT NULL, open INTEGER NOT NULL, body BLOB)",
    "CREATE INDEX open_claims ON claims (id) WHERE open = 1",
    "CREATE TABLE disruptions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL)",
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
    "CREATE TABLE runs (uid TEXT NOT NULL, node TEXT NOT NULL, ended_at REAL NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (uid, node))",
    "CREATE INDEX runs_by_time ON runs (ended_at)",
)


def version_of(connection: sqlite3.Connection, path: str) -> int:
    """The file's version, 0 where it is empty; raises PermanentError where it must not be touched. Reads only."""
    # One read transaction: between two, another process could create the tables of a file we saw as version 0.
    connection.execute("BEGIN")
    try:
        return _version(connection, path)
    finally:
        connection.execute("COMMIT")


def lacking(connection: sqlite3.Connection) -> list[str]:
    """Tables, and columns of others, that this file lacks."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as whole:
        for statement in STATEMENTS:
            whole.execute(statement)
        wanted, found = _columns(whole), _columns(connection)
    return sorted({name if name not in found else f"{name}.{column}" for name, column in _flat(wanted) - _flat(found)})


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for (name,) in tables}


def _flat(columns: dict[str, list[str]]) -> set[tuple[str, str]]:
    return {(name, column) for name, them in columns.items() for column in them}


def stand_in(connection: sqlite3.Connection) -> None:
    """Give this connection alone the tables that an empty file lacks."""
    for statement in STATEMENTS:
        if statement.startswith("CREATE TABLE"):
            connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))


def create(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables of an empty file in one transaction, unless a second process was first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, path) == 0:
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection, path: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, VERSION):
        raise PermanentError(
            f"{path}: this store is of schema {version}, this htas reads {VERSION}; use the htas that wrote it, or"
            " move the file away to begin an empty store"
        )
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    is_ours = {"claims", "cycles", "disruptions"} <= tables if version else not tables
    if not is_ours:
        raise PermanentError(f"{path}: a database of another program; name another file for htas")
    return version
