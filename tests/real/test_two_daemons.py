"""Two daemons, one lease: one acts, and when it is gone the other does, within the lease's time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import BATCH, CONFIG_MAPS, PODS, Cluster, Htas, Json, Watcher, configuration, eventually
from tests.real.work import job

pytestmark = pytest.mark.timeout(240)
LEASE_S, RETRY_S = 4.0, 0.5


def test_the_other_acts_when_the_leader_is_killed(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    machines: set[str] = set()
    hosts: dict[str, set[str]] = {}

    def see_machine(kind: str, item: Json) -> None:
        if "htas.io/simulated-machine" in item["metadata"].get("labels", {}):
            machines.add(item["metadata"]["name"])

    def see_pod(kind: str, item: Json) -> None:
        if item["spec"].get("nodeName"):
            hosts.setdefault(item["metadata"]["uid"], set()).add(item["spec"]["nodeName"])

    watchers = [Watcher(cluster.api, CONFIG_MAPS, see_machine), Watcher(cluster.api, PODS, see_pod)]
    one = Htas(configuration(tmp_path, cluster.kubeconfig, "one"), tmp_path / "one.log")
    one.says("leads")
    other = Htas(configuration(tmp_path, cluster.kubeconfig, "other"), tmp_path / "other.log")
    with one, other:
        other.says("stands by")
        assert other.get("/readyz") == (200, "ok\n"), "a stand-by keeps its view of the cluster warm"
        assert other.get("/planz")[0] == 503
        cluster.create(job("first", "40s"))
        eventually(
            lambda: one.metric("htas_actions_total", verb="launch", status="done") == 1, 30, "a machine is bought"
        )
        one.kill()  # while the machine is on its way
        killed = time.monotonic()
        other.says("leads")
        took_s = time.monotonic() - killed
        tell(f"the leader was killed; the other led after {took_s:.1f} s (lease {LEASE_S:g} s, retry {RETRY_S:g} s)")
        assert took_s < LEASE_S + 2 * RETRY_S + 0.5
        eventually(lambda: len(hosts) == 1, 30, "the pod is bound to the machine on its way")
        cluster.create(job("second", "3s", count=2, cpu="900m"))
        eventually(lambda: len(hosts) == 3, 30, "new work is bound by the new leader")
        assert len(machines) == 3, f"one machine for each pod and none twice: {machines}"
        eventually(lambda: _is_done(cluster), 60, "all Jobs complete")
        assert other.stop() == 0
    for watcher in watchers:
        watcher.stop()
    assert all(len(names) == 1 for names in hosts.values())
    assert not [each for each in other.said("launch") if each["subject"] in {x["subject"] for x in one.said("launch")}]


def test_a_leader_that_ends_cleanly_hands_over_at_once(cluster: Cluster, tmp_path: Path) -> None:
    one = Htas(configuration(tmp_path, cluster.kubeconfig, "one"), tmp_path / "one.log")
    one.says("leads")
    other = Htas(configuration(tmp_path, cluster.kubeconfig, "other"), tmp_path / "other.log")
    with one, other:
        other.says("stands by")
        assert one.stop() == 0
        began = time.monotonic()
        other.says("leads")
        assert time.monotonic() - began < LEASE_S, "it does not wait for the lease to run out"
        assert other.stop() == 0


def _is_done(cluster: Cluster) -> bool:
    jobs = cluster.items(f"{BATCH}/namespaces/default/jobs")
    return all(each["status"].get("succeeded") == each["spec"]["completions"] for each in jobs)
