"""The store on Cassandra, put together from the configuration.

A module of its own, imported where Cassandra is the store: its driver takes a third of a second to load.
"""

from __future__ import annotations

from contextlib import closing

from htas.adapters.cassandra import schema
from htas.adapters.cassandra.check import Found, look
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import PORT, CassandraSettings, Tls
from htas.adapters.cassandra.store import CassandraStore
from htas.config.loader import Loaded
from htas.config.store import CassandraSetting, contact_point


def cassandra_store(loaded: Loaded, setting: CassandraSetting) -> CassandraStore:
    """The store itself, which waits for Cassandra; raises what CassandraStore does."""
    return CassandraStore(cassandra_settings(loaded, setting))


def init_store(loaded: Loaded, setting: CassandraSetting) -> bool:
    """Make keyspace and tables; returns whether anything had to be made."""
    with _session(loaded, setting) as session:
        return schema.init(session, setting.replicas)


def check_store(loaded: Loaded, setting: CassandraSetting) -> Found:
    """What is there; raises what is wrong with it. The schema is not changed."""
    with _session(loaded, setting) as session:
        return look(session)


def _session(loaded: Loaded, setting: CassandraSetting) -> closing[Session]:
    return closing(Session(cassandra_settings(loaded, setting)))


def cassandra_settings(loaded: Loaded, setting: CassandraSetting) -> CassandraSettings:
    """The adapter's settings. Relative paths start from the configuration's folder."""
    folder, tls = loaded.directory, setting.tls
    points = (contact_point(text) for text in setting.contact_points)
    return CassandraSettings(
        contact_points=tuple((host, port or PORT) for host, port in points),
        local_dc=setting.local_datacenter,
        cluster=loaded.policy.cluster,
        keyspace=setting.keyspace,
        consistency=setting.consistency,
        timeout_s=setting.timeout,
        username=setting.username,
        password_file=folder / setting.password_file if setting.password_file is not None else None,
        tls=Tls(
            folder / tls.ca_file,
            folder / tls.cert_file if tls.cert_file is not None else None,
            folder / tls.key_file if tls.key_file is not None else None,
            tls.check_hostname,
        )
        if tls is not None
        else None,
        retention=setting.retention.model(),
    )
