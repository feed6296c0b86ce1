"""A real cluster as the world: the API server's adapters, and the provider that is configured."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from htas.adapters.kubernetes.access import load_access
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
from htas.config.settings import NoneSetting, SandboxSetting
from htas.daemon.wiring.migration import moves_by_method
from htas.daemon.wiring.supply import Supply, kwok_supply
from htas.execution.claims_seen import claims_seen
from htas.execution.identity import identify
from htas.execution.ports import Ports
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.offered import capped_view
from htas.ports import HTASError, NotFoundError, PermanentError, StorePort

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


class KubernetesBase:
    """What every daemon of a real cluster has: a live view, the lease by which one of its name leads, who may ask.

    `namespace` is where lease, status and simulated machines are; None: where the configuration says, or we live.
    """

    def __init__(
        self,
        loaded: Loaded,
        hooks: Hooks,
        scheduler: str,
        namespace: str | None = None,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        setting = loaded.settings.kubernetes
        kubeconfig = loaded.directory / setting.kubeconfig if setting.kubeconfig is not None else None
        self._loaded = loaded
        self._hooks = hooks
        self._access = load_access(kubeconfig, setting.context, setting.connections + len(RESOURCES))
        self.api = self._client(setting.requests_per_second, setting.burst, may_write)
        # The lease is renewed beside all other calls: neither behind their rate limit nor forbidden with them.
        self._lease_api = self._client(LEASE_CALLS, 10)
        self.reviewer = KubernetesReviewer(self._client(REVIEWS, 20))
        self.namespace = namespace or setting.namespace or self.api.namespace
        self.clock = WallClock()
        self.cluster = KubernetesCluster(self.api, scheduler, page_size=setting.page_size, on_restart=hooks.on_restart)
        self._announcer: KubernetesAnnouncer | None = None

    def _client(self, per_second: float, burst: int, may_write: Callable[[], bool] = lambda: True) -> ApiServer:
        return ApiServer(self._access, RateLimit(per_second, burst), self._hooks.on_call, may_write=may_write)

    def watch(self) -> None:
        self.cluster.start()

    def lease(self) -> KubernetesLease:
        """The lease by which one daemon of this cluster's name leads."""
        return KubernetesLease(self._lease_api, self.namespace, f"htas-{self._loaded.policy.cluster}")

    @property
    def _status_name(self) -> str:
        return f"htas-{self._loaded.policy.cluster}-status"

    @property
    def _status_path(self) -> str:
        return f"/api/v1/namespaces/{part(self.namespace)}/configmaps/{part(self._status_name)}"

    def status_document(self) -> str:
        """What the daemon that leads has published last (`StatusBoard`); "" where nothing is, or we may not read it."""
        with suppress(HTASError):
            return msgspec.json.decode(self.api.get(self._status_path), type=_StatusMap).data.get("status", "")
        return ""


class _StatusMap(msgspec.Struct):
    """The ConfigMap `htas-CLUSTER-status`."""

    data: dict[str, str] = {}


class KubernetesWorld(KubernetesBase):
    """The adapters of one cluster. `watch` begins to read, `lead` to act; `rest` and `close` end these."""

    def __init__(self, loaded: Loaded, hooks: Hooks | None = None, namespace: str | None = None) -> None:
        super().__init__(loaded, hooks or Hooks(), loaded.policy.scheduler_name, namespace)
        self.supply = self._supply()
        self.moves = moves_by_method(loaded, self._access, self.api, self.cluster.live)

    def _supply(self) -> Supply:
        match self._loaded.provider:
            case KwokSetting() as kwok:
                return kwok_supply(self._loaded, kwok, self.api, self.namespace)
            case OpenStackSetting() as openstack:
                from htas.daemon.wiring.openstack import openstack_supply

                return openstack_supply(self._loaded, openstack, self.api, self._access, self._hooks.on_cloud_call)
            case NoneSetting():
                raise PermanentError("provider: none has no machines; name openstack")
            case SandboxSetting():
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

    def withdraw_status(self) -> None:
        """Remove the status document; gone already is done."""
        with suppress(NotFoundError):
            self.api.delete(self._status_path)

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
        instances, now, policy = tuple(provider.instances()), self.clock.now(), self._loaded.policy
        view = identify(view.nodes, (), instances, policy.cluster).applied(view)
        claims = claims_seen(view.nodes, instances, policy, now)
        return ClusterSnapshot(
            taken_at=now,
            cluster=capped_view(view, claims, policy.catalogue),
            claims=claims,
            instances=instances,
            headroom=provider.headroom(),
        )


def identity() -> str:
    """Who we are among the daemons of a cluster: the pod's name, or this machine's."""
    return os.environ.get("POD_NAME") or socket.gethostname()
