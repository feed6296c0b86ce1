"""A real cluster to look at: its API server is written to for the lease and the status alone."""

from __future__ import annotations

from collections.abc import Callable

from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.announcing import KubernetesAnnouncer
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.cluster import KubernetesCluster
from htas.adapters.kubernetes.lease import KubernetesLease
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kubernetes.resources import RESOURCES
from htas.adapters.kubernetes.reviewing import KubernetesReviewer
from htas.config.loader import Loaded
from htas.daemon.kubernetes_wiring import LEASE_CALLS, REVIEWS, Hooks, WallClock, identity, live_present, published
from htas.daemon.recommend.in_charge import snapshot_in_charge
from htas.daemon.recommend.watching import WatchingPorts
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.ports import StorePort


class WatchedKubernetes:
    """The adapters of one cluster, without any that acts: there is no provider, no migration and no binding.

    What the live view reads through is an API client that refuses to write, whatever it is asked for.
    """

    def __init__(self, loaded: Loaded, hooks: Hooks) -> None:
        setting = loaded.settings.kubernetes
        kubeconfig = loaded.directory / setting.kubeconfig if setting.kubeconfig is not None else None
        access = load_access(kubeconfig, setting.context, setting.connections + len(RESOURCES))
        limit = RateLimit(setting.requests_per_second, setting.burst)
        self.api = ApiServer(access, limit, hooks.on_call, may_write=lambda: False)
        self.lease_api = ApiServer(access, RateLimit(LEASE_CALLS, 10), hooks.on_call)
        self._status_api = ApiServer(access, RateLimit(LEASE_CALLS, 10), hooks.on_call, may_write=lambda: False)
        self.reviewer = KubernetesReviewer(ApiServer(access, RateLimit(REVIEWS, 20), hooks.on_call))
        self.namespace = setting.namespace or self.api.namespace
        self.clock = WallClock()
        schedulers = loaded.settings.recommend.schedulers
        arriving = schedulers[0] if schedulers else loaded.policy.scheduler_name
        self.cluster = KubernetesCluster(self.api, arriving, page_size=setting.page_size, on_restart=hooks.on_restart)
        self._status_name = f"htas-{loaded.policy.cluster}-status"
        self._lease_name = f"htas-{loaded.policy.cluster}"
        self._loaded = loaded
        self._announcer: KubernetesAnnouncer | None = None

    def watch(self) -> None:
        self.cluster.start()

    def fence(self, may_act: Callable[[], bool]) -> None:
        """Publish no status any more once this says no; before it is called, none is."""
        self._status_api.may_write = may_act

    def ports(self, store: StorePort) -> WatchingPorts:
        self._announcer = KubernetesAnnouncer(
            self._status_api, self.namespace, self._status_name, identity(), RateLimit(1.0, 1)
        )
        return WatchingPorts(self.clock, self.cluster, store, self._announcer)

    def lease(self) -> KubernetesLease:
        """The lease by which one daemon of this cluster's name leads."""
        return KubernetesLease(self.lease_api, self.namespace, self._lease_name)

    def snapshot(self) -> ClusterSnapshot:
        """The cluster as it is, read once, were HTAS in charge of it from now on."""
        self.cluster.read_once()
        loaded, view = self._loaded, self.cluster.live.view()
        charge = loaded.settings.recommend.model()
        return snapshot_in_charge(view, loaded.policy, charge, self.clock.now(), Memory())[0]

    def status_document(self) -> str:
        """What the daemon that leads has published last; "" where nothing is, or we may not read it."""
        return published(self.api, self.namespace, self._status_name)

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()
        self.cluster.close()


def present_cluster(loaded: Loaded) -> tuple[ClusterSnapshot, str]:
    """The configured cluster as it is, read once, nothing changed; and what the daemon that leads published last."""
    if loaded.settings.mode != "recommend":
        return live_present(loaded)
    world = WatchedKubernetes(loaded, Hooks())
    try:
        return world.snapshot(), world.status_document()
    finally:
        world.close()
