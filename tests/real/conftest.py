"""One cluster for all tests of this folder; each test finds it empty."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.cassandra import schema
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import CassandraSettings
from tests.real.harness import ROOT, TESTENV, Cluster, Json, configuration
from tests.real.moving import World
from tests.real.released import SPACE
from tools.testenv.cassandra import DATACENTER, PORT, Cassandra
from tools.testenv.cluster import PATIENCE
from tools.testenv.openstack import OpenStack
from tools.testenv.real_nodes import REGISTRY, RealNodes

Tell = Callable[[str], None]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "htas"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A story's time limit is as patient as its waits are."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            marker = item.get_closest_marker("timeout")
            limit_s = marker.args[0] if marker is not None else float(item.config.getini("timeout"))
            item.add_marker(pytest.mark.timeout(limit_s * PATIENCE), append=False)


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real control plane; HTAS_KUBE_BIN names its binaries (tools/testenv/kube-build.sh makes them)."""
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", CACHE / "kube-bin"))
    cluster = Cluster(tmp_path_factory.mktemp("kube"), binaries)
    yield cluster
    cluster.purge()


@pytest.fixture
def cluster(kube: Cluster) -> Iterator[Cluster]:
    """The cluster, empty before and after."""
    kube.start()
    kube.wipe()
    yield kube
    kube.start()
    kube.wipe()


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> Path:
    return configuration(tmp_path, cluster.kubeconfig)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Print for whoever reads the run's output: what was measured, what it cost."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    """The namespace that the chart is installed in."""
    cluster.kubectl("create", "namespace", SPACE)
    yield SPACE
    cluster.kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=60s")


@pytest.fixture(scope="session")
def helm() -> Path:
    """helm, built from its Go module where it is not there yet."""
    built = subprocess.run([TESTENV / "helm-build.sh"], capture_output=True, text=True, timeout=900, check=True)
    return Path(built.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def nova(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStack]:
    """A real OpenStack. HTAS_OS_DIR names one that stays when the tests are over, for those who run them often."""
    kept = os.environ.get("HTAS_OS_DIR")
    cloud = OpenStack(Path(kept or tmp_path_factory.mktemp("openstack")))
    yield cloud
    if kept is None:
        cloud.purge()


@pytest.fixture
def openstack(nova: OpenStack) -> Iterator[OpenStack]:
    """The cloud, its project empty before and after."""
    nova.start()
    nova.wipe()
    yield nova
    nova.start()
    nova.wipe()


@pytest.fixture
def cloud_config(cluster: Cluster, openstack: OpenStack, tmp_path: Path) -> Callable[..., Path]:
    """Makes a configuration for machines from that cloud; `poll` and `provider` change the provider, the rest sections."""

    def make(name: str = "htas", poll: str = "2s", provider: Json | None = None, **changes: Any) -> Path:
        machines: Json = {
            "cloud": "htas",
            "cloudsFile": str(openstack.clouds_file),
            "image": "tiny",
            "networks": [],
            "userData": {
                "template": str(ROOT / "deploy" / "openstack" / "cloud-init.yaml"),
                "kubeadm": {"apiServer": "127.0.0.1:6443"},
            },
            "pollInterval": poll,
            **(provider or {}),
        }
        cleaning = {"underutilizedFor": "5s", "queueEmptyFor": "5s", "migrationTime": "2s"}
        groups = [
            {"name": "services", "workload": "service", "cleaning": cleaning},
            {"name": "batch", "workload": "batch", "cleaning": cleaning},
        ]
        changes = {"nodeGroups": groups, **changes}
        return configuration(tmp_path, cluster.kubeconfig, name, provider={"openstack": machines}, **changes)

    return make


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cassandra]:
    """A real Cassandra of one node. HTAS_CASSANDRA_DIR names one that stays when the tests are over, HTAS_CASSANDRA_PORT its port."""
    kept = os.environ.get("HTAS_CASSANDRA_DIR")
    port = int(os.environ.get("HTAS_CASSANDRA_PORT", PORT))
    server = Cassandra(Path(kept or tmp_path_factory.mktemp("cassandra")), port=port)
    yield server
    if kept is None:
        server.purge()


@pytest.fixture(scope="session")
def made_keyspace(cassandra: Cassandra) -> CassandraSettings:
    """How HTAS reaches it; the keyspace is made once, since defining takes seconds."""
    settings = CassandraSettings(cassandra.contact_points, DATACENTER, "test", keyspace="htas_contract")
    session = Session(settings)
    schema.init(session, {DATACENTER: 1})
    session.close()
    return settings


@pytest.fixture
def keyspace(cassandra: Cassandra, made_keyspace: CassandraSettings) -> CassandraSettings:
    """The keyspace, empty; the server runs."""
    cassandra.start()
    cassandra.wipe(made_keyspace.keyspace)
    return made_keyspace


@pytest.fixture(scope="session")
def real_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two real kubelets with containerd and CRIU, and a control plane that no other test sweeps Nodes from.

    It misses a silent kubelet after 20 s, not after 200. HTAS_NODES_DIR names where they stay when the tests are over.
    """
    kept = os.environ.get("HTAS_NODES_DIR")
    directory = Path(kept or tmp_path_factory.mktemp("real-nodes"))
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", CACHE / "kube-bin"))
    flags = "--node-monitor-period=2s --node-monitor-grace-period=20s"
    cluster = Cluster(directory / "kube", binaries, HTAS_KUBE_CONTROLLER_FLAGS=flags)
    options = {"HTAS_NODES_CONTEXT": "htas-t", "HTAS_NODES_NET": "10.94", "HTAS_NODES_REGISTRIES": REGISTRY}
    with ExitStack() as purged:  # a control plane whose nodes do not start is left behind by nobody
        if kept is None:
            options["HTAS_NODES_OWNER"] = str(os.getpid())
            purged.callback(cluster.purge)
        nodes = RealNodes(directory / "nodes", cluster, **options)
        if kept is None:
            purged.callback(nodes.purge)
        yield World(cluster, nodes)


@pytest.fixture
def world(real_nodes: World) -> Iterator[World]:
    """The two nodes, without work before and after."""
    real_nodes.wipe()
    yield real_nodes
    real_nodes.wipe()
