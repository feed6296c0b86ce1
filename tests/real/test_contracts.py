"""The ports' contracts, kept by the real cluster and by KWOK's machines: the very tests that the sandbox passes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from htas.adapters.kubernetes.cluster import KubernetesCluster
from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.provider import KwokProvider
from htas.adapters.migration.engine import MigrationEngine, MovesByMethod
from htas.adapters.migration.methods.replace import Replacing
from htas.adapters.migration.methods.simulated import Simulated, SimulatedObjects
from htas.adapters.migration.objects import Objects
from htas.daemon.wiring.kubernetes import WallClock
from htas.model.migrations import MigrationSettings
from htas.model.moves import MigrationMethod
from htas.model.snapshot import ClusterView
from tests.contracts.conftest import Universe
from tests.contracts.test_cluster_port import *  # noqa: F403 # the contract's own tests
from tests.contracts.test_migration_port import *  # noqa: F403 # the contract's own tests
from tests.contracts.test_provider_port import *  # noqa: F403 # the contract's own tests
from tests.real.harness import Cluster
from tests.real.work import RUNS, job, node

SPEED = 10.0
"""The contracts' waits are this much shorter here, and so is what runs."""
SHORTEST_S, LONGEST_S = 1.0, 12.0
COPY_S = 0.3
"""Of the Job's gigabyte: so that a target may go before its twin is there."""


class ReadAfterWrite(KubernetesCluster):
    """Reads the cluster whenever it is asked, so that a test sees what it has just done. Watching has tests of its own."""

    def observe(self) -> ClusterView:
        self.read_once()
        return super().observe()

    def changes(self) -> int:
        self.read_once()
        return super().changes()


@pytest.fixture
def universe(cluster: Cluster) -> Iterator[Universe]:
    clock = WallClock()
    reading = ReadAfterWrite(cluster.api, "htas")
    provider = KwokProvider(cluster.api, "test", "default", 1.0, Faults())
    objects, simulated = Objects(cluster.api), SimulatedObjects(cluster.api)
    bandwidth = 2**30 / COPY_S
    engines = {
        MigrationMethod.CHECKPOINT: MigrationEngine(
            simulated, Simulated(simulated, bandwidth_bytes_per_s=bandwidth), MigrationSettings()
        ),
        MigrationMethod.REPLACE: MigrationEngine(objects, Replacing(objects), MigrationSettings()),
    }
    migration = MovesByMethod(engines, objects)

    def advance_to(instant: float) -> None:
        seconds = min(max((instant - clock.now()) / SPEED, SHORTEST_S), LONGEST_S)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reading.read_once()
            time.sleep(0.2)

    cluster.create(node("a", "2", "4Gi"), node("b", "2", "4Gi"))
    task = job("job", "10s", memory="1Gi")
    task["spec"]["template"]["metadata"]["annotations"] = {RUNS: "10s", "htas.io/runtime": "10s"}
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"schedulerName": "htas", "containers": [{"name": "c", "image": "example.com/none"}]},
            },
        },
    }
    cluster.create(task, web)
    while len(reading.observe().pods) < 3 or not all(each.is_ready for each in reading.observe().nodes):
        time.sleep(0.1)
    provider.start()
    yield Universe(clock, reading, provider, migration, advance_to)
    migration.close()
    provider.close()
