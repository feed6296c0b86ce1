"""SIGKILL at every step of a purchase, a release, a drain, a migration and a preemption: what was begun is finished or
undone.

HTAS_CRASH_AT ends the daemon at a step (htas/execution/crash_points.py). Steps of a rearrangement: test_rearranging.py.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htas.execution.crash_points import VARIABLE
from tests.real.harness import BATCH, CONFIG_MAPS, PODS, Cluster, Htas, Watcher, configuration, eventually
from tests.real.work import Json, deployment, job, node

pytestmark = pytest.mark.timeout(240)

PURCHASE = (
    "launch.journalled",
    "launch.created",
    "launch.recorded",
    "kwok.machine-recorded",
    "kwok.node-created",
    "bind.sent",
)
RELEASE = (
    "drain.journalled",
    "drain.claimed",
    "drain.tainted",
    "drain.emptied",
    "kwok.machine-deleted",
    "kwok.node-deleted",
    "release.asked",
    "release.recorded",
)
MIGRATION = (
    "move.prepared",
    "move.checkpointed",
    "move.delivered",
    "move.twin-created",
    "move.restored",
    "move.orphaned",
    "move.adopted",
    "move.source-deleted",
)
EVICTION = ("drain.evicted", "drain.tainted", "drain.claimed")
PREEMPTION = ("preempt.nominated", "preempt.evicted", "preempt.done")
SMALL = "256Mi"
"""So that cpu decides how full the smallest machine (1 core, 1 GiB) is."""
UNDOING = ("drain.undone",)


class Trial:
    """A daemon that will be killed at a step, and an outsider who counts what there ever was."""

    def __init__(self, cluster: Cluster, tmp_path: Path, point: str, **changes: Json) -> None:
        self.cluster = cluster
        self._config = configuration(tmp_path, cluster.kubeconfig, **changes)
        self._logs = tmp_path
        self.machines: set[str] = set()
        self.pods_of_job: dict[str, set[str]] = {}
        """Those of Deployments too, by the name that they are labelled with."""
        self._watchers = [
            Watcher(cluster.api, CONFIG_MAPS, self._see_machine),
            Watcher(cluster.api, PODS, self._see_pod),
        ]
        self.daemon = Htas(self._config, tmp_path / "killed.log", {VARIABLE: point})

    def _see_machine(self, kind: str, item: Json) -> None:
        if "htas.io/simulated-machine" in item["metadata"].get("labels", {}):
            self.machines.add(item["metadata"]["name"])

    def _see_pod(self, kind: str, item: Json) -> None:
        labels = item["metadata"].get("labels", {})
        name = labels.get("job") or labels.get("app")
        if name:
            self.pods_of_job.setdefault(name, set()).add(item["metadata"]["uid"])

    def restarted_after_its_kill(self) -> None:
        """Wait for the kill, and start the daemon anew on the same journal."""
        eventually(lambda: self.daemon.process.poll() is not None, 90, "the daemon gets to the step and is killed")
        assert self.daemon.process.returncode == -signal.SIGKILL, self.daemon.tail()
        self.daemon = Htas(self._config, self._logs / "again.log")
        self.daemon.says("leads")

    def end(self) -> None:
        for watcher in self._watchers:
            watcher.stop()
        if self.daemon.process.poll() is None:
            self.daemon.kill()

    def jobs_complete(self) -> bool:
        jobs = self.cluster.items(f"{BATCH}/namespaces/default/jobs")
        assert not [each for each in jobs if each["status"].get("failed")]
        return bool(jobs) and all(each["status"].get("succeeded") for each in jobs)

    def all_is_given_back(self) -> bool:
        return not self.cluster.nodes() and not self.cluster.items(
            CONFIG_MAPS, labelSelector="htas.io/simulated-machine"
        )

    def no_node_is_closed(self) -> bool:
        return not [
            node for node in self.cluster.nodes() if node["spec"].get("unschedulable") or node["spec"].get("taints")
        ]


@contextmanager
def killed_at(point: str, cluster: Cluster, tmp_path: Path, **changes: Json) -> Iterator[Trial]:
    trial = Trial(cluster, tmp_path, point, **changes)
    try:
        yield trial
    finally:
        trial.end()


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", [*PURCHASE, *RELEASE])
def test_a_machine_is_bought_once_and_given_back(point: str, cluster: Cluster, tmp_path: Path) -> None:
    with killed_at(point, cluster, tmp_path) as trial:
        cluster.create(job("train", "3s"))
        trial.restarted_after_its_kill()
        eventually(trial.jobs_complete, 90, "the Job completes")
        eventually(trial.all_is_given_back, 90, "the machine is given back")
        assert len(trial.machines) == 1, trial.machines
        assert len(trial.pods_of_job["train"]) == 1, "its pod ran once"
        assert trial.daemon.stop() == 0


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", MIGRATION)
def test_a_migration_ends_or_is_rolled_back(point: str, cluster: Cluster, tmp_path: Path) -> None:
    with killed_at(point, cluster, tmp_path) as trial:
        two_half_empty_nodes(trial, lambda name, cpu, runs: job(name, runs, cpu, SMALL))
        trial.restarted_after_its_kill()
        eventually(trial.jobs_complete, 120, "the Jobs complete")
        eventually(trial.all_is_given_back, 90, "the machines are given back")
        assert len(trial.machines) == 2, trial.machines
        twins = [len(pods) for name, pods in trial.pods_of_job.items() if name.startswith("keep")]
        assert max(twins) <= 3, "the pod, its twin, and one that the Job may have made in between"
        assert trial.daemon.stop() == 0


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", EVICTION)
def test_a_drain_goes_on_with_its_evictions(point: str, cluster: Cluster, tmp_path: Path) -> None:
    with killed_at(point, cluster, tmp_path) as trial:
        two_half_empty_nodes(trial, lambda name, cpu, _: deployment(name, cpu=cpu, memory=SMALL))
        trial.restarted_after_its_kill()
        eventually(lambda: len(cluster.nodes()) == 1, 90, "one node is enough")
        eventually(lambda: running(cluster) == {"keep-0", "keep-1"}, 60, "both services run on it")
        eventually(trial.no_node_is_closed, 30, "the node that stays is open")
        assert len(trial.machines) == 2, trial.machines
        assert trial.daemon.stop() == 0


@pytest.mark.parametrize("point", UNDOING)
def test_a_drain_that_is_forbidden_midway_is_undone(point: str, cluster: Cluster, tmp_path: Path) -> None:
    with killed_at(point, cluster, tmp_path) as trial:
        two_half_empty_nodes(trial, slow_to_stop)
        draining = eventually(lambda: trial.daemon.said("drain", status="done"), 60, "a drain begins")[0]["subject"]
        cluster.kubectl("annotate", "node", draining, "cluster-autoscaler.kubernetes.io/scale-down-disabled=true")
        trial.restarted_after_its_kill()
        eventually(trial.no_node_is_closed, 30, "the node is open again")
        eventually(lambda: running(cluster) == {"keep-0", "keep-1"}, 60, "both services run")
        assert draining in {node["metadata"]["name"] for node in cluster.nodes()}
        assert trial.daemon.stop() == 0


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", PREEMPTION)
def test_a_preemption_is_finished_and_nobody_leaves_in_vain(point: str, cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(node("n", "4", "8Gi"))
    with killed_at(point, cluster, tmp_path, limits={"maxNodes": 0}, fallback={"mode": "preempt"}) as trial:
        cluster.create(deployment("low", 4, cpu="1", memory=SMALL))
        eventually(lambda: running_pods(cluster, "low") == 4, 90, "the node is full")
        cluster.create(deployment("high", 1, cpu="2", memory=SMALL, priorityClassName="system-cluster-critical"))
        trial.restarted_after_its_kill()
        eventually(lambda: running_pods(cluster, "high") == 1, 90, "the important pod runs")
        eventually(lambda: running_pods(cluster, "low") == 2, 30, "two of low priority run on")
        eventually(lambda: len(trial.pods_of_job["low"]) >= 6, 30, "two wait in the place of those that left")
        assert len(trial.pods_of_job["low"]) == 6, "nobody else left"
        assert trial.daemon.stop() == 0


def two_half_empty_nodes(trial: Trial, work: Callable[[str, str, str], Json]) -> None:
    """Two machines, each with a piece of work that stays and one that goes: then one machine would be enough."""
    for i in range(2):
        trial.cluster.create(work(f"keep-{i}", "400m", "60s"), work(f"fill-{i}", "500m", "6s"))
        eventually(lambda wanted=2 * (i + 1): len(bound(trial.cluster)) == wanted, 60, "both are bound")
    for item in trial.cluster.items("/apis/apps/v1/namespaces/default/deployments"):
        if item["metadata"]["name"].startswith("fill"):
            trial.cluster.delete(f"/apis/apps/v1/namespaces/default/deployments/{item['metadata']['name']}")


def slow_to_stop(name: str, cpu: str, _: str) -> Json:
    manifest = deployment(name, cpu=cpu, memory=SMALL)
    if name.startswith("keep"):
        annotations = {"pod-delete.stage.kwok.x-k8s.io/delay": "8s"}
        manifest["spec"]["template"]["metadata"]["annotations"] |= annotations
    return manifest


def bound(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.pods() if pod["spec"].get("nodeName")]


def running_pods(cluster: Cluster, app: str) -> int:
    """Pods of a Deployment that run and are not on their way out."""
    return sum(
        pod["metadata"]["labels"].get("app") == app
        and pod["status"]["phase"] == "Running"
        and not pod["metadata"].get("deletionTimestamp")
        for pod in cluster.pods()
    )


def running(cluster: Cluster) -> set[str]:
    """Deployments of which a pod runs that is not on its way out."""
    return {
        pod["metadata"]["labels"]["app"]
        for pod in cluster.pods()
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    }
