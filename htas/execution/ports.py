"""The ports of one daemon, handed around together."""

from __future__ import annotations

from dataclasses import dataclass

from htas.ports import AnnouncerPort, Clock, ClusterPort, JoinPort, MigrationPort, ProviderPort, StorePort


@dataclass(frozen=True, slots=True)
class Ports:
    clock: Clock
    cluster: ClusterPort
    provider: ProviderPort
    migration: MigrationPort
    store: StorePort
    announcer: AnnouncerPort
    join: JoinPort | None = None
    """None: machines join by what HTAS does not make."""
