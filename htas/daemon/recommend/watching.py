"""The ports of a daemon that only recommends: none of them can change anything but its own status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from htas.model.snapshot import ClusterView
from htas.ports import Clock, StorePort


class WatchedCluster(Protocol):
    """Kubernetes, to look at: ClusterPort without its effects."""

    def observe(self) -> ClusterView: ...

    def changes(self) -> int: ...

    def on_change(self, wake: Callable[[], None]) -> None: ...


class WatchingAnnouncer(Protocol):
    """AnnouncerPort without Events and conditions on others' objects."""

    def publish(self, status: str) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchingPorts:
    """There is no cloud among them: none is asked, and no credential for one is needed."""

    clock: Clock
    cluster: WatchedCluster
    store: StorePort
    announcer: WatchingAnnouncer
