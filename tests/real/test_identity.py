"""Somebody overwrites labels on a real API server, or the cluster is renamed: no pod is killed, and it is reported."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.harness import Cluster, Htas, configuration, eventually, htas
from tests.real.work import deployment

pytestmark = pytest.mark.timeout(400)

SOON_S = 12.0
"""Of `timeouts.registration` and its like: machines that seem never to have registered would be deleted in the test."""
KEEPS: dict[str, Any] = {
    "nodeGroups": [{"name": "services", "workload": "service", "cleaning": {"enabled": False}}],
    "timeouts": {"launch": "12s", "registration": "12s", "ready": "12s", "missing": "12s"},
}


def running(cluster: Cluster) -> set[tuple[str, str]]:
    """Pods of web that run, each by its uid and node."""
    pods = [pod for pod in cluster.pods(labelSelector="app=web") if pod["status"].get("phase") == "Running"]
    return {(pod["metadata"]["uid"], pod["spec"]["nodeName"]) for pod in pods}


def own_labels(cluster: Cluster) -> dict[str, dict[str, str]]:
    keys = ("htas.io/cluster", "htas.io/claim", "htas.io/group")
    return {
        node["metadata"]["name"]: {key: node["metadata"]["labels"].get(key, "") for key in keys}
        for node in cluster.nodes()
    }


def test_labels_of_all_nodes_are_overwritten_three_times(cluster: Cluster, tmp_path: Path) -> None:
    with Htas(configuration(tmp_path, cluster.kubeconfig, **KEEPS), tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(deployment("web", 4, cpu="3"))
        eventually(lambda: len(running(cluster)) == 4, 60, "web runs")
        eventually(lambda: daemon.metric("htas_claims", state="Ready") == len(cluster.nodes()), 30, "all are Ready")
        work, labels = running(cluster), own_labels(cluster)
        for label in ("htas.io/claim=x", "htas.io/cluster=other", "htas.io/group=none"):
            cluster.kubectl("label", "nodes", "--all", "--overwrite", label)
            eventually(lambda: own_labels(cluster) == labels, 120, f"{label} is set back")
            time.sleep(2 * SOON_S)
            assert running(cluster) == work
            assert own_labels(cluster) == labels
        assert daemon.metric("htas_node_labels_restored_total") == 3 * len(labels)
        events = cluster.items("/api/v1/events", fieldSelector="reason=LabelsRestored")
        assert {event["involvedObject"]["name"] for event in events} == set(labels)


def test_a_cluster_that_is_renamed_adopts_its_machines_or_hands_them_back(cluster: Cluster, tmp_path: Path) -> None:
    with Htas(configuration(tmp_path, cluster.kubeconfig, **KEEPS), tmp_path / "before") as daemon:
        daemon.says("leads")
        cluster.create(deployment("web", 2, cpu="3"))
        eventually(lambda: len(running(cluster)) == 2, 60, "web runs")
        eventually(lambda: daemon.metric("htas_claims", state="Ready") == len(cluster.nodes()), 30, "all are Ready")
        work = running(cluster)
        assert daemon.stop() == 0
    config = configuration(tmp_path, cluster.kubeconfig, **KEEPS, cluster="renamed")
    with Htas(config, tmp_path / "after") as daemon:
        daemon.says("leads")
        count = len({node for _, node in work})
        eventually(lambda: daemon.metric("htas_orphans", reason="OtherCluster") == count, 60, "they are reported")
        time.sleep(2 * SOON_S)
        assert running(cluster) == work
        assert "htas adopt --cluster trial" in htas("check", "--live", config=config).stderr
        tried = htas("adopt", "--group", "services", "--cluster", "trial", "--dry-run", config=config)
        assert (tried.returncode, tried.stdout.count("would adopt") + tried.stderr.count("would adopt")) == (0, count)
        done = htas("adopt", "--group", "services", "--cluster", "trial", "--yes", config=config)
        assert done.returncode == 0, done.stdout + done.stderr
        eventually(lambda: daemon.metric("htas_orphans") == 0, 60, "they have a place again")
        eventually(lambda: daemon.metric("htas_claims", state="Ready") == count, 60, "they are ours")
        assert running(cluster) == work
        assert {each["htas.io/cluster"] for each in own_labels(cluster).values()} == {"renamed"}


def test_orphans_are_handed_back_by_a_drain(cluster: Cluster, tmp_path: Path) -> None:
    with Htas(configuration(tmp_path, cluster.kubeconfig, **KEEPS), tmp_path / "before") as daemon:
        daemon.says("leads")
        cluster.create(deployment("web", 2, cpu="3"))
        eventually(lambda: len(running(cluster)) == 2, 60, "web runs")
        old = {node for _, node in running(cluster)}
        assert daemon.stop() == 0
    config = configuration(tmp_path, cluster.kubeconfig, **KEEPS, cluster="renamed")
    with Htas(config, tmp_path / "after") as daemon:
        daemon.says("leads")
        eventually(lambda: daemon.metric("htas_orphans", reason="OtherCluster") == len(old), 60, "they are reported")
        options = ("--orphans", "--cluster", "trial", "--yes", "--timeout", "60s", "--without-lease")
        done = htas(
            "handback",
            *options,
            config=configuration(tmp_path, cluster.kubeconfig, "laptop", **KEEPS, cluster="renamed"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not {node["metadata"]["name"] for node in cluster.nodes()} & old
    with Htas(config, tmp_path / "again") as daemon:
        daemon.says("leads")
        eventually(lambda: len(running(cluster)) == 2, 60, "web runs on machines of the new name")
        assert not {node for _, node in running(cluster)} & old
