"""The provider's contract, kept by a real Nova: the very tests that the sandbox and KWOK pass."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from htas.adapters.migration.engine import MovesByMethod
from htas.adapters.migration.objects import Objects
from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access, Recipe
from htas.daemon.wiring.kubernetes import WallClock
from htas.model.claims import InstanceState
from htas.ports import HTASError
from tests.contracts.conftest import Universe
from tests.contracts.test_provider_port import *  # noqa: F403 # the contract's own tests
from tests.real.harness import Cluster, eventually
from tests.real.test_contracts import ReadAfterWrite
from tools.testenv.kubelets import Kubelets
from tools.testenv.openstack import TINY, OpenStack

pytestmark = pytest.mark.timeout(300)
SHORTEST_S, LONGEST_S = 1.0, 60.0


@pytest.fixture
def universe(cluster: Cluster, openstack: OpenStack) -> Iterator[Universe]:
    clock = WallClock()
    reading = ReadAfterWrite(cluster.api, "htas")
    api = OpenStackApi(Access("htas", clouds_file=openstack.clouds_file))
    provider = OpenStackProvider(api, "test", Recipe(TINY, networks=("private",)), None, interval_s=2.0)
    provider.look()
    provider.start()

    def is_settled() -> bool:
        """Every machine runs and has its Ready node, or is gone."""
        try:
            machines = provider.instances()
        except HTASError:
            return False
        ready = {node.machine for node in reading.observe().nodes if node.is_ready}
        for node in reading.observe().nodes:  # what the daemon's reconciliation does with nodes that register bare
            owner = next((each for each in machines if each.id == node.machine and node.claim is None), None)
            if owner is not None:
                labels = {"htas.io/cluster": "test", "htas.io/claim": owner.claim or "", "htas.io/group": "any"}
                reading.set_up_node(node.name, labels | {"node.kubernetes.io/instance-type": owner.flavour})
        return all(each.state is InstanceState.ACTIVE and each.id in ready for each in machines)

    def advance_to(instant: float) -> None:
        time.sleep(SHORTEST_S)
        eventually(is_settled, LONGEST_S, "the cloud is settled")

    with Kubelets(openstack, cluster, bare=True):
        yield Universe(clock, reading, provider, MovesByMethod({}, Objects(cluster.api)), advance_to)
    provider.close()
