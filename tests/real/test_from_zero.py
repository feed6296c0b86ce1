"""From no node at all: the paper's work arrives over minutes, and in the end only what services need is left."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from htas.sandbox.workloads.day import SHAPES
from tests.real.conftest import Tell
from tests.real.harness import BATCH, CONFIG_MAPS, Cluster, Htas, configuration, eventually, htas
from tests.real.work import Json, deployment, job

pytestmark = pytest.mark.timeout(900)
JOBS, DEPLOYMENTS = 200, 20
ARRIVAL_S = 150.0
SHRINK = 12
"""Table 4's run lengths (60 to 720 s) are divided by this: a run of the test is minutes, not an hour."""
SEED = 4


def arrivals() -> list[tuple[float, Json]]:
    """Work of Table 4's shapes at seeded instants: seconds from the start, and what is created then."""
    random = Random(SEED)
    work: list[tuple[float, Json]] = []
    for i in range(JOBS):
        name, cpu_m, gib, shortest, longest = random.choice(SHAPES)
        runs_s = random.uniform(shortest, longest) / SHRINK
        manifest = job(f"{name}-{i:03d}", f"{runs_s:.1f}s", f"{cpu_m}m", f"{round(gib * 1024)}Mi")
        work.append((random.uniform(0, ARRIVAL_S), manifest))
    for i in range(DEPLOYMENTS):
        _, cpu_m, gib, _, _ = random.choice(SHAPES)
        manifest = deployment(f"web-{i:02d}", random.randint(1, 3), f"{cpu_m}m", f"{round(gib * 1024)}Mi")
        work.append((random.uniform(0, ARRIVAL_S), manifest))
    return sorted(work, key=lambda arrival: arrival[0])


def test_from_zero_nodes_and_back(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    assert not cluster.nodes()
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        began = time.monotonic()
        for at_s, manifest in arrivals():
            time.sleep(max(0.0, began + at_s - time.monotonic()))
            cluster.create(manifest)
        eventually(
            lambda: not [each for each in _jobs(cluster) if not each["status"].get("succeeded")],
            300,
            "all Jobs complete",
        )
        done_s = time.monotonic() - began
        eventually(lambda: not _nodes(cluster, "batch"), 120, "the batch nodes are released")
        eventually(lambda: all(pod["status"]["phase"] != "Pending" for pod in cluster.pods()), 60, "nothing waits")
        eventually(lambda: daemon.metric("htas_drains") == 0, 60, "no drain is under way")
        _check_services(cluster)
        _check_machines(cluster, daemon)
        assert not [job["metadata"]["name"] for job in _jobs(cluster) if job["status"].get("failed")]
        bought, released = daemon.metric("htas_nodes_launched_total"), daemon.metric("htas_nodes_deleted_total")
        waits = daemon.metric("htas_pod_bind_wait_seconds_sum") / daemon.metric("htas_pod_bind_wait_seconds_count")
        assert daemon.stop() == 0
        assert not [line for line in daemon.lines if line.get("level") == "error"], daemon.tail()
    spent = htas("cost", config=config)
    tell(
        f"{JOBS} Jobs and {DEPLOYMENTS} Deployments (seed {SEED}, Table 4 ÷ {SHRINK}) over {ARRIVAL_S:g} s: all Jobs done after "
        f"{done_s:.0f} s; {bought:g} machines bought, {released:g} released; mean wait for a bind {waits:.1f} s "
        f"(a machine starts in 2 s)\n{spent.stdout}"
    )
    assert spent.returncode == 0


def _jobs(cluster: Cluster) -> list[Json]:
    return cluster.items(f"{BATCH}/namespaces/default/jobs")


def _nodes(cluster: Cluster, group: str) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.nodes(labelSelector=f"htas.io/group={group}")]


def _check_services(cluster: Cluster) -> None:
    for item in cluster.items("/apis/apps/v1/namespaces/default/deployments"):
        assert item["status"].get("readyReplicas") == item["spec"]["replicas"], item["metadata"]["name"]


def _check_machines(cluster: Cluster, daemon: Htas) -> None:
    """Every node has its machine and every machine its node: nothing leaked, nothing strayed."""
    nodes = {node["metadata"]["name"] for node in cluster.nodes()}
    machines = {
        item["metadata"]["labels"]["htas.io/claim"]
        for item in cluster.items(CONFIG_MAPS, labelSelector="htas.io/simulated-machine")
    }
    assert nodes == machines
    eventually(lambda: daemon.metric("htas_claims") == len(cluster.nodes()), 30, "each claim has its node")
    assert not [node for node in cluster.nodes() if node["spec"].get("unschedulable")]
