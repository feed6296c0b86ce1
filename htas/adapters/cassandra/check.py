"""Whether HTAS could work with what is there: reached, of the right version, and with the rights it needs."""

from __future__ import annotations

import msgspec

from htas.adapters.cassandra.journal import Journal
from htas.adapters.cassandra.schema import require_current
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.tables import VERSION
from htas.model.disruptions import Drain

_NODES = "SELECT release_version, data_center FROM system.{}"
_REPLICAS = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
_PROBE = "INSERT INTO KEYSPACE.days (cluster, kind, day) VALUES (?, 'check', '1970-01-01') USING TTL 60"


class Found(msgspec.Struct, frozen=True):
    """A keyspace that is fit for use."""

    version: int
    releases: tuple[str, ...]
    nodes: int
    local: int
    replicas: tuple[tuple[str, int], ...]


def look(session: Session) -> Found:
    """Read, write, and write by lightweight transaction, beside every cluster's own rows.

    Raises PermanentError where the schema is not the present one, RefusedError where a right is missing,
    TransientError where too few nodes answer. Nothing is left behind.
    """
    require_current(session)
    settings = session.settings
    beside = f"{settings.cluster} (check)"  # no name of a cluster has brackets
    session.write("trying to write", _PROBE, (beside,))
    journal = Journal(session, beside)
    for left in journal.disruptions():  # by one who was ended half-way
        journal.delete_disruption(left.id, left.version)
    tried = journal.put_disruption(Drain("check", "", "check", 0.0))
    journal.disruptions()
    journal.delete_disruption(tried.id, tried.version)
    nodes = [row for table in ("local", "peers_v2") for row in _nodes(session, table)]
    factors = session.rows_of_any_keyspace("reading the keyspace", _REPLICAS, (settings.keyspace,))[0][0]
    return Found(
        version=VERSION,
        releases=tuple(sorted({release for release, _ in nodes})),
        nodes=len(nodes),
        local=sum(1 for _, name in nodes if name == settings.local_dc),
        replicas=tuple(sorted((name, int(factor)) for name, factor in factors.items() if name != "class")),
    )


def _nodes(session: Session, table: str) -> list[tuple[str, str]]:
    rows = session.rows_of_any_keyspace("reading the nodes", _NODES.format(table), ())
    return [(str(release), str(name)) for release, name in rows]
