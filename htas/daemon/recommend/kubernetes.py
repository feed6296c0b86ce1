"""A real cluster to look at: its API server is written to for the lease and the status alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from htas.adapters.kubernetes.announcing import KubernetesAnnouncer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.config.loader import Loaded
from htas.daemon.recommend.in_charge import snapshot_in_charge
from htas.daemon.recommend.watching import WatchingPorts
from htas.daemon.wiring.kubernetes import LEASE_CALLS, Hooks, KubernetesBase, KubernetesWorld, identity
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.ports import StorePort


class WatchedKubernetes(KubernetesBase):
    """The adapters of one cluster, without any that acts: there is no provider, no migration and no binding.

    What the live view reads through is an API client that refuses to write, whatever it is asked for.
    """

    def __init__(self, loaded: Loaded, hooks: Hooks) -> None:
        schedulers = loaded.settings.recommend.schedulers
        arriving = schedulers[0] if schedulers else loaded.policy.scheduler_name
        super().__init__(loaded, hooks, arriving, may_write=lambda: False)
        self._status_api = self._client(LEASE_CALLS, 10, lambda: False)

    def fence(self, may_act: Callable[[], bool]) -> None:
        """Publish no status any more once this says no; before it is called, none is."""
        self._status_api.may_write = may_act

    def ports(self, store: StorePort) -> WatchingPorts:
        self._announcer = KubernetesAnnouncer(
            self._status_api, self.namespace, self._status_name, identity(), RateLimit(1.0, 1)
        )
        return WatchingPorts(self.clock, self.cluster, store, self._announcer)

    def snapshot(self) -> ClusterSnapshot:
        """The cluster as it is, read once, were HTAS in charge of it from now on."""
        self.cluster.read_once()
        loaded, view = self._loaded, self.cluster.live.view()
        charge = loaded.settings.recommend.model()
        return snapshot_in_charge(view, loaded.policy, charge, self.clock.now(), Memory())[0]

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()
        self.cluster.close()


def present_cluster(loaded: Loaded) -> tuple[ClusterSnapshot, str]:
    """The configured cluster as it is, read once, nothing changed; and what the daemon that leads published last."""
    is_advice = loaded.settings.mode == "recommend"
    world = WatchedKubernetes(loaded, Hooks()) if is_advice else KubernetesWorld(loaded)
    with closing(world):
        return world.snapshot(), world.status_document()
