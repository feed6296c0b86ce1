"""Promises to users that hold while nodes are emptied, and work that is other schedulers'."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import PODS, Cluster, Htas, Json, Watcher, configuration, eventually
from tests.real.work import budget, deployment, node, pod

pytestmark = pytest.mark.timeout(300)


class Availability:
    """How many pods of a Deployment are ready, at every change."""

    def __init__(self, cluster: Cluster, app: str, wanted: int) -> None:
        self._app, self._wanted = app, wanted
        self._ready: dict[str, bool] = {}
        self.samples: list[int] = []
        self.moved = 0
        self._is_up = False
        self._watcher = Watcher(cluster.api, PODS, self._see)

    def _see(self, kind: str, item: Json) -> None:
        if item["metadata"].get("labels", {}).get("app") != self._app:
            return
        uid = item["metadata"]["uid"]
        conditions = {c["type"]: c["status"] for c in item.get("status", {}).get("conditions", [])}
        is_ready = conditions.get("Ready") == "True" and not item["metadata"].get("deletionTimestamp")
        if kind == "DELETED" or not is_ready:
            self.moved += self._ready.pop(uid, False)
        else:
            self._ready[uid] = True
        self._is_up = self._is_up or len(self._ready) == self._wanted
        if self._is_up:
            self.samples.append(len(self._ready))

    def stop(self) -> None:
        self._watcher.stop()


def test_a_drain_never_breaks_a_disruption_budget(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    """Six pods on as many machines as fillers need; then the fillers go, and the six are moved together."""
    config = configuration(tmp_path, cluster.kubeconfig)
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(budget("web", 5), budget("steady", 2))
        slow = {"pod-ready.stage.kwok.x-k8s.io/delay": "2s", "pod-delete.stage.kwok.x-k8s.io/delay": "1s"}
        for i in range(6):  # one by one, each beside a filler: one machine for each pair
            cluster.create(deployment(f"fill-{i}", cpu="600m", memory="256Mi"))
            web = deployment("web", i + 1, cpu="300m", memory="256Mi")
            web["spec"]["template"]["metadata"]["annotations"] |= slow
            if i == 0:
                cluster.create(web)
            else:
                cluster.kubectl("scale", "deployment", "web", f"--replicas={i + 1}")
            eventually(lambda wanted=2 * (i + 1): _bound(cluster) == wanted, 60, "both are bound")
        cluster.create(deployment("steady", 2, cpu="50m", memory="64Mi"))
        eventually(lambda: _bound(cluster) == 14, 60, "all are bound")
        web_watch = Availability(cluster, "web", 6)
        steady_watch = Availability(cluster, "steady", 2)
        eventually(lambda: web_watch.samples and max(web_watch.samples) == 6, 30, "all six are ready")
        before = len(cluster.nodes())
        for i in range(6):
            cluster.delete(f"/apis/apps/v1/namespaces/default/deployments/fill-{i}")
        eventually(lambda: len(cluster.nodes()) <= before - 2, 150, "nodes are emptied and released")
        eventually(lambda: daemon.metric("htas_drains") == 0, 120, "no drain is under way")
        tell(
            f"{before} nodes became {len(cluster.nodes())}; {web_watch.moved} pods of web were moved, and of 6 with "
            f"minAvailable 5 there were never fewer than {min(web_watch.samples)} ready ({len(web_watch.samples)} samples)"
        )
        assert web_watch.moved >= 2
        assert min(web_watch.samples) >= 5
        assert min(steady_watch.samples) == 2, "minAvailable of all replicas: none of them is moved"
        for each in (web_watch, steady_watch):
            each.stop()
        assert daemon.stop() == 0


def test_work_of_kube_scheduler_gets_nodes_and_is_bound_by_it(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(deployment("theirs", 3, cpu="700m", scheduler="default-scheduler"))
        eventually(lambda: _running(cluster, "theirs") == 3, 90, "kube-scheduler binds them to nodes that HTAS bought")
        assert {n["metadata"]["labels"]["htas.io/group"] for n in cluster.nodes()} == {"services"}
        assert daemon.metric("htas_actions_total", verb="bind") == 0, "they are not ours to bind"
        events = cluster.items("/api/v1/namespaces/default/events", fieldSelector="reason=Scheduled")
        bound_by = {
            e.get("reportingComponent") or e["source"].get("component")
            for e in events
            if "theirs" in e["metadata"]["name"]
        }
        assert bound_by == {"default-scheduler"}
        cluster.delete("/apis/apps/v1/namespaces/default/deployments/theirs")
        eventually(lambda: not cluster.nodes(), 90, "and when they end the nodes go")
        assert daemon.stop() == 0


def test_both_schedulers_on_one_node_take_no_more_than_there_is(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig, limits={"maxNodes": 0})
    cluster.create(node("shared", "4", "8Gi"))
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        for i in range(12):
            scheduler = "htas" if i % 2 else "default-scheduler"
            cluster.create(pod(f"each-{i}", cpu="300m", scheduler=scheduler))
        eventually(lambda: _bound(cluster) == 12, 60, "all twelve fit and are bound")
        asked = sum(300 for each in cluster.pods() if each["spec"].get("nodeName") == "shared")
        assert asked <= 4000
        assert daemon.stop() == 0


def test_pods_with_gates_or_on_their_way_out_are_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    cluster.create(node("free"))
    gated = pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    going = pod("going", finalizers=["example.com/hold"])
    cluster.create(gated, going)
    cluster.kubectl("delete", "pod", "going", "--wait=false")
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(pod("plain"))
        eventually(lambda: _bound(cluster) == 1, 30, "the plain one is bound")
        gone = [each["metadata"]["name"] for each in cluster.pods() if each["spec"].get("nodeName")]
        assert gone == ["plain"]
        cluster.kubectl("patch", "pod", "gated", "--type=merge", "-p", '{"spec":{"schedulingGates":[]}}')
        eventually(lambda: _bound(cluster) == 2, 30, "once its gate is open it is bound")
        assert daemon.stop() == 0
    cluster.kubectl("patch", "pod", "going", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_what_makes_no_sense_is_told_and_stops_nothing(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    cluster.create(node("free"))
    odd = [
        pod("runtime", annotations={"htas.io/runtime": "soon"}),
        pod(
            "migrate", annotations={"htas.io/migrate": "perhaps", "cluster-autoscaler.kubernetes.io/safe-to-evict": "?"}
        ),
    ]
    stray = node("stray", **{"htas.io/cluster": "trial", "htas.io/claim": "stray", "htas.io/group": "unknown"})
    del stray["metadata"]["annotations"]  # nobody keeps it Ready: one that is Ready runs on something, and would stay
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(*odd, stray, pod("plain"))
        eventually(lambda: "plain" in _names_bound(cluster), 30, "the plain pod is bound")
        eventually(
            lambda: "stray" not in {n["metadata"]["name"] for n in cluster.nodes()},
            30,
            "a node of ours without a machine goes",
        )
        eventually(lambda: "soon" in daemon.get("/snapshotz")[1], 30, "a snapshot tells of it")
        assert daemon.metric("htas_unusable_objects") > 0
        assert daemon.get("/healthz")[0] == 200
        assert not daemon.said("cycle failed on a defect of htas, tried again"), daemon.tail()
        assert daemon.stop() == 0


def _names_bound(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.pods() if each["spec"].get("nodeName")}


def _bound(cluster: Cluster) -> int:
    return len(_names_bound(cluster))


def _running(cluster: Cluster, app: str) -> int:
    return sum(each["status"]["phase"] == "Running" for each in cluster.pods(labelSelector=f"app={app}"))
