"""A hostile namespace beside a quiet one on the real API server: whatever a tenant may write into pods, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from htas.adapters.kubernetes.dump import read_dump
from htas.config.loader import load_configuration
from htas.model.snapshot import ClusterSnapshot
from htas.planning.namespaces.charges import NamespaceCharge, by_namespace, charges
from tests.real.conftest import Tell
from tests.real.harness import APPS, BATCH, CORE, Cluster, Htas, Json, configuration, eventually
from tests.real.work import deployment, job, pod

pytestmark = pytest.mark.timeout(300)
CORES, PRICE = 6, "0.25"
PINS = 2
NAMESPACES = ("quiet", "hostile")
LONG = "3000s"
ANYBODY = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}


@contextmanager
def namespaces(cluster: Cluster) -> Iterator[None]:
    cluster.create(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES))
    try:
        eventually(lambda: _accounts(cluster), 30, "pods may be made in the namespaces")
        yield
    finally:
        for name in NAMESPACES:
            for path in (f"{APPS}/namespaces/{name}/deployments", f"{BATCH}/namespaces/{name}/jobs"):
                cluster.delete(path)
            cluster.delete(f"{APPS}/namespaces/{name}/replicasets")
            cluster.delete(f"{CORE}/namespaces/{name}/pods")
            cluster.delete(f"{CORE}/namespaces/{name}")


def _accounts(cluster: Cluster) -> bool:
    return all(cluster.items(f"{CORE}/namespaces/{name}/serviceaccounts") for name in NAMESPACES)


def within(namespace: str, manifest: Json) -> Json:
    manifest["metadata"]["namespace"] = namespace
    return manifest


def hostile() -> Iterator[Json]:
    """What asks for much, keeps others away, makes itself immune, lies, or means nothing."""
    yield deployment("greedy", 60, "1", "1Gi")
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANYBODY]}}
    yield deployment("alone", 5, "1m", "1Mi", affinity=apart)
    yield deployment("ports", 5, hostNetwork=False, containers=[_with_ports(50)])
    pinned = deployment("pinned", 5, "1", "1Gi")
    pinned["spec"]["template"]["metadata"]["annotations"] |= {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/daemonset-pod": "true",
    }
    yield pinned
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "none", "uid": "none", "controller": True}
    yield from (pod(f"daemon-{i}", "1000", ownerReferences=[owner]) for i in range(3))
    yield from (pod(f"huge-{i}", "1000000") for i in range(3))
    yield pod("lies", annotations={"htas.io/runtime": "9e99h", "htas.io/qos": "nan"})


def _with_ports(count: int) -> Json:
    ports = [{"containerPort": 8000 + i, "hostPort": 8000 + i} for i in range(count)]
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {"name": "main", "image": "example.com/none", "ports": ports, "resources": resources}


def quiet(name: str) -> list[Json]:
    return [within("quiet", job(f"{name}-{i}", LONG)) for i in range(5)]


def test_the_quiet_one_is_served_as_if_alone(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    limits = [{"names": ["hostile"], "maxCpu": CORES, "maxPricePerHour": PRICE, "maxPins": PINS}]
    config = configuration(tmp_path, cluster.kubeconfig, namespaces=limits)
    with namespaces(cluster), Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(*quiet("alone"))
        eventually(lambda: len(_waits(cluster, "alone")) == 5, 90, "the quiet one's first jobs run, alone")
        cluster.create(*(within("hostile", manifest) for manifest in hostile()))
        eventually(lambda: _charged(cluster, config)["hostile"].cpu_m > 0, 90, "the hostile one has some machine")
        cluster.create(*quiet("beside"))
        eventually(lambda: len(_waits(cluster, "beside")) == 5, 90, "the quiet one's next jobs run, beside it")
        alone, beside, spent = _waits(cluster, "alone"), _waits(cluster, "beside"), _charged(cluster, config)["hostile"]
        eventually(lambda: "NamespaceLimitReached" in daemon.get("/planz")[1], 60, "who is beyond the limit is told so")
        tell(
            f"quiet: waits of {min(alone):.0f} to {max(alone):.0f} s alone, {min(beside):.0f} to {max(beside):.0f} s "
            f"beside; hostile: {spent.cpu_m / 1000:g} of {CORES} cores, {spent.nanos / 1e9:.4f} of {PRICE} USD/h"
        )
        assert daemon.metric("htas_pinned_pods", namespace="hostile") <= PINS
        assert daemon.metric("htas_pinned_price_per_hour", namespace="hostile") <= float(PRICE)
        assert max(beside) <= max(alone) + 6  # a start of 2 s, a cycle of 2 s, and loaded cores
        assert spent.cpu_m <= CORES * 1000
        assert spent.nanos <= float(PRICE) * 10**9
        assert daemon.stop() == 0


def _waits(cluster: Cluster, name: str) -> list[float]:
    """From being made to being bound, in whole seconds, of those of the quiet one's pods that run."""
    found = []
    for item in cluster.items(f"{CORE}/namespaces/quiet/pods"):
        bound = [
            c for c in item["status"].get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "True"
        ]
        if item["metadata"]["name"].startswith(f"{name}-") and bound and item["status"].get("startTime"):
            made, started = item["metadata"]["creationTimestamp"], bound[0]["lastTransitionTime"]
            found.append((datetime.fromisoformat(started) - datetime.fromisoformat(made)).total_seconds())
    return found


def _charged(cluster: Cluster, config: Path) -> dict[str, NamespaceCharge]:
    view = read_dump(cluster.kubectl("get", "nodes,pods", "-A", "-o", "json").encode(), "cluster")
    return by_namespace(charges(ClusterSnapshot(0.0, view), load_configuration(config).policy).items())
