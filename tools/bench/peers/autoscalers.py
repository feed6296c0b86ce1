"""The autoscalers that a day is played under, each a process on the same control plane."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from htas.config.places import config_file
from htas.model.flavours import Catalogue
from tools.testenv.cluster import Cluster, eventually
from tools.testenv.daemon import Htas, free_port

Json = dict[str, Any]
BUILD = Path(__file__).parent / "karpenter" / "build.sh"
RESERVED_M, RESERVED_MI = 100, 10
"""What Karpenter's KWOK provider takes off every machine: its types are given so much more."""


def karpenter_folder() -> Path:
    """The folder of the binary and its CRDs, built if need be: three minutes the first time."""
    done = subprocess.run([BUILD], capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        raise SystemExit(f"Karpenter was not built: {done.stderr[-2000:]}")
    return Path(done.stdout.strip().splitlines()[-1])


@contextmanager
def karpenter(cluster: Cluster, directory: Path, catalogue: Catalogue, start_s: float) -> Iterator[None]:
    """The real Karpenter; kube-scheduler binds. One NodePool of all flavours, consolidated when empty or under-used."""
    folder = karpenter_folder()
    for crd in sorted(folder.glob("*.yaml")):
        cluster.kubectl("apply", "--server-side", "-f", str(crd))
    eventually(
        lambda: "nodepools" in cluster.kubectl("api-resources", "--api-group=karpenter.sh"), 30, "CRDs are known"
    )
    types = directory / "instance_types.json"
    types.write_bytes(msgspec.json.encode([_instance_type(each) for each in catalogue.flavours]))
    log = (directory / "karpenter.log").open("wb")
    process = subprocess.Popen([folder / "karpenter"], stdout=log, stderr=log, env=_environment(cluster, types))
    try:
        cluster.kubectl("apply", "-f", "-", input=_pool(start_s))
        yield
        assert process.poll() is None, (directory / "karpenter.log").read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def _environment(cluster: Cluster, types: Path) -> dict[str, str]:
    return {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "SYSTEM_NAMESPACE": "kube-system",
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        "INSTANCE_TYPES_FILE_PATH": str(types),
    }


def _instance_type(flavour: Any) -> Json:
    """A flavour as Karpenter's KWOK provider reads it: what it offers, and as much more as is reserved of it."""
    offers = flavour.allocatable
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
    ]
    return {
        "name": flavour.name,
        "offerings": [{"Price": flavour.nanos_per_hour / 10**9, "Available": True, "Requirements": requirements}],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {
            "cpu": f"{offers.cpu_m + RESERVED_M}m",
            "memory": f"{offers.memory_bytes // 2**20 + RESERVED_MI}Mi",
            "pods": str(offers.pods or 110),
        },
    }


def _pool(start_s: float) -> str:
    kind = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {"spec": {"requirements": [on_demand], "nodeClassRef": kind, "expireAfter": "Never"}},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
                "budgets": [{"nodes": "100%"}],
            },
        },
    }
    node_class = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": f"{start_s:.0f}s"},
    }
    return yaml.safe_dump_all([node_class, pool])


@contextmanager
def htas(cluster: Cluster, directory: Path, prices: Json, start_s: float) -> Iterator[None]:
    """HTAS as shipped for KWOK (config/kwok.yaml), which binds its pods itself."""
    document = yaml.safe_load(config_file("kwok.yaml").read_text())
    document |= {
        "flavours": prices,
        "provider": {"kwok": {"startupDelay": f"{start_s:.0f}s"}},
        "kubernetes": {"kubeconfig": str(cluster.kubeconfig)},
        "http": {"listen": f"127.0.0.1:{free_port()}"},
        "store": {"sqlite": {"path": "htas.db"}},
        "limits": {},
        "logging": {"format": "json"},
    }
    (directory / "htas.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    with Htas(directory / "htas.yaml", directory / "htas.log") as daemon:
        daemon.says("leads")
        yield
        daemon.stop()
