"""`mode: recommend` on a real API server, beside kube-scheduler and nodes that are there: what it writes, by the API
server's own audit log, and how near the savings that it tells are to those that HTAS makes once it is in charge.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.provider import KwokProvider
from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Flavour
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, INSTANCE_TYPE_LABEL, Node
from htas.model.resources import Resources
from tests.real.conftest import CACHE, Tell
from tests.real.harness import Cluster, Htas, Json, configuration, eventually, htas
from tests.real.test_chart import ACCOUNT, SPACE, account_kubeconfig, applied_rights, rendered
from tests.real.work import deployment, job, node

READS = frozenset({"get", "list", "watch"})
COUNT, FLAVOUR = 5, "m1.large"
CORES, MEMORY = 4, 16
JOBS = 12
WORK_S = 145.0
"""How long work is watched, in each of the two runs: the last of the jobs ends 142 s after the first came."""
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane that writes down every request that it answers."""
    directory = tmp_path_factory.mktemp("audited")
    (directory / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    flags = f"--audit-policy-file={directory}/policy.yaml --audit-log-path={directory}/audit.log"
    cluster = Cluster(directory / "kube", CACHE / "kube-bin", HTAS_KUBE_APISERVER_FLAGS=flags)
    yield cluster
    cluster.purge()


def requests_of(cluster: Cluster, account: str) -> list[Json]:
    lines = (cluster.directory.parent / "audit.log").read_text().splitlines()
    found = (msgspec.json.decode(line) for line in lines if account in line)
    return [each for each in found if each["user"]["username"] == account]


def written(cluster: Cluster, account: str) -> set[tuple[str, str, str, str]]:
    """What an account asked to change: verb, kind, namespace and name; "" where it was to be made."""
    found = set()
    for each in requests_of(cluster, account):
        what = each.get("objectRef", {})
        if each["verb"] not in READS:
            found.add((each["verb"], what.get("resource", ""), what.get("namespace", ""), what.get("name", "")))
    return found


@pytest.fixture
def space_of(audited: Cluster) -> Iterator[Cluster]:
    audited.start()
    audited.wipe()
    audited.kubectl("create", "namespace", SPACE)
    yield audited
    audited.wipe()
    audited.kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=60s")


def fixed_nodes() -> list[Json]:
    return [node(f"fixed-{i}", str(CORES), f"{MEMORY}Gi", **{INSTANCE_TYPE_LABEL: FLAVOUR}) for i in range(COUNT)]


def work(scheduler: str) -> list[tuple[float, Json]]:
    """When what is sent: a service throughout, and jobs of 20 to 50 s, more of them in the middle."""
    sent: list[tuple[float, Json]] = [(0.0, deployment("web", 3, "500m", "1Gi", scheduler))]
    for i in range(JOBS):
        at_s = 4.0 + i * 8.0
        runs, cpu = 20 + i * 7 % 31, ("1", "1500m", "2")[i % 3]
        sent.append((at_s, job(f"job-{i}", f"{runs}s", cpu, "2Gi", scheduler=scheduler)))
    return sent


def play(cluster: Cluster, scheduler: str) -> None:
    """Send the work at its times, and wait until it is over."""
    began = time.monotonic()
    for at_s, manifest in work(scheduler):
        time.sleep(max(0.0, began + at_s - time.monotonic()))
        cluster.create(manifest)
    time.sleep(max(0.0, began + WORK_S - time.monotonic()))


def settings(mode: str, kubeconfig: Path) -> Json:
    rules = {"underutilizedFor": "10s", "queueEmptyFor": "10s", "emptyRelease": "at-once"}
    return {
        "mode": mode,
        "kubernetes": {"kubeconfig": str(kubeconfig), "namespace": SPACE},
        "nodeGroups": [{"name": "any", "workload": "any", "cleaning": rules}],
        "recommend": {"startup": "2s"},
    }


def report(daemon: Htas) -> Json:
    status, body = daemon.get("/api/v1/recommendation")
    assert status == 200, body
    found: Json = msgspec.json.decode(body)
    return found


def bought_already(cluster: Cluster) -> None:
    """The same nodes as machines that HTAS has bought: of the provider that it returns them to."""
    provider = KwokProvider(cluster.api, "trial", SPACE, 0.0, Faults())
    provider.start()
    now = time.time()
    room = Resources(cpu_m=1000 * CORES, memory_bytes=MEMORY << 30, pods=110)
    flavour = Flavour(name=FLAVOUR, capacity=room, nanos_per_hour=274_600_000)
    try:
        for i in range(COUNT):
            claim = NodeClaim(f"fixed-{i}", "any", FLAVOUR, ClaimState.WANTED, now, now)
            labels = {CLUSTER_LABEL: "trial", CLAIM_LABEL: claim.id, GROUP_LABEL: "any", INSTANCE_TYPE_LABEL: FLAVOUR}
            provider.create(claim, flavour, Node(name=claim.id, allocatable=room, labels=labels))
        eventually(lambda: ready(cluster) == COUNT, 60, "all nodes are Ready")
    finally:
        provider.close()


def ready(cluster: Cluster) -> int:
    conditions = (each["status"].get("conditions", ()) for each in cluster.nodes())
    return sum(any(one["type"] == "Ready" and one["status"] == "True" for one in each) for each in conditions)


def uids(cluster: Cluster) -> dict[str, Any]:
    """Of nodes and pods, what HTAS could have changed: their names, taints, labels and places."""
    nodes = {each["metadata"]["name"]: (each["spec"], each["metadata"]["labels"]) for each in cluster.nodes()}
    web = cluster.pods(labelSelector="app=web")
    return nodes | {each["metadata"]["name"]: each["spec"].get("nodeName") for each in web}


@pytest.mark.timeout(900)
def test_it_writes_nothing_and_what_it_tells_is_what_htas_then_saves(
    helm: Path, space_of: Cluster, tmp_path: Path, tell: Tell
) -> None:
    cluster = space_of
    items = rendered(helm, {"config": {"cluster": "trial", "mode": "recommend"}})
    with applied_rights(cluster, items):
        told = _watched(cluster, tmp_path)
    assert written(cluster, ACCOUNT) <= {
        ("create", "leases", SPACE, ""),
        ("create", "leases", SPACE, "htas-trial"),
        ("update", "leases", SPACE, "htas-trial"),
        ("create", "configmaps", SPACE, ""),
        ("create", "configmaps", SPACE, "htas-trial-status"),
        ("patch", "configmaps", SPACE, "htas-trial-status"),
    }
    refused = [each for each in requests_of(cluster, ACCOUNT) if each["responseStatus"]["code"] == 403]
    assert not refused, refused[:3]
    cluster.wipe()
    made = _in_charge(cluster, tmp_path)
    real, with_htas = float(told["real"]["spent"]), float(told["with_htas"]["spent"])
    off = ((real - with_htas) - (real - made)) / (real - made)
    tell(
        f"{COUNT} {FLAVOUR} for {WORK_S:g} s: spent {real:.4f}, told with HTAS {with_htas:.4f}, then spent {made:.4f}: "
        f"savings told {real - with_htas:.4f}, made {real - made:.4f}, {off:+.1%} off"
    )
    assert abs(off) < 0.05


def _watched(cluster: Cluster, directory: Path) -> Json:
    kubeconfig = account_kubeconfig(cluster, directory)
    config = configuration(directory, kubeconfig, "recommend", **settings("recommend", kubeconfig))
    cluster.create(*fixed_nodes())
    eventually(lambda: ready(cluster) == COUNT, 60, "all nodes are Ready")
    with Htas(config, directory / "recommend.log") as daemon:
        daemon.says("recommends")
        before = {name: known for name, known in uids(cluster).items() if name.startswith("fixed-")}
        play(cluster, "default-scheduler")
        told = report(daemon)
        assert {name: known for name, known in uids(cluster).items() if name in before} == before
        assert not [line for line in daemon.lines if line.get("level") in ("error", "warning")], daemon.tail()
        assert daemon.metric("htas_recommended_cost", course="real") > 0
        status = cluster.kubectl("-n", SPACE, "get", "configmap", "htas-trial-status", "-o", "jsonpath={.data.status}")
        assert "recommended" in yaml.safe_load(status)
        for command in (("top",), ("cost",), ("history",), ("plan",), ("explain", "node", "fixed-0")):
            done = htas(*command, config=config)
            assert done.returncode == 0, (command, done.stderr)
        assert "HTAS changes nothing" in htas("cost", config=config).stdout
        assert "recommended" in htas("history", config=config).stdout
        assert daemon.stop() == 0
    return told


def _in_charge(cluster: Cluster, directory: Path) -> float:
    """What HTAS spends on the same work, from the same nodes on, in the same time."""
    bought_already(cluster)
    config = configuration(directory, cluster.kubeconfig, "acts", **settings("automatic", cluster.kubeconfig))
    with Htas(config, directory / "acts.log") as daemon:
        daemon.says("leads")
        began = time.time()
        play(cluster, "htas")
        status, body = daemon.get(f"/api/v1/costs?since={began}&until={time.time()}")
        assert status == 200, body
        return float(msgspec.json.decode(body)["total"])
