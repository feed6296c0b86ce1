"""The tables, as statements.

HTAS's cluster name is in every partition key. Every statement may be carried out twice. KEYSPACE stands for the
keyspace's name, here and in every query (see `placed`).
"""

from __future__ import annotations

_BY_DAY = """compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS',
        'compaction_window_size': 1} AND gc_grace_seconds = 86400"""
"""Files of one day expire as a whole. What is only ever written with an end needs no longer grace for deletions."""

VERSION_TABLE = """CREATE TABLE IF NOT EXISTS KEYSPACE.schema_version (
    name text PRIMARY KEY, version int, since timestamp
)"""

VERSION = 1
"""Of the schema below."""
TABLES: tuple[str, ...] = (
    """CREATE TABLE IF NOT EXISTS KEYSPACE.claims (
    cluster text, shard int, id text, version int, open boolean, writer uuid, body text,
    PRIMARY KEY ((cluster, shard), id)
) WITH gc_grace_seconds = 86400""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.disruptions (
    cluster text, shard int, id text, version int, writer uuid, body text,
    PRIMARY KEY ((cluster, shard), id)
) WITH gc_grace_seconds = 86400""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.learned (
    cluster text, flavour text, body text,
    PRIMARY KEY (cluster, flavour)
)""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.days (
    cluster text, kind text, day date,
    PRIMARY KEY ((cluster, kind), day)
) WITH CLUSTERING ORDER BY (day DESC)""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.profile (
    cluster text, day date, shard int, instance_name text, event_time timestamp, event text, instance_type text,
    runtime int, ramcapacity decimal, cpucapacity decimal, ramavailable decimal, cpuavailable decimal,
    PRIMARY KEY ((cluster, day, shard), instance_name, event_time, event)
) WITH """
    + _BY_DAY,
    """CREATE TABLE IF NOT EXISTS KEYSPACE.instances (
    cluster text, shard int, instance_name text, body text,
    PRIMARY KEY ((cluster, shard), instance_name)
) WITH gc_grace_seconds = 86400""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.runs (
    cluster text, day date, shard int, ended_at timestamp, uid text, node text, body text,
    PRIMARY KEY ((cluster, day, shard), ended_at, uid, node)
) WITH CLUSTERING ORDER BY (ended_at DESC, uid DESC, node DESC)
    AND """
    + _BY_DAY,
    """CREATE TABLE IF NOT EXISTS KEYSPACE.cycles (
    cluster text, day date, id bigint,
    PRIMARY KEY ((cluster, day), id)
) WITH CLUSTERING ORDER BY (id DESC)
    AND """
    + _BY_DAY,
    """CREATE TABLE IF NOT EXISTS KEYSPACE.cycle_bodies (
    cluster text, id bigint, chunk int, chunks int, body blob,
    PRIMARY KEY ((cluster, id), chunk)
) WITH compression = {'enabled': 'false'}
    AND """
    + _BY_DAY,
    """CREATE TABLE IF NOT EXISTS KEYSPACE.open_bills (
    cluster text, shard int, claim text, body text,
    PRIMARY KEY ((cluster, shard), claim)
)""",
    """CREATE TABLE IF NOT EXISTS KEYSPACE.closed_bills (
    cluster text, day date, claim text, body text,
    PRIMARY KEY ((cluster, day), claim)
)""",
)


def placed(statement: str, keyspace: str) -> str:
    """The statement with the keyspace's name. Servers warn of prepared statements that name tables alone."""
    return statement.replace("KEYSPACE.", f"{keyspace}.")
