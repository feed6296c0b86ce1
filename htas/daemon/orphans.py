"""Orphans as a command finds them: from cluster, cloud and, where it lies here, the journal; and their adoption."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass

from htas.adapters.kubernetes.lease import KubernetesLease
from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.daemon.recorded_orphans import journalled
from htas.daemon.wiring.kubernetes import KubernetesWorld
from htas.execution.adopting import adopt, chosen
from htas.execution.identity import identify
from htas.execution.orphans import orphans
from htas.model.claims import Instance
from htas.model.nodes import Node
from htas.model.orphans import Orphan
from htas.model.outcomes import Outcome
from htas.ports import PermanentError


@dataclass(frozen=True, slots=True)
class Present:
    """What cluster and cloud show now, and the orphans among the machines."""

    nodes: tuple[Node, ...]
    instances: tuple[Instance, ...]
    orphans: tuple[Orphan, ...]


def present(world: KubernetesWorld, loaded: Loaded) -> Present:
    """Look once; raises what cluster, cloud or journal answer."""
    world.cluster.read_once()
    world.supply.look()
    claims, instances = journalled(loaded), tuple(world.supply.provider.instances())
    nodes = identify(world.cluster.live.view().nodes, claims, instances, loaded.policy.cluster).nodes
    return Present(nodes, instances, orphans(nodes, claims, instances, loaded.policy))


def orphans_now(loaded: Loaded) -> tuple[Orphan, ...]:
    """The orphans there are."""
    with closing(KubernetesWorld(loaded)) as world:
        return present(world, loaded).orphans


def refuse_a_cluster_that_is_led(world: KubernetesWorld, cluster: str | None) -> None:
    """Raises PermanentError where a daemon of that name leads in this namespace: its machines are not orphans."""
    if cluster is None:
        return
    record = KubernetesLease(world.api, world.namespace, f"htas-{cluster}").read()
    if record is not None and record.holder and world.clock.now() - record.renewed_at < record.duration_s:
        raise PermanentError(f"--cluster {cluster}: {record.holder} leads it; end that daemon before")


def adopted(
    loaded: Loaded, group: str, cluster: str | None, names: Collection[str], namespace: str | None, *, dry_run: bool
) -> tuple[Sequence[Orphan], Sequence[Outcome]]:
    """Adopt the orphans that are named, or all; with `dry_run` only say which those are."""
    with closing(KubernetesWorld(loaded, namespace=namespace)) as world:
        refuse_a_cluster_that_is_led(world, cluster)
        now = present(world, loaded)
        them = chosen(now.orphans, now.instances, cluster, names)
        if dry_run:
            return them, ()
        store = SqliteStore(":memory:")  # the journal is the daemon's: it follows what the cloud says
        try:
            return them, adopt(world.ports(store), loaded.policy, them, now.nodes, group)
        finally:
            store.close()
