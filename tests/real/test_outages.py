"""The API server goes away, refuses, forgets; watches break. The daemon carries on, and repairs what was half done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.real.conftest import Tell
from tests.real.harness import BATCH, CONFIG_MAPS, Cluster, Htas, configuration, eventually
from tests.real.proxy import FaultyProxy
from tests.real.work import deployment, job, node, pod

pytestmark = pytest.mark.timeout(300)
OUTAGE_S = 30.0


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(cluster.kubeconfig)
    yield proxy
    proxy.stop()


def jobs_done(cluster: Cluster, wanted: int) -> bool:
    jobs = cluster.items(f"{BATCH}/namespaces/default/jobs")
    return len(jobs) == wanted and all(each["status"].get("succeeded") == each["spec"]["completions"] for each in jobs)


@pytest.fixture
def outage(cluster: Cluster) -> Iterator[None]:
    """Controllers and KWOK back off for up to a minute after an outage; the next test gets fresh ones."""
    yield
    cluster.start()
    cluster.stop("kube-controller-manager", "kwok", "kube-scheduler")
    cluster.start()


def bound(cluster: Cluster, start: str) -> int:
    return sum(bool(p["spec"].get("nodeName")) for p in cluster.pods() if p["metadata"]["name"].startswith(start))


def is_open(cluster: Cluster, name: str) -> bool:
    return any(node["metadata"]["name"] == name and not node["spec"].get("taints") for node in cluster.nodes())


def all_is_given_back(cluster: Cluster) -> bool:
    return not cluster.nodes() and not cluster.items(CONFIG_MAPS, labelSelector="htas.io/simulated-machine")


@pytest.mark.usefixtures("outage")
def test_thirty_seconds_without_an_api_server(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    """With a lease that outlasts the outage, as in production, the same process goes on."""
    lease = {"leaseDuration": "60s", "renewDeadline": "45s", "retryPeriod": "1s"}
    config = configuration(tmp_path, cluster.kubeconfig, leaderElection=lease)
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(job("before", "8s", count=3), deployment("web", 2))
        eventually(lambda: daemon.metric("htas_actions_total", verb="bind", status="done") == 5, 60, "work is bound")
        cluster.create(node("free"))  # for the work to come: KWOK and the controllers take up to a minute to recover
        eventually(lambda: is_open(cluster, "free"), 30, "the node is open: the taint of its admission is gone")
        eventually(lambda: '"free"' in daemon.get("/snapshotz")[1], 20, "it knows the node")
        cluster.stop("kube-apiserver")
        time.sleep(OUTAGE_S)
        assert daemon.process.poll() is None, daemon.tail()
        assert daemon.get("/healthz")[0] == 200, "an outage of half a minute is no reason to start the daemon anew"
        cluster.start()
        back = time.monotonic()
        cluster.create(*(pod(f"after-{i}") for i in range(4)))
        eventually(lambda: bound(cluster, "after") == 4, 60, "new work is bound")
        tell(f"API server away for {OUTAGE_S:g} s; new work bound {time.monotonic() - back:.0f} s after its return")
        eventually(
            lambda: not cluster.nodes(labelSelector="htas.io/group=batch"),
            60,
            "batch machines go",
        )
        assert daemon.metric("htas_leader") == 1
        assert daemon.stop() == 0


@pytest.mark.usefixtures("outage")
def test_a_leader_whose_lease_ran_out_in_an_outage_ends_and_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.stop("kube-apiserver")
        assert daemon.process.wait(30) == 1, "it may no longer lead, and says so by its exit"
        assert "another daemon may lead now" in daemon.tail()
    with Htas(config, tmp_path / "log") as daemon:  # as the kubelet would
        cluster.start()
        cluster.create(node("free"), pod("after"))
        eventually(lambda: bound(cluster, "after") == 1, 60, "it leads again, and binds")
        assert daemon.stop() == 0


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("status", [409, 410, 429, 500])
def test_a_third_of_the_calls_is_refused(status: int, proxy: FaultyProxy, cluster: Cluster, tmp_path: Path) -> None:
    """409: of the writes; 410: of the lists and watches. The lease is spared, since a leader without it may end.

    Drawn, not counted: what takes three calls each time, would meet with every third refused at its last for ever.
    """
    draw = Random(status)

    def refuse(method: str, path: str) -> int | None:
        is_meant = {409: method != "GET", 410: method == "GET"}.get(status, True)
        if "/leases" in path or not is_meant:
            return None
        return status if draw.random() < 1 / 3 else None

    proxy.refuse = refuse
    config = configuration(tmp_path, proxy.kubeconfig(tmp_path))
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads", within_s=60)
        for i in range(4):
            cluster.create(job(f"train-{i}", "3s", count=3))
            time.sleep(1.5)
        eventually(lambda: jobs_done(cluster, 4), 120, "the Jobs complete")
        try:
            eventually(lambda: all_is_given_back(cluster), 180, "the machines are given back")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.tail()}") from error
        assert proxy.refused[status] > 10, proxy.refused
        assert not daemon.said("cycle failed on a defect of htas, tried again"), daemon.tail()
        assert daemon.stop() == 0


def test_watches_that_are_cut_again_and_again(proxy: FaultyProxy, cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, proxy.kubeconfig(tmp_path))
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cut = 0
        for i in range(8):
            cluster.create(job(f"train-{i}", "3s"))
            time.sleep(1.0)
            cut += proxy.cut()
        assert cut >= 8 * 5, "several kinds are watched, and each watch comes back"
        eventually(lambda: jobs_done(cluster, 8), 120, "the Jobs complete")
        eventually(lambda: all_is_given_back(cluster), 180, "the machines are given back")
        assert daemon.metric("htas_watch_restarts_total") > 0
        assert daemon.stop() == 0
