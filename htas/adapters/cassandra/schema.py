"""The schema, by version. It is made and changed only when asked for: `htas store init` and `htas store migrate`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from htas.adapters.cassandra.errors import NotThereError
from htas.adapters.cassandra.journal import Journal
from htas.adapters.cassandra.rows import decoded
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.tables import MIGRATIONS, VERSION_TABLE, placed
from htas.model.disruptions import ANY_DISRUPTION

DEFINING_S = 60.0
"""A statement that defines something takes up to 4 s on a busy ring; it must not be given up half-way."""

_KEYSPACES = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
_TABLES = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
_VERSION = "SELECT version FROM KEYSPACE.schema_version WHERE name = 'htas'"
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS KEYSPACE\.(\w+)")
QUEUED = 3
"""The first version with one queue."""
_BEFORE_THE_QUEUE = tuple(
    f"SELECT cluster, version, body FROM KEYSPACE.{table}" for table in ("drains", "rearrangements")
)
_STAMP = "INSERT INTO KEYSPACE.schema_version (name, version, since) VALUES ('htas', ?, ?)"


def version_of(session: Session) -> int | None:
    """The version of the keyspace's schema, 0 where it is half made, None where there is none.

    Raises NotThereError where it must not be touched: it is newer than this htas, or another program's.
    """
    keyspace = session.settings.keyspace
    tables = {name for (name,) in session.rows_of_any_keyspace("reading the schema", _TABLES, (keyspace,))}
    if "schema_version" not in tables:
        if tables:
            raise NotThereError(
                f"keyspace {keyspace}: holds tables of another program ({', '.join(sorted(tables)[:3])} …);"
                " name another one in store.cassandra.keyspace"
            )
        return None
    found = session.rows("reading the schema's version", _VERSION, ())
    version = int(found[0][0]) if found else 0
    if version > len(MIGRATIONS):
        raise NotThereError(
            f"keyspace {keyspace}: written by a newer htas (schema {version}, this one knows {len(MIGRATIONS)});"
            " upgrade htas"
        )
    return version


def require_current(session: Session) -> None:
    """Raises NotThereError, saying what to do, where the schema is not the one this htas works with. Reads only."""
    keyspace, version = session.settings.keyspace, version_of(session)
    if version is None:
        raise NotThereError(f"keyspace {keyspace}: is not there or empty; make it with: htas store init")
    if version < len(MIGRATIONS):
        raise NotThereError(
            f"keyspace {keyspace}: has schema {version}, this htas works with {len(MIGRATIONS)};"
            " bring it up to date with: htas store migrate"
        )
    missing = missing_tables(session)
    if missing:
        raise NotThereError(
            f"keyspace {keyspace}: lacks {', '.join(missing)} (a backup that was restored in part?);"
            " make what is missing with: htas store init"
        )


def missing_tables(session: Session) -> list[str]:
    """Tables of the present schema that are not there."""
    there = {name for (name,) in session.rows_of_any_keyspace("reading the schema", _TABLES, _keyspace_of(session))}
    named = (_TABLE.match(step) for steps in MIGRATIONS for step in steps)
    return sorted({found[1] for found in named if found is not None} - there)


def _keyspace_of(session: Session) -> tuple[str]:
    return (session.settings.keyspace,)


def init(session: Session, replication: Mapping[str, int]) -> bool:
    """Make keyspace and tables; returns whether anything had to be made.

    Raises RefusedError where a right is missing, NotThereError where what is there must not be touched.
    """
    keyspace, version = session.settings.keyspace, version_of(session)
    if version is not None and 0 < version < len(MIGRATIONS):
        require_current(session)
    if version == len(MIGRATIONS) and not missing_tables(session):
        return False
    if not session.rows_of_any_keyspace("looking for the keyspace", _KEYSPACES, (keyspace,)):
        _define(session, "making the keyspace", _creation(keyspace, replication))
    _define(session, "making the tables", placed(VERSION_TABLE, keyspace))
    _bring_up(session, 0)
    return True


def migrate(session: Session) -> tuple[int, int]:
    """Bring an older schema up to date; returns the version there was and the one there is."""
    version = version_of(session)
    if version is None:
        require_current(session)
    found = version or 0
    _bring_up(session, found)
    return found, len(MIGRATIONS)


def _queue_up(session: Session) -> None:
    """Put what an earlier htas left of drains and rearrangements into the one queue; their own tables stay, unread.

    Nobody works with a keyspace while its version is none of theirs, so that it may be done twice.
    """
    for query in _BEFORE_THE_QUEUE:
        for cluster, version, body in session.rows("reading what was under way", query, ()):
            entry = decoded(body, ANY_DISRUPTION)
            Journal(session, cluster).take_up(msgspec.structs.replace(entry, version=version))


def _bring_up(session: Session, version: int) -> None:
    """Every step may be done twice, so that one who was ended half-way, or another beside us, does no harm."""
    for number, steps in enumerate(MIGRATIONS[version:], version + 1):
        for step in steps:
            _define(session, f"schema {number}", placed(step, session.settings.keyspace))
        if number == QUEUED and version:
            _queue_up(session)
        session.write("writing the schema's version", _STAMP, (number, datetime.now(UTC)))


def _define(session: Session, what: str, statement: str) -> None:
    session.define(what, statement, DEFINING_S)


def _creation(keyspace: str, replication: Mapping[str, int]) -> str:
    factors = "".join(f", '{name}': {factor}" for name, factor in sorted(replication.items()))
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace}\n"
        f"    WITH replication = {{'class': 'NetworkTopologyStrategy'{factors}}}"
    )
