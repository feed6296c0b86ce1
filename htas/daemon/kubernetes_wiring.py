"""A real cluster as the world: the API server's adapters, and the provider that is configured."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from htas.adapters.kubernetes.access import Access, load_access
from htas.adapters.kubernetes.announcing import KubernetesAnnouncer
from htas.adapters.kubernetes.api import ApiServer, OnCall, part
from htas.adapters.kubernetes.cluster import KubernetesCluster
from htas.adapters.kubernetes.lease import KubernetesLease
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kubernetes.resources import RESOURCES
from htas.adapters.kubernetes.reviewing import KubernetesReviewer
from htas.config.kwok import KwokSetting
from htas.config.loader import Loaded
from htas.config.openstack import OpenStackSetting
from htas.daemon.migration_wiring import moves_by_method
from htas.daemon.supply import Supply, kwok_supply
from htas.execution.claims_seen import claims_seen
from htas.execution.ports import Ports
from htas.model.snapshot import ClusterSnapshot
from htas.ports import HTASError, NotFoundError, StorePort

LEASE_CALLS = 10.0
"""Calls a second that may go to the lease."""


REVIEWS = 20.0
"""Questions a second about those who ask over HTTP."""


class WallClock:
    """Implements Clock with the machine's time."""

    speed = 1.0

    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who is told of what the adapters do."""

    on_call: OnCall = lambda method, status, seconds: None
    on_cloud_call: Callable[[str, str, int, float], None] = lambda method, service, status, seconds: None
    on_restart: Callable[[str], None] = lambda kind: None
    on_dropped: Callable[[int], None] = lambda count: None


class KubernetesWorld:
    """The adapters of one cluster. `watch` begins to read, `lead` to act; `rest` and `close` end these.

    `namespace` is where lease, status and simulated machines are; None: where the configuration says, or we live.
    """

    def __init__(self, loaded: Loaded, hooks: Hooks | None = None, namespace: str | None = None) -> None:
        hooks = hooks or Hooks()
        setting = loaded.settings.kubernetes
        kubeconfig = loaded.directory / setting.kubeconfig if setting.kubeconfig is not None else None
        access = load_access(kubeconfig, setting.context, setting.connections + len(RESOURCES))
        self.api = ApiServer(access, RateLimit(setting.requests_per_second, setting.burst), hooks.on_call)
        # The lease is renewed beside all other calls: neither behind their rate limit nor forbidden with them.
        self.lease_api = ApiServer(access, RateLimit(LEASE_CALLS, 10), hooks.on_call)
        self.reviewer = KubernetesReviewer(ApiServer(access, RateLimit(REVIEWS, 20), hooks.on_call))
        self.namespace = namespace or setting.namespace or self.api.namespace
        self.clock = WallClock()
        self.cluster = KubernetesCluster(
            self.api, loaded.policy.scheduler_name, page_size=setting.page_size, on_restart=hooks.on_restart
        )
        self._loaded = loaded
        self._hooks = hooks
        self.supply = self._supply(access)
        self.moves = moves_by_method(loaded, access, self.api, self.cluster.live)
        self._announcer: KubernetesAnnouncer | None = None

    def _supply(self, access: Access) -> Supply:
        match self._loaded.provider:
            case KwokSetting() as kwok:
                return kwok_supply(self._loaded, kwok, self.api, self.namespace)
            case OpenStackSetting() as openstack:
                from htas.daemon.openstack_supply import openstack_supply

                return openstack_supply(self._loaded, openstack, self.api, access, self._hooks.on_cloud_call)
            case _:
                raise AssertionError("the sandbox is a cluster itself")

    def fence(self, may_act: Callable[[], bool]) -> None:
        """Change nothing any more, in the cluster or the cloud, once this says no."""
        self.api.may_write = may_act
        self.supply.fence(may_act)

    def ports(self, store: StorePort) -> Ports:
        setting = self._loaded.settings.kubernetes
        self._announcer = KubernetesAnnouncer(
            self.api,
            self.namespace,
            self._status_name,
            identity(),
            RateLimit(setting.events_per_second, setting.events_burst),
            self._hooks.on_dropped,
        )
        supply = self.supply
        return Ports(self.clock, self.cluster, supply.provider, self.moves, store, self._announcer, supply.join)

    def lease(self) -> KubernetesLease:
        """The lease by which one daemon of this cluster's name leads."""
        return KubernetesLease(self.lease_api, self.namespace, f"htas-{self._loaded.policy.cluster}")

    def withdraw_status(self) -> None:
        """Remove the status document; gone already is done."""
        with suppress(NotFoundError):
            self.api.delete(f"/api/v1/namespaces/{part(self.namespace)}/configmaps/{part(self._status_name)}")

    def status_document(self) -> str:
        """What the daemon that leads has published last (`StatusBoard`); "" where nothing is, or we may not read it."""
        return published(self.api, self.namespace, self._status_name)

    @property
    def _status_name(self) -> str:
        return f"htas-{self._loaded.policy.cluster}-status"

    def watch(self) -> None:
        self.cluster.start()

    def lead(self) -> None:
        self.supply.start()
        self.moves.run()

    def rest(self) -> None:
        """End what only a leader does; before the lease is given up."""
        if self._announcer is not None:
            self._announcer.close()
        self.moves.close()
        self.supply.close()

    def close(self) -> None:
        self.rest()
        self.cluster.close()

    def snapshot(self) -> ClusterSnapshot:
        """The cluster and the cloud as they show themselves, read once, nothing changed."""
        self.cluster.read_once()
        self.supply.look()
        view, provider = self.cluster.live.view(), self.supply.provider
        instances = tuple(provider.instances())
        return ClusterSnapshot(
            taken_at=self.clock.now(),
            cluster=view,
            claims=claims_seen(view.nodes, instances, self._loaded.policy),
            instances=instances,
            headroom=provider.headroom(),
        )


def identity() -> str:
    """Who we are among the daemons of a cluster: the pod's name, or this machine's."""
    return os.environ.get("POD_NAME") or socket.gethostname()


class _StatusMap(msgspec.Struct):
    """The ConfigMap `htas-CLUSTER-status`."""

    data: dict[str, str] = {}


def published(api: ApiServer, namespace: str, name: str) -> str:
    """The status document in a ConfigMap; "" where there is none, or we may not read it."""
    with suppress(HTASError):
        found = api.get(f"/api/v1/namespaces/{part(namespace)}/configmaps/{part(name)}")
        return msgspec.json.decode(found, type=_StatusMap).data.get("status", "")
    return ""


def live_present(loaded: Loaded) -> tuple[ClusterSnapshot, str]:
    """As `live_snapshot`, and what the daemon that leads has published last; "" if that cannot be read."""
    world = KubernetesWorld(loaded)
    try:
        return world.snapshot(), world.status_document()
    finally:
        world.close()
