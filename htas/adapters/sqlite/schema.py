"""The schema, by version. A file of an older version is migrated; a newer or a foreign one is refused untouched."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from htas.ports import PermanentError


def _of_kind(kind: str) -> str:
    """A body that says of which kind it is; one that is damaged stays so, and is told of when it is read."""
    told = f"CAST(json_set(CAST(body AS TEXT), '$.kind', '{kind}') AS BLOB)"
    return f"CASE WHEN json_valid(CAST(body AS TEXT)) THEN {told} ELSE body END"


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
    (
        "CREATE TABLE runs (uid TEXT NOT NULL, node TEXT NOT NULL, ended_at REAL NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (uid, node))",
        "CREATE INDEX runs_by_time ON runs (ended_at)",
    ),
    (
        "CREATE TABLE rearrangement (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL,"
        " body BLOB NOT NULL)",
    ),
    (
        "CREATE TABLE disruptions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL)",
        f"INSERT INTO disruptions SELECT 'drain/' || node, version, {_of_kind('drain')} FROM drains",
        f"INSERT INTO disruptions SELECT 'rearrangement', version, {_of_kind('rearrangement')} FROM rearrangement",
        "DROP TABLE drains",
        "DROP TABLE rearrangement",
    ),
)
"""What brings a file from each version to the next; version 0 is an empty file."""


def present() -> int:
    """The version that this htas writes."""
    return len(MIGRATIONS)


def version_of(connection: sqlite3.Connection, path: str) -> int:
    """The file's version; raises PermanentError where it must not be touched. Reads only."""
    # One read transaction: between two, another process could create the tables of a file we saw as version 0.
    connection.execute("BEGIN")
    try:
        return _version(connection, path)
    finally:
        connection.execute("COMMIT")


def lacking(connection: sqlite3.Connection, version: int) -> list[str]:
    """Tables, and columns of others, that a file of a version has and this one lacks."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as whole:
        for steps in MIGRATIONS[:version]:
            for step in steps:
                whole.execute(step)
        wanted, found = _columns(whole), _columns(connection)
    return sorted({name if name not in found else f"{name}.{column}" for name, column in _flat(wanted) - _flat(found)})


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for (name,) in tables}


def _flat(columns: dict[str, list[str]]) -> set[tuple[str, str]]:
    return {(name, column) for name, them in columns.items() for column in them}


def stand_in(connection: sqlite3.Connection, version: int) -> None:
    """Give this connection alone the tables that an older file lacks, with what that has of them elsewhere."""
    for steps in MIGRATIONS[version:]:
        for step in steps:
            if step.startswith("CREATE TABLE"):
                connection.execute(step.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            elif step.startswith("INSERT"):
                connection.execute(step)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the file up to date in one transaction; a second process that was first is noticed inside it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for steps in MIGRATIONS[_version(connection, path) :]:
            for step in steps:
                connection.execute(step)
        connection.execute(f"PRAGMA user_version = {present()}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection, path: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > present():
        raise PermanentError(
            f"{path}: written by a newer htas (schema {version}, this one knows {present()}); upgrade htas"
        )
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    is_ours = {"claims", "cycles"} <= tables if version else not tables
    if not is_ours:
        raise PermanentError(f"{path}: a database of another program; name another file for htas")
    return version
