"""Machines from a real Nova: bought, registered, used, returned; with quotas, failures and outages on the way.

Nova's hypervisor is its fake one; `Kubelets` plays what the machines' user data would start. Nova's own list is the witness.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import BATCH, Cluster, Htas, Json, eventually
from tests.real.work import deployment, job
from tools.testenv.kubelets import Kubelets
from tools.testenv.openstack import OpenStack

pytestmark = pytest.mark.timeout(300)


def prices(*named: tuple[str, int, str, str]) -> Json:
    flavours = [{"name": n, "cpu": c, "memory": m, "pricePerHour": p} for n, c, m, p in named]
    return {"currency": "USD", "billing": {"granularity": "1s", "minimum": "1s"}, "flavours": flavours}


LARGE = ("m1.large", 4, "16Gi", "0.2746")
MEDIUM = ("m1.medium", 2, "8Gi", "0.1371")
SMALL = ("m3.small", 2, "4Gi", "0.0686")
HUGE = ("huge", 1, "1Gi", "0.0100")
ONE = ("m3.xsmall", 1, "2Gi", "0.0343")

Configured = Callable[..., Path]


@pytest.fixture
def configured(cluster: Cluster, openstack: OpenStack, cloud_config: Configured) -> Configured:
    return cloud_config


def jobs_done(cluster: Cluster) -> int:
    return sum(bool(each["status"].get("succeeded")) for each in cluster.items(f"{BATCH}/namespaces/default/jobs"))


def claims(openstack: OpenStack) -> list[str]:
    return [server.metadata["htas.claim"] for server in openstack.servers() if "htas.claim" in server.metadata]


def test_work_arrives_machines_come_work_ends_machines_go(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path, tell: Tell
) -> None:
    """The main job: 40 Jobs of three shapes and a service, over Nova's flavours, and everything is returned."""
    with Htas(configured(), tmp_path / "log") as daemon, Kubelets(openstack, cluster) as kubelets:
        daemon.says("leads")
        begun = time.monotonic()
        cluster.create(deployment("web", 2, "400m", "512Mi"))
        for i in range(40):
            cpu, memory = (("500m", "1Gi"), ("1", "3Gi"), ("1500m", "6Gi"))[i % 3]
            cluster.create(job(f"job-{i:02d}", f"{10 + i % 7}s", cpu, memory))
        eventually(lambda: jobs_done(cluster) == 40, 180, "all Jobs complete")
        done_s = time.monotonic() - begun
        bought = openstack.flavours()
        eventually(lambda: len(openstack.servers()) <= 1, 90, "what batch work ran on is returned")
        eventually(lambda: len(cluster.nodes()) <= 1, 30, "nodes are gone with their machines")
        cluster.delete("/apis/apps/v1/namespaces/default/deployments/web")
        eventually(lambda: not openstack.servers(), 90, "Nova lists no server any more")
        eventually(lambda: not cluster.nodes(), 60, "no Node is left")
        assert daemon.metric("htas_nodes_launched_total") == daemon.metric("htas_nodes_deleted_total")
        total = daemon.metric("htas_nodes_launched_total")
        assert daemon.stop() == 0
        assert len(set(kubelets.tokens)) == len(kubelets.tokens) == total
        secrets = cluster.items("/api/v1/namespaces/kube-system/secrets")
        assert not [each for each in secrets if each["type"] == "bootstrap.kubernetes.io/token"], "all have ended"
    tell(
        f"40 Jobs and a service: Jobs done after {done_s:.0f} s; {total:g} servers bought and returned, at the end {bought}"
    )


def test_a_quota_is_asked_within_and_used_when_it_grows(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path
) -> None:
    """The first machine is too small for those that wait: quota or not, it is returned when its work ends."""
    openstack.quota(instances=3)
    config = configured(flavours=prices(ONE, SMALL))
    with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster):
        daemon.says("leads")
        cluster.create(job("job-0", "20s", "900m", "256Mi"))
        eventually(lambda: len(claims(openstack)) == 1, 60, "one is bought")
        for i in range(1, 10):
            cluster.create(job(f"job-{i}", "40s", "1900m", "256Mi"))
        eventually(lambda: len(claims(openstack)) == 3, 60, "three are bought")
        eventually(
            lambda: daemon.metric("htas_unschedulable_pods", reason="QuotaReached") == 7, 30, "seven wait for quota"
        )
        eventually(lambda: daemon.metric("htas_nodes_deleted_total") == 1, 60, "the first is returned all the same")
        eventually(lambda: openstack.flavours() == {"m3.small": 3}, 60, "a larger one takes its place")
        assert daemon.metric("htas_cloud_requests_total", code="403") == 0  # what cannot be granted is not asked for
        openstack.quota(instances=20)
        eventually(lambda: daemon.metric("htas_nodes_launched_total") >= 8, 60, "the rest is bought without a restart")
        eventually(lambda: jobs_done(cluster) == 10, 150, "all Jobs complete")


def test_a_quota_that_others_used_up_meanwhile_backs_off_and_never_holds_up_a_release(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path
) -> None:
    """HTAS looks at the quota once a minute here: the cloud's refusal is the first it hears of it."""
    config = configured(
        flavours=prices(ONE),
        poll="60s",
        timeouts={"backoffInitial": "15s", "backoffMax": "60s"},
    )
    with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster):
        daemon.says("leads")
        cluster.create(job("first", "20s", "900m", "256Mi"))
        eventually(lambda: len(cluster.nodes()) == 1, 60, "one is bought")
        time.sleep(2)
        openstack.quota(instances=1)
        cluster.create(job("second", "10s", "900m", "256Mi"))
        refused = daemon.says("launch", status="failed")
        assert "Quota exceeded for instances" in refused["message"]
        eventually(lambda: daemon.metric("htas_backoffs", flavour="m3.xsmall") == 1, 10, "the flavour backs off")
        eventually(
            lambda: daemon.metric("htas_unschedulable_pods", reason="BackingOff") == 1, 10, "the pod waits for that"
        )
        eventually(
            lambda: daemon.metric("htas_nodes_deleted_total", group="batch", reason="Empty") >= 1, 90, "released"
        )
        eventually(lambda: jobs_done(cluster) == 2, 120, "the second runs in the room that came free")


def test_a_flavour_without_a_host_is_cleaned_up_and_the_next_cheapest_bought(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path, tell: Tell
) -> None:
    """Nova accepts `huge` (by its quota it may) and then finds no host for it: ERROR, No valid host was found."""
    with Htas(configured(flavours=prices(HUGE, ONE)), tmp_path / "log") as daemon, Kubelets(openstack, cluster):
        daemon.says("leads")
        cluster.create(job("one", "5s", "500m", "256Mi"))
        failed = daemon.says("delete", status="done", within_s=60)
        assert "No valid host was found" in failed["message"]
        eventually(lambda: "m3.xsmall" in openstack.flavours(), 30, "the next-cheapest is bought")
        lines = [line for line in daemon.lines if line.get("event") == "launch" and line.get("status") == "done"]
        assert [line["message"].split()[0] for line in lines] == ["huge", "m3.xsmall"]
        eventually(lambda: jobs_done(cluster) == 1, 60, "the Job completes")
        eventually(lambda: not openstack.servers(), 60, "nothing is left, the failed server first of all")
    tell(f"huge accepted at {lines[0]['timestamp']}, m3.xsmall accepted at {lines[1]['timestamp']}")


def test_machines_of_others_are_never_touched(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path
) -> None:
    foreign = openstack.add_server("database", {})
    cousin = openstack.add_server(
        "other-batch-0123456789", {"htas.cluster": "other", "htas.claim": "x", "htas.group": "batch"}
    )
    orphan = openstack.add_server(
        "trial-batch-0123456789",
        {"htas.cluster": "trial", "htas.claim": "trial-batch-0123456789", "htas.group": "batch"},
    )
    config = configured(timeouts={"registration": "10s"})
    with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster, lambda server: server.id != orphan.id):
        daemon.says("adopt", subject="trial-batch-0123456789")
        cluster.create(job("one", "5s", "500m", "256Mi"))
        eventually(lambda: jobs_done(cluster) == 1, 90, "the Job completes")
        eventually(
            lambda: {server.id for server in openstack.servers()} == {foreign.id, cousin.id},
            90,
            "what is ours is gone, the forgotten server too; what is not ours stays",
        )
        time.sleep(5)
        assert {server.id for server in openstack.servers()} == {foreign.id, cousin.id}


def test_a_node_whose_kubelet_says_nothing_of_htas_is_known_by_its_provider_id(
    cluster: Cluster, openstack: OpenStack, configured: Configured, tmp_path: Path
) -> None:
    with Htas(configured(), tmp_path / "log") as daemon, Kubelets(openstack, cluster, bare=True):
        daemon.says("leads")
        cluster.create(job("one", "15s", "500m", "256Mi"))
        daemon.says("set-up", status="done", within_s=60)
        (node,) = cluster.nodes()
        labels = node["metadata"]["labels"]
        assert labels["htas.io/claim"] == claims(openstack)[0]
        assert labels["node.kubernetes.io/instance-type"] in openstack.flavours()
        eventually(lambda: jobs_done(cluster) == 1, 60, "the Job runs there")
        eventually(lambda: not openstack.servers() and not cluster.nodes(), 90, "both are gone")
