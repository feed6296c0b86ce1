"""The ports of one daemon, handed around together, and the cluster as execution sees it through them."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.namespaces import pins
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


def observed(ports: Ports, policy: Policy) -> ClusterView:
    """What the cluster shows, with the promises that count: those within the limits of their namespaces.

    Every look goes through here, so that no step acts on pins that do not count. Raises HTASError where the
    cluster does not answer.
    """
    return pins.within_limits(ports.cluster.observe(), policy, ports.clock.now())
