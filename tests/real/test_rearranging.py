"""A full cluster at its limit: what runs is placed anew so that more important work fits, and nothing is lost by it."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.execution.crash_points import VARIABLE
from htas.model.quantity import parse_quantity, to_milli
from tests.real.conftest import Tell
from tests.real.harness import PODS, Cluster, Htas, Json, Watcher, configuration, eventually
from tests.real.work import budget, deployment, job, node, pod

pytestmark = pytest.mark.timeout(300)

NODES = ("a", "b", "c", "d")
SLOW = "pod-delete.stage.kwok.x-k8s.io/delay"
"""So that there is a time between an eviction and its room."""
REARRANGING = (
    "rearrange.journalled",
    "rearrange.evicted",
    "rearrange.noted",
    "rearrange.completed",
)
CHECKPOINTED = ("rearrange.moved",)
CANCELLED = ("rearrange.cancelled",)


class Outsider:
    """Watches all pods: what each node has promised at every change, who was ever there, and how many are up."""

    def __init__(self, cluster: Cluster, cores: dict[str, int]) -> None:
        self._cores = cores
        self._there: dict[str, Json] = {}
        self.worst: Counter[str] = Counter()
        """The most millicores that the pods of a node ever asked for together, those on their way out counted."""
        self.samples = 0
        self.left: Counter[str] = Counter()
        """Pods of each app that went or began to end after they had a node."""
        self._leaving: set[str] = set()
        self.left_from: list[str] = []
        """The nodes that they left."""
        self.lowest: dict[str, int] = {}
        """The fewest pods of an app that were up, once `up_to` said how many there should be."""
        self._wanted: dict[str, int] = {}
        self.nominated: dict[str, str] = {}
        self._watcher = Watcher(cluster.api, PODS, self._see)

    def expect(self, app: str, up: int) -> None:
        """From now on note how few pods of an app are up."""
        self._wanted[app] = up
        self.lowest[app] = up

    def _see(self, kind: str, item: Json) -> None:
        uid, meta = item["metadata"]["uid"], item["metadata"]
        app = meta.get("labels", {}).get("app", meta["name"])
        is_leaving = kind == "DELETED" or "deletionTimestamp" in meta
        if is_leaving and uid not in self._leaving and item["spec"].get("nodeName"):
            self._leaving.add(uid)
            self.left[app] += 1
            self.left_from.append(item["spec"]["nodeName"])
        if kind == "DELETED":
            self._there.pop(uid, None)
        else:
            self._there[uid] = item
        if item.get("status", {}).get("nominatedNodeName"):
            self.nominated[meta["name"]] = item["status"]["nominatedNodeName"]
        self._sample()

    def _sample(self) -> None:
        self.samples += 1
        asked: Counter[str] = Counter()
        up: Counter[str] = Counter()
        for item in self._there.values():
            where = item["spec"].get("nodeName")
            if where is not None and item["status"]["phase"] not in ("Succeeded", "Failed"):
                asked[where] += _millicores(item)
            conditions = {c["type"]: c["status"] for c in item["status"].get("conditions", [])}
            if conditions.get("Ready") == "True" and "deletionTimestamp" not in item["metadata"]:
                up[item["metadata"].get("labels", {}).get("app", "")] += 1
        self.worst |= asked
        for app in self._wanted:
            self.lowest[app] = min(self.lowest[app], up[app])

    def is_over_committed(self) -> list[str]:
        return [name for name, most in self.worst.items() if most > 1000 * self._cores[name]]

    def stop(self) -> None:
        self._watcher.stop()


def _millicores(item: Json) -> int:
    requests = (each["resources"].get("requests", {}) for each in item["spec"]["containers"])
    return sum(to_milli(parse_quantity(each.get("cpu", "0"))) for each in requests)


class Trial:
    """Four nodes of 4 cores, each with a pod of 2 that must stay and a movable one of 1; the free 4 cores are in pieces.

    What comes is of high priority: two pods of 2 cores. Room for them is made by moving two of the movable pods, and not
    by moving fewer.
    """

    def __init__(self, cluster: Cluster, tmp_path: Path, slow: str = "3s", **fallback: Any) -> None:
        self.cluster = cluster
        self.path = tmp_path
        settings = {"after": "1s", "budget": "5s", "pause": "5s", **fallback}
        self.config = configuration(tmp_path, cluster.kubeconfig, limits={"maxNodes": 0}, fallback=settings)
        cluster.create(priority_class("high", 1000))
        for name in NODES:
            cluster.create(node(name, "4", "8Gi"))
        eventually(lambda: len(ready_nodes(cluster)) == len(NODES), 30, "the nodes are Ready")
        fixed = deployment("fixed", 4, cpu="2", memory="256Mi")
        fixed["spec"]["template"]["metadata"]["annotations"] = {"htas.io/migrate": "false"}
        low = deployment("low", 4, cpu="1", memory="256Mi")
        low["spec"]["template"]["metadata"]["annotations"][SLOW] = slow
        cluster.create(budget("low", 2), budget("fixed", 4), fixed, low)
        self.spread("fixed", "low")
        self.outsider = Outsider(cluster, dict.fromkeys(NODES, 4))
        self.outsider.expect("low", 4)
        self.outsider.expect("fixed", 4)

    def spread(self, *apps: str) -> None:
        """One pod of each Deployment on each node, as if somebody else had scheduled them."""
        for app in apps:
            eventually(lambda app=app: len(self.of(app)) == len(NODES), 30, f"{app} has its pods")
            for name, item in zip(NODES, self.of(app), strict=True):
                bind(self.cluster, item["metadata"]["name"], name)
        eventually(lambda: all(self.ready(app) == len(NODES) for app in apps), 30, "all are up")

    def of(self, app: str) -> list[Json]:
        return self.cluster.pods(labelSelector=f"app={app}")

    def ready(self, app: str) -> int:
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))
            and "deletionTimestamp" not in item["metadata"]
            for item in self.of(app)
        )

    def arrive(self, replicas: int = 2, cpu: str = "2") -> None:
        self.cluster.create(deployment("high", replicas, cpu=cpu, memory="256Mi", priorityClassName="high"))

    def is_settled(self) -> bool:
        """Everything that was asked for runs, and nothing else is on its way."""
        return (self.ready("low"), self.ready("fixed"), self.ready("high")) == (4, 4, 2) and len(self.of("low")) == 4

    def end(self) -> None:
        self.outsider.stop()
        assert self.outsider.is_over_committed() == []


@pytest.fixture
def trial(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    made: list[Trial] = []

    def make(slow: str = "3s", **fallback: Any) -> Trial:
        made.append(Trial(cluster, tmp_path, slow, **fallback))
        return made[-1]

    yield make
    for each in made:
        each.end()
    cluster.delete("/apis/scheduling.k8s.io/v1/priorityclasses/high")


def priority_class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def bind(cluster: Cluster, name: str, where: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": where}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    cluster.api.post(f"/api/v1/namespaces/default/pods/{name}/binding", body)


def ready_nodes(cluster: Cluster) -> list[Json]:
    return [
        each
        for each in cluster.nodes()
        if any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", []))
    ]


def report(daemon: Htas) -> Json:
    status, text = daemon.get("/api/optimize")
    assert status == 200, text
    found: Json = msgspec.json.decode(text)
    return found


def test_important_work_fits_after_the_fewest_moves(trial: Callable[..., Trial], tmp_path: Path, tell: Tell) -> None:
    full = trial()
    with Htas(full.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        eventually(lambda: daemon.get("/api/optimize")[0] == 404, 30, "nothing was searched yet")
        full.arrive()
        began = time.monotonic()
        eventually(full.is_settled, 90, "all pods of high priority run, and so do all others")
        took_s = time.monotonic() - began
        done = eventually(lambda: daemon.said("rearranged", status="done"), 20, "the rearrangement is complete")
        told = report(daemon)
        assert (told["status"], told["state"]) == ("ProvenOptimal", "done")
        assert (len(told["leave"]), len(told["place"])) == (2, 2)
        assert dict(full.outsider.left) == {"low": len(told["leave"])}, "as many pods left as it was proven to take"
        assert all(tier["placingProven"] and tier["stayingProven"] for tier in told["tiers"])
        assert full.outsider.lowest["low"] >= 2, "the budget's minAvailable"
        assert full.outsider.lowest["fixed"] == 4
        assert daemon.metric("htas_rearrangements_total", result="Completed") == 1
        tell(
            f"settled {took_s:.1f} s after the arrival ({done[0]['message']}; search {told['tookSeconds']:.2f} s); "
            f"{full.outsider.samples} samples, worst node {max(full.outsider.worst.values())}m of 4000m"
        )
        assert daemon.stop() == 0


@pytest.mark.parametrize("point", REARRANGING)
def test_a_rearrangement_goes_on_after_a_kill(point: str, trial: Callable[..., Trial], tmp_path: Path) -> None:
    full = trial()
    killed = Htas(full.config, tmp_path / "killed.log", {VARIABLE: point})
    killed.says("leads")
    full.arrive()
    eventually(lambda: killed.process.poll() is not None, 90, "the daemon gets to the step and is killed")
    assert killed.process.returncode == -signal.SIGKILL, killed.tail()
    with Htas(full.config, tmp_path / "again.log") as daemon:
        daemon.says("leads")
        eventually(full.is_settled, 90, "all pods of high priority run, and so do all others")
        eventually(lambda: daemon.metric("htas_rearranging_pods") == 0, 30, "no slot is kept any more")
        assert full.outsider.left["low"] == 2, "nobody was moved twice"
        assert full.outsider.lowest["low"] >= 2
        assert daemon.stop() == 0


ANY = {
    "name": "any",
    "workload": "any",
    "cleaning": {"migration": "checkpoint", "migrationTime": "2s"},
}


@pytest.mark.parametrize("point", ["", *CHECKPOINTED])
def test_jobs_that_are_moved_keep_their_progress(point: str, cluster: Cluster, tmp_path: Path) -> None:
    """Two nodes of 4, each with a Job of 2, and important work of 3."""
    cluster.create(priority_class("high", 1000))
    config = configuration(
        tmp_path,
        cluster.kubeconfig,
        limits={"maxNodes": 0},
        fallback={"after": "1s", "budget": "5s", "pause": "5s"},
        nodeGroups=[ANY],
    )
    cluster.create(*(node(name, "4", "8Gi", **{"htas.io/group": "any"}) for name in ("a", "b")))
    eventually(lambda: len(ready_nodes(cluster)) == 2, 30, "the nodes are Ready")
    for where in ("a", "b"):
        cluster.create(job(f"train-{where}", "90s", cpu="2"))
        [item] = eventually(lambda w=where: cluster.pods(labelSelector=f"job=train-{w}"), 30, "the Job has its pod")
        bind(cluster, item["metadata"]["name"], where)
    outsider = Outsider(cluster, {"a": 4, "b": 4})
    daemon = Htas(config, tmp_path / "first.log", {VARIABLE: point} if point else None)
    try:
        daemon.says("leads")
        cluster.create(deployment("high", 1, cpu="3", memory="256Mi", priorityClassName="high"))
        if point:
            eventually(lambda: daemon.process.poll() is not None, 60, "the daemon gets to the step and is killed")
            daemon = Htas(config, tmp_path / "again.log")
            daemon.says("leads")
        eventually(lambda: _runs(cluster, "high"), 90, "the important work runs")
        jobs = cluster.items("/apis/batch/v1/namespaces/default/jobs")
        assert [each["status"].get("failed", 0) for each in jobs] == [0, 0], "nobody began anew"
        assert daemon.stop() == 0
    finally:
        outsider.stop()
        if daemon.process.poll() is None:
            daemon.kill()
        cluster.delete("/apis/scheduling.k8s.io/v1/priorityclasses/high")
    assert outsider.is_over_committed() == []


def _runs(cluster: Cluster, app: str) -> bool:
    return any(each["status"]["phase"] == "Running" for each in cluster.pods(labelSelector=f"app={app}"))


def test_a_stranger_in_a_slot_cancels_it_and_nothing_is_lost(
    trial: Callable[..., Trial], tmp_path: Path, tell: Tell
) -> None:
    full = trial("10s")
    with Htas(full.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        full.arrive()
        target = eventually(lambda: full.outsider.left_from, 60, "a pod is evicted")[0]
        stranger = pod("stranger", cpu="1")
        stranger["spec"]["nodeName"] = target
        full.cluster.create(stranger)
        cancelled = daemon.says("cancel-rearrangement", within_s=30)
        assert cancelled["message"].startswith("RoomTaken"), cancelled
        left = full.outsider.left["low"]
        assert left <= 2
        eventually(lambda: full.ready("high") >= 1, 60, "room that was made is used by the most important")
        eventually(lambda: len(full.of("low")) == 4 and len(full.of("fixed")) == 4, 30, "each owner has its pods")
        waiting = [item for item in full.of("low") if not item["spec"].get("nodeName")]
        tell(f"{cancelled['message']}; {left} pods had left, {len(waiting)} of low priority wait now")
        assert daemon.stop() == 0


@pytest.mark.parametrize("point", CANCELLED)
def test_what_is_cancelled_stays_cancelled_after_a_kill(
    point: str, trial: Callable[..., Trial], tmp_path: Path
) -> None:
    full = trial("10s")
    killed = Htas(full.config, tmp_path / "killed.log", {VARIABLE: point})
    killed.says("leads")
    full.arrive()
    stranger = pod("stranger", cpu="1")
    stranger["spec"]["nodeName"] = eventually(lambda: full.outsider.left_from, 60, "a pod is evicted")[0]
    full.cluster.create(stranger)
    eventually(lambda: killed.process.poll() is not None, 60, "the daemon gets to the step and is killed")
    with Htas(full.config, tmp_path / "again.log") as daemon:
        daemon.says("leads")
        eventually(lambda: full.ready("high") >= 1, 60, "room that was made is used by the most important")
        assert daemon.metric("htas_rearranging_pods") == 0
        assert daemon.stop() == 0


def test_with_preemption_the_pod_is_nominated_to_the_node_that_is_made_free(
    trial: Callable[..., Trial], tmp_path: Path
) -> None:
    full = trial(mode="preempt")
    with Htas(full.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        full.arrive(replicas=1)
        eventually(lambda: full.ready("high") == 1, 60, "it runs")
        [high] = full.of("high")
        assert full.outsider.nominated[high["metadata"]["name"]] == high["spec"]["nodeName"]
        assert dict(full.outsider.left) == {"low": 1}
        assert not daemon.said("search")
        assert daemon.stop() == 0
