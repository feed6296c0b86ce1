"""Handing back beside daemons that run: they make way, do not fight it, and go on where it fails or is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.real.harness import CONFIG_MAPS, LEASES, Cluster, Htas, Json, configuration, eventually
from tests.real.test_chart import ON_CASSANDRA, ON_OPENSTACK, SPACE, applied_rights, can, rendered
from tests.real.work import budget, deployment, node
from tools.testenv.daemon import HTAS

pytestmark = pytest.mark.timeout(240)

GROUPS = [{"name": "services", "workload": "service", "cleaning": {"enabled": False}}]
"""The daemons themselves give nothing back meanwhile."""


@pytest.fixture
def pair(cluster: Cluster, tmp_path: Path) -> Any:
    """A leader that has bought machines for a Deployment of six, and a stand-by."""
    one, other = (
        Htas(configuration(tmp_path, cluster.kubeconfig, name, nodeGroups=GROUPS), tmp_path / f"{name}.log")
        for name in ("one", "other")
    )
    with one, other:
        leader, stand_by = leading(one, other)
        cluster.create(node("theirs", cpu="1"), deployment("web", 6, cpu="700m"))
        eventually(lambda: len(running(cluster)) == 6, 60, "web runs")
        yield leader, stand_by


def leading(one: Htas, other: Htas) -> tuple[Htas, Htas]:
    eventually(lambda: one.said("leads") or other.said("leads"), 60, "one leads")
    return (one, other) if one.said("leads") else (other, one)


def running(cluster: Cluster) -> list[Json]:
    return [pod for pod in cluster.pods(labelSelector="app=web") if pod["status"].get("phase") == "Running"]


def ours(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.nodes(labelSelector="htas.io/cluster=trial")}


def used(cluster: Cluster) -> set[str]:
    """Machines that web runs on; one that was bought for the first of its pods may be empty, and goes at once."""
    return {pod["spec"]["nodeName"] for pod in running(cluster)} - {"theirs"}


def handback(cluster: Cluster, directory: Path, *options: str, timeout: str = "60s") -> subprocess.Popen[str]:
    """The command, with a configuration and a journal of its own."""
    config = configuration(directory, cluster.kubeconfig, "laptop")
    command = [HTAS, "handback", *options, "--yes", "--timeout", timeout, "--config", config]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(command: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = command.communicate(timeout=150)
    return command.returncode, said


def left_of_us(cluster: Cluster) -> set[str]:
    found = {each["metadata"]["name"] for path in (LEASES, CONFIG_MAPS) for each in cluster.items(path)}
    return found - {"kube-root-ca.crt"}


def test_all_goes_and_nobody_buys_anew(pair: tuple[Htas, Htas], cluster: Cluster, tmp_path: Path) -> None:
    leader, stand_by = pair
    status, said = ended(handback(cluster, tmp_path, "--all"))
    assert status == 0, said
    assert leader.says("makes way", 10)
    assert leader.says("stands aside", 20)
    assert not stand_by.said("leads"), "the lease was kept for the command"
    assert [each["metadata"]["name"] for each in cluster.nodes()] == ["theirs"]
    assert left_of_us(cluster) == set(), "machines, lease and status are gone"
    assert (leader.stop(), stand_by.stop()) == (0, 0)
    assert not stand_by.said("launch")


def test_a_budget_is_respected_and_told_and_the_daemons_go_on(
    pair: tuple[Htas, Htas], cluster: Cluster, tmp_path: Path
) -> None:
    _, stand_by = pair
    cluster.create(budget("web", 6))
    machines, pods = used(cluster), {pod["metadata"]["uid"] for pod in running(cluster)}
    status, said = ended(handback(cluster, tmp_path, "--all", timeout="15s"))
    assert status == 1, said
    assert "not handed back" in said
    assert "disruption budget" in said
    assert {pod["metadata"]["uid"] for pod in running(cluster)} == pods
    assert ours(cluster) == machines
    for each in cluster.nodes(labelSelector="htas.io/cluster=trial"):
        assert "taints" not in each["spec"], "it is open again"
        assert not each["spec"].get("unschedulable")
    stand_by.says("leads", 20)


def test_what_is_kept_runs_on_as_nobodys(pair: tuple[Htas, Htas], cluster: Cluster, tmp_path: Path) -> None:
    machines, pods = ours(cluster), {pod["metadata"]["uid"] for pod in running(cluster)}
    status, said = ended(handback(cluster, tmp_path, "--keep"))
    assert status == 0, said
    assert ours(cluster) == set()
    assert machines <= {each["metadata"]["name"] for each in cluster.nodes()}
    assert {pod["metadata"]["uid"] for pod in running(cluster)} == pods
    assert left_of_us(cluster) == {f"kwok-{name}" for name in machines}, "the machines themselves"


def test_one_that_is_killed_is_overtaken_and_nothing_stays_closed(
    pair: tuple[Htas, Htas], cluster: Cluster, tmp_path: Path
) -> None:
    _, stand_by = pair
    cluster.create(budget("web", 6))
    machines = used(cluster)
    command = handback(cluster, tmp_path, "--all")
    eventually(lambda: machines <= closed(cluster), 40, "all are closed")
    command.kill()
    command.communicate()
    stand_by.says("leads", 30)
    eventually(lambda: not closed(cluster), 30, "all are open")
    assert ours(cluster) >= machines
    assert len(running(cluster)) == 6


def closed(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.nodes() if each["spec"].get("unschedulable")}


def test_where_no_daemon_has_led_the_namespace_is_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    """In the wrong namespace it would find nobody leading, and fight who leads in the right one."""
    status, said = ended(handback(cluster, tmp_path, "--all"))
    assert status == 1
    assert "no lease htas-trial in namespace default" in said
    assert "--namespace" in said
    assert ended(handback(cluster, tmp_path, "--all", "--without-lease"))[0] == 0


HOOKED: Json = {"handback": {"onUninstall": True, "timeout": "20m"}}


def test_the_hook_is_left_out_unless_it_is_asked_for(helm: Path) -> None:
    assert "Job" not in [item["kind"] for item in rendered(helm)]


@pytest.mark.parametrize(
    "values", [pytest.param(ON_OPENSTACK, id="OpenStack"), pytest.param(ON_CASSANDRA, id="Cassandra")]
)
def test_the_hook_has_what_the_daemon_has(values: Json, helm: Path) -> None:
    items = rendered(helm, values | HOOKED)
    (hook,) = [item for item in items if item["kind"] == "Job"]
    (daemon,) = [item for item in items if item["kind"] == "Deployment"]
    assert hook["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    mine, its = hook["spec"]["template"]["spec"], daemon["spec"]["template"]["spec"]
    for key in ("serviceAccountName", "securityContext", "volumes", "tolerations"):
        assert mine[key] == its[key], key
    (container,), (its_container,) = mine["containers"], its["containers"]
    for key in ("image", "imagePullPolicy", "env", "securityContext", "volumeMounts"):
        assert container[key] == its_container[key], key
    selected = daemon["spec"]["selector"]["matchLabels"].items()
    assert not selected <= hook["spec"]["template"]["metadata"]["labels"].items()
    assert container["args"][:2] == ["handback", "--all"]
    assert "20m" in container["args"]


def test_only_with_the_hook_may_the_account_remove_lease_and_status(helm: Path, cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", SPACE)
    removing = ("delete leases.coordination.k8s.io/htas-main", "delete configmaps/htas-main-status")
    without_kwok = ON_OPENSTACK  # with KWOK it may delete its machines' ConfigMaps in any case
    try:
        with applied_rights(cluster, rendered(helm, without_kwok | HOOKED)):
            assert all(can(cluster, right, SPACE) for right in removing)
            assert not can(cluster, "delete leases.coordination.k8s.io/others", SPACE)
        with applied_rights(cluster, rendered(helm, without_kwok)):
            assert not any(can(cluster, right, SPACE) for right in removing)
    finally:
        cluster.kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=60s")
