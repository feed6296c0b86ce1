"""`htas migrate pod` against a daemon on a real API server, as an operator types it; KWOK keeps the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import BATCH, Cluster, Htas, Json, configuration, eventually, htas
from tests.real.work import job, node


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> Path:
    return configuration(tmp_path, cluster.kubeconfig)


@pytest.fixture
def daemon(cluster: Cluster, config: Path, tmp_path: Path) -> Iterator[Htas]:
    """It leads; two nodes that HTAS did not buy are there."""
    cluster.create(node("one"), node("two"))
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        yield daemon
        assert daemon.stop() == 0


def running(cluster: Cluster) -> Json | None:
    """The only pod, once it runs."""
    pods = [pod for pod in cluster.pods() if pod["status"].get("phase") == "Running"]
    return pods[0] if len(pods) == 1 and len(cluster.pods()) == 1 else None


def test_a_jobs_pod_is_moved_and_its_job_completes_once(
    daemon: Htas, cluster: Cluster, config: Path, tell: Tell
) -> None:
    cluster.create(job("train", "25s", "500m", "512Mi"))
    pod = eventually(lambda: running(cluster), 60, "the pod runs")
    name, here = pod["metadata"]["name"], pod["spec"]["nodeName"]
    there = "two" if here == "one" else "one"
    done = htas("migrate", "pod", f"default/{name}", "--to", there, config=config)
    tell(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Asked         default/{name} to {there} (request ")
    assert re.match(rf"Done          as {name}-m[0-9a-f]{{8}} on {there} after ", lines[-1]), lines
    twin = eventually(lambda: running(cluster), 30, "the twin alone is left")
    assert (twin["spec"]["nodeName"], twin["metadata"]["ownerReferences"][0]["name"]) == (there, "train")
    eventually(lambda: cluster.items(f"{BATCH}/jobs")[0]["status"].get("succeeded") == 1, 60, "the Job completes")
    assert "failed" not in cluster.items(f"{BATCH}/jobs")[0]["status"]
    told = htas("history", "--verb", "moved", config=config)
    tell(told.stdout)
    assert f"from {here} to {there} in " in " ".join(told.stdout.split())
    events = cluster.items("/api/v1/namespaces/default/events")
    assert "Migrated" in {event["reason"] for event in events}


def test_what_cannot_be_moved_stays_and_the_operator_is_told_why(daemon: Htas, cluster: Cluster, config: Path) -> None:
    stateful = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"schedulerName": "htas", "containers": [{"name": "main", "image": "example.com/none"}]},
            },
        },
    }
    cluster.create(stateful)
    pod = eventually(lambda: running(cluster), 60, "the pod runs")
    there = "two" if pod["spec"]["nodeName"] == "one" else "one"
    refused = htas("migrate", "pod", "db-0", "--to", there, config=config)
    assert refused.returncode == 1
    assert "Refused       MustKeepItsName: pod default/db-0: a StatefulSet's pod must keep its name" in refused.stdout
    nowhere = htas("migrate", "pod", "db-0", "--to", "three", config=config)
    assert "Refused       TargetNotReady: there is no node three" in nowhere.stdout
    assert [pod["metadata"]["uid"] for pod in cluster.pods()] == [pod["metadata"]["uid"]]


def test_without_the_token_nothing_is_moved(daemon: Htas, config: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("guess")
    token = str(tmp_path / "other")
    refused = htas("migrate", "pod", "x", "--to", "one", "--token-file", token, config=config)
    assert (refused.returncode, "show the token of http.tokenFile" in refused.stderr) == (1, True)
