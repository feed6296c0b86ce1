"""What the adapter is told: how to reach Cassandra, and how long things are kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from htas.model.record import Retention

PORT = 9042


class Tls(msgspec.Struct, frozen=True):
    """PEM files. `ca_file` signs the servers' certificates; the pair is ours, where servers ask for one."""

    ca_file: Path
    cert_file: Path | None = None
    key_file: Path | None = None
    checks_hostname: bool = True


class CassandraSettings(msgspec.Struct, frozen=True):
    """`cluster` is HTAS's cluster name, which is in every partition key: many clusters may share one keyspace.

    `contact_points` are (host, port). The password is in a file and is read whenever a connection is made.
    """

    contact_points: tuple[tuple[str, int], ...]
    local_dc: str
    cluster: str
    keyspace: str = "htas"
    consistency: str = "LOCAL_QUORUM"
    timeout_s: float = 10.0
    username: str | None = None
    password_file: Path | None = None
    tls: Tls | None = None
    retention: Retention = Retention()

    @property
    def where(self) -> str:
        """The contact points as they are written, for messages."""
        return ", ".join(f"{host}:{port}" for host, port in self.contact_points)
