"""Services that are replaced: on simulated nodes as on real ones, by the API alone, and no replica is ever missing."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from htas.execution.crash_points import VARIABLE
from htas.model.pods import MOVING, TWIN_OF
from tests.real.conftest import Tell
from tests.real.counting import container, last, pods_of, replica_set
from tests.real.harness import Cluster, Htas, Json, configuration, eventually
from tests.real.moving import World
from tests.real.owned_nodes import busy, cleaning, own
from tests.real.test_chart import ON_OPENSTACK, SPACE, applied_rights, can, rendered
from tests.real.test_promises import Availability
from tests.real.test_rearranging import Outsider, ready_nodes
from tests.real.work import budget, deployment, node

pytestmark = pytest.mark.timeout(300)

STEPS = (
    "move.prepared",
    "move.twin-created",
    "move.restored",
    "move.introduced",
    "move.source-first-to-go",
    "move.adopted",
    "move.switched",
    "move.source-deleted",
)
SLOW = {"pod-ready.stage.kwok.x-k8s.io/delay": "2s", "pod-delete.stage.kwok.x-k8s.io/delay": "1s"}
"""So that there is a time in which a copy is not Ready yet, and one in which its source still ends."""
REPLICAS = 3
GRACE_S = 5
ANY = {
    "name": "any",
    "workload": "any",
    "cleaning": {"migration": "replace", "underutilizedFor": "1s", "queueEmptyFor": "1s"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


class Shop:
    """A Deployment of three replicas, each on a machine of its own that it shares with a filler."""

    def __init__(self, cluster: Cluster, tmp_path: Path) -> None:
        self.cluster = cluster
        self.config = configuration(tmp_path, cluster.kubeconfig, nodeGroups=[ANY])
        self.watch: Availability | None = None

    def open(self, least: int) -> None:
        """Bring it up; the machines are bought by the daemon that runs. `least` is its budget's minAvailable."""
        self.cluster.create(budget("web", least))
        for number in range(REPLICAS):
            self.cluster.create(deployment(f"fill-{number}", cpu="600m", memory="256Mi"))
            web = deployment("web", 1, cpu="300m", memory="256Mi")
            web["spec"]["template"]["metadata"]["annotations"] |= SLOW
            if number == 0:
                self.cluster.create(web, SERVICE)
            else:
                self.cluster.kubectl("scale", "deployment", "web", f"--replicas={number + 1}")
            eventually(lambda wanted=2 * (number + 1): self._bound() == wanted, 60, "both are bound")
        self.watch = Availability(self.cluster, "web", REPLICAS)
        eventually(lambda: self.fewest == REPLICAS, 30, "all replicas are Ready")
        assert len(self.cluster.nodes()) == REPLICAS

    def thin_out(self) -> None:
        """From now on one machine would do for all three."""
        for number in range(REPLICAS):
            self.cluster.delete(f"/apis/apps/v1/namespaces/default/deployments/fill-{number}")

    @property
    def fewest(self) -> int | None:
        """The fewest replicas that were Ready since all were, at any change of a pod."""
        return min(self.watch.samples) if self.watch is not None and self.watch.samples else None

    @property
    def pods(self) -> list[Json]:
        return self.cluster.pods(labelSelector="app=web")

    def is_settled(self) -> bool:
        """One machine is left with exactly its replicas on it, and nothing of a move."""
        marked = self.cluster.pods(labelSelector=TWIN_OF) + self.cluster.pods(labelSelector=MOVING)
        names = {item["spec"].get("nodeName") for item in self.pods}
        return (len(self.pods), len(names), len(self.cluster.nodes()), marked) == (REPLICAS, 1, 1, [])

    def served_by(self) -> set[str]:
        """The pods that the Service sends requests to."""
        path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        slices = self.cluster.items(path, labelSelector="kubernetes.io/service-name=web")
        ends = [end for each in slices for end in each["endpoints"] or () if end["conditions"]["ready"]]
        return {end["targetRef"]["name"] for end in ends}

    def _bound(self) -> int:
        return sum("nodeName" in item["spec"] for item in self.cluster.pods())

    def close(self) -> None:
        if self.watch is not None:
            self.watch.stop()
        self.cluster.delete("/api/v1/namespaces/default/services/web")


@pytest.fixture
def shop(cluster: Cluster, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(cluster, tmp_path)
    yield made
    made.close()


def test_a_drained_service_has_all_its_replicas_all_the_while(shop: Shop, tmp_path: Path, tell: Tell) -> None:
    """A budget that allows no disruption is a promise, and holds its nodes; with one that does, none happens."""
    with Htas(shop.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        shop.open(least=REPLICAS)
        shop.thin_out()
        eventually(lambda: len(shop.cluster.pods()) == REPLICAS, 30, "the fillers are gone")
        eventually(lambda: _is_kept(daemon, "NotEnoughPdb"), 60, "the nodes are kept for the budget's sake")
        assert not daemon.said("drain"), "no node is closed"
        shop.cluster.kubectl("patch", "pdb", "web", "-p", '{"spec": {"minAvailable": 2}}')
        eventually(shop.is_settled, 120, "all three run on one machine")
        moved = eventually(lambda: daemon.said("moved", status="done")[REPLICAS - 2 :], 20, "both moves are told")
        assert all("(start " in each["message"] for each in moved), moved
        counted = {"method": "replace", "result": "done", "reason": ""}
        eventually(lambda: daemon.metric("htas_moves_total", **counted) == REPLICAS - 1, 10, "so many are counted")
        assert shop.fewest == REPLICAS
        names = {item["metadata"]["name"] for item in shop.pods}
        eventually(lambda: shop.served_by() == names, 20, "the Service sends to those that took over")
        assert shop.watch is not None
        tell(f"{moved[0]['message']}; never fewer than {shop.fewest} Ready ({len(shop.watch.samples)} samples)")
        assert daemon.stop() == 0


def _is_kept(daemon: Htas, why: str) -> bool:
    status, text = daemon.get("/planz")
    return status == 200 and why in text


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", STEPS)
def test_a_daemon_killed_in_mid_move_leaves_exactly_the_replicas(point: str, shop: Shop, tmp_path: Path) -> None:
    killed = Htas(shop.config, tmp_path / "killed.log", {VARIABLE: point})
    try:
        killed.says("leads")
        shop.open(least=2)
        shop.thin_out()
        eventually(lambda: killed.process.poll() is not None, 90, "the daemon gets to the step and is killed")
        assert killed.process.returncode == -signal.SIGKILL, killed.tail()
    finally:
        if killed.process.poll() is None:
            killed.kill()
    with Htas(shop.config, tmp_path / "again.log") as daemon:
        daemon.says("leads")
        eventually(shop.is_settled, 120, "all three run on one machine")
        assert shop.fewest == REPLICAS
        assert daemon.stop() == 0


def _ready(cluster: Cluster, app: str) -> int:
    conditions = [item["status"].get("conditions", []) for item in cluster.pods(labelSelector=f"app={app}")]
    return sum(any(each["type"] == "Ready" and each["status"] == "True" for each in found) for found in conditions)


@pytest.fixture
def edge(cluster: Cluster) -> Iterator[Callable[[], Outsider]]:
    """An edge node of 2 cores, and one of 4 far away."""
    cluster.create(
        node("e1", "2", "8Gi", **{"htas.io/tier": "edge"}), node("far", "4", "8Gi", **{"htas.io/group": "any"})
    )
    eventually(lambda: len(ready_nodes(cluster)) == 2, 30, "the nodes are Ready")
    made: list[Outsider] = []

    def watched() -> Outsider:
        made.append(Outsider(cluster, {"e1": 2, "far": 4}))
        return made[-1]

    yield watched
    for each in made:
        each.stop()
        assert each.is_over_committed() == []


def test_what_comes_back_to_the_edge_serves_all_the_while(
    cluster: Cluster, edge: Callable[[], Outsider], tmp_path: Path
) -> None:
    config = configuration(
        tmp_path, cluster.kubeconfig, limits={"maxNodes": 0}, edge={"period": "3s", "settle": "1s"}, nodeGroups=[ANY]
    )

    def on(app: str) -> list[str]:
        return sorted(item["spec"].get("nodeName", "") for item in cluster.pods(labelSelector=f"app={app}"))

    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        for app, where in (("web", "e1"), ("api", "far")):
            wanted = deployment(app, 2, cpu="1", memory="256Mi")
            wanted["spec"]["template"]["metadata"]["annotations"] |= SLOW
            cluster.create(wanted)
            eventually(lambda app=app, where=where: on(app) == [where] * 2, 30, f"{app} is {where}")
        outsider = edge()
        eventually(lambda: _ready(cluster, "api") == 2, 30, "both of api are up")
        outsider.expect("api", 2)
        cluster.kubectl("scale", "deployment/web", "--replicas=0")
        eventually(lambda: on("api") == ["e1"] * 2, 90, "api comes to the edge")
        eventually(lambda: daemon.said("suggested", status="done"), 20, "the suggestion is complete")
        moved = eventually(lambda: daemon.said("moved", status="done")[1:], 20, "both moves are told")
        assert moved[0]["message"].startswith("from far to e1 in ")
        assert outsider.lowest["api"] == 2
        assert daemon.stop() == 0


def test_on_real_nodes_the_copy_is_ready_before_the_pod_is_told_to_end(
    world: World, tmp_path: Path, tell: Tell
) -> None:
    """Nothing of the nodes is configured: no ssh, no registry, no CRIU. The shell ignores SIGTERM, and has its 5 s."""
    web = replica_set("web", None, container())
    spec = web["spec"]["template"]["spec"]
    spec["terminationGracePeriodSeconds"] = GRACE_S
    spec["containers"][0]["readinessProbe"] = {"exec": {"command": ["true"]}, "initialDelaySeconds": 3}
    world.counting(busy("real-b"), web)
    (source,) = pods_of(world.cluster, "web")
    began = last(world.cluster, source["metadata"]["name"])
    watch = Availability(world.cluster, "web", 1)
    eventually(lambda: watch.samples, 30, "it is Ready")
    own(world)
    with Htas(cleaning(world, tmp_path, "replace", migration={}), tmp_path / "log") as daemon:
        daemon.says("leads")
        moved = daemon.says("moved", 90, status="done")["message"]
        assert moved.startswith("from real-a to real-b"), moved
        eventually(lambda: len(world.cluster.nodes()) == 1, 60, "the node is given back")
        assert daemon.stop() == 0
    (copy,) = pods_of(world.cluster, "web")
    assert copy["spec"]["nodeName"] == "real-b"
    assert last(world.cluster, copy["metadata"]["name"]).process != began.process, "it began afresh"
    ended_s = float(re.search(r"end ([0-9.]+) s", moved)[1])  # type: ignore[index] # else it fails here
    assert ended_s > GRACE_S - 1
    assert min(watch.samples) == 1
    watch.stop()
    tell(moved)


def test_the_chart_grants_twins_and_no_checkpoints(helm: Path, cluster: Cluster) -> None:
    config = {**ON_OPENSTACK["config"], "nodeGroups": [ANY]}
    needed = ("create pods", "patch pods", "delete pods")
    cluster.kubectl("create", "namespace", SPACE)
    try:
        with applied_rights(cluster, rendered(helm, {**ON_OPENSTACK, "config": config})):
            assert [right for right in needed if not can(cluster, right, "default")] == []
            assert not can(cluster, "create nodes/checkpoint", "default")
    finally:
        cluster.kubectl("delete", "namespace", SPACE)
