"""The two real nodes as machines that HTAS owns, and a daemon that cleans them.

Their provider is the one for trials, as far as it gives machines back: that deletes the Node object, and the machine's
end is then played by ending its processes. It never makes any.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.provider import KwokProvider
from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Flavour
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, Node
from htas.model.resources import Resources
from tests.real.counting import container, job
from tests.real.harness import Json, configuration
from tests.real.moving import World
from tools.testenv.real_nodes import NAMES

FLAVOUR = "m3.small"
BUSY_CPU = "1100m"
"""Of the two cores that a node offers here: enough for it not to be emptied itself."""


def own(
    world: World,
    namespace: str = "default",
    group: str = "batch",
    cluster: str = "trial",
    only: Sequence[str] = NAMES,
) -> None:
    """Record both nodes as machines of ours, and label them so; or some of them."""
    provider = KwokProvider(world.cluster.api, cluster, namespace, 0.0, Faults(never_registers=1.0))
    now = time.time()
    for name in only:
        claim = NodeClaim(name, group, FLAVOUR, ClaimState.WANTED, now, now)
        resources = Resources(cpu_m=2000, memory_bytes=4 << 30, pods=110)
        flavour = Flavour(name=FLAVOUR, capacity=resources, nanos_per_hour=1)
        provider.create(claim, flavour, Node(name=name, allocatable=resources))
        labels = {CLUSTER_LABEL: cluster, CLAIM_LABEL: name, GROUP_LABEL: group}
        world.cluster.kubectl("label", "node", name, *(f"{key}={text}" for key, text in labels.items()))


def cleaning(world: World, directory: Path, method: str, kubeconfig: Path | None = None, **changes: Any) -> Path:
    """A configuration of one group whose nodes are emptied by a method, after seconds."""
    rules = {"migration": method, "underutilizedFor": "3s", "queueEmptyFor": "3s", "migrationTime": "2s"}
    copying = {
        "user": "root",
        "identityFile": str(world.nodes.identity_file),
        "knownHostsFile": str(world.nodes.known_hosts_file),
    }
    document: Json = {
        "nodeGroups": [{"name": "batch", "workload": "any", "cleaning": rules}],
        "provider": {"kwok": {"startupDelay": "1h"}},  # nothing is bought in time
        "migration": {"scp": copying},
        **changes,
    }
    return configuration(directory, kubeconfig or world.cluster.kubeconfig, **document)


def expected_to_run_on(manifest: Json) -> Json:
    """Work that a move is worth while for."""
    manifest["spec"]["template"]["metadata"].setdefault("annotations", {})["htas.io/runtime"] = "30m"
    return manifest


def busy(node: str) -> Json:
    """A Job that keeps a node from being emptied."""
    counting = container()
    counting["resources"]["requests"]["cpu"] = BUSY_CPU
    return expected_to_run_on(job("busy", node, counting))
