"""The schema. It is made only when asked for: `htas store init`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from htas.adapters.cassandra.errors import NotThereError
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.tables import TABLES, VERSION, VERSION_TABLE, placed

DEFINING_S = 60.0
"""A statement that defines something takes up to 4 s on a busy ring; it must not be given up half-way."""

_KEYSPACES = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
_TABLES = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
_VERSION = "SELECT version FROM KEYSPACE.schema_version WHERE name = 'htas'"
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS KEYSPACE\.(\w+)")
_STAMP = "INSERT INTO KEYSPACE.schema_version (name, version, since) VALUES ('htas', ?, ?)"


def version_of(session: Session) -> int | None:
    """The version of the keyspace's schema, 0 where it is half made, None where there is none.

    Raises NotThereError where it must not be touched: it is of another version, or another program's.
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
    if version not in (0, VERSION):
        raise NotThereError(
            f"keyspace {keyspace}: this store is of schema {version}, this htas reads {VERSION}; use the htas that"
            " wrote it, or name another keyspace and make it with: htas store init"
        )
    return version


def require_current(session: Session) -> None:
    """Raises NotThereError, saying what to do, where the schema is not the one this htas works with. Reads only."""
    keyspace, version = session.settings.keyspace, version_of(session)
    if version is None:
        raise NotThereError(f"keyspace {keyspace}: is not there or empty; make it with: htas store init")
    if version == 0:
        raise NotThereError(f"keyspace {keyspace}: is half made; make what is missing with: htas store init")
    missing = missing_tables(session)
    if missing:
        raise NotThereError(
            f"keyspace {keyspace}: lacks {', '.join(missing)} (a backup that was restored in part?);"
            " make what is missing with: htas store init"
        )


def missing_tables(session: Session) -> list[str]:
    """Tables of the present schema that are not there."""
    there = {name for (name,) in session.rows_of_any_keyspace("reading the schema", _TABLES, _keyspace_of(session))}
    named = map(_TABLE.match, TABLES)
    return sorted({found[1] for found in named if found is not None} - there)


def _keyspace_of(session: Session) -> tuple[str]:
    return (session.settings.keyspace,)


def init(session: Session, replication: Mapping[str, int]) -> bool:
    """Make keyspace and tables; returns whether anything had to be made.

    Raises RefusedError where a right is missing, NotThereError where what is there must not be touched.
    """
    keyspace, version = session.settings.keyspace, version_of(session)
    if version == VERSION and not missing_tables(session):
        return False
    if not session.rows_of_any_keyspace("looking for the keyspace", _KEYSPACES, (keyspace,)):
        _define(session, "making the keyspace", _creation(keyspace, replication))
    _define(session, "making the tables", placed(VERSION_TABLE, keyspace))
    for statement in TABLES:  # each may be done twice: by one who was ended half-way, or by another beside us
        _define(session, "making the tables", placed(statement, keyspace))
    session.write("writing the schema's version", _STAMP, (VERSION, datetime.now(UTC)))
    return True


def _define(session: Session, what: str, statement: str) -> None:
    session.define(what, statement, DEFINING_S)


def _creation(keyspace: str, replication: Mapping[str, int]) -> str:
    factors = "".join(f", '{name}': {factor}" for name, factor in sorted(replication.items()))
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace}\n"
        f"    WITH replication = {{'class': 'NetworkTopologyStrategy'{factors}}}"
    )
