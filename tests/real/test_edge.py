"""An edge of two nodes and a cloud beside it: filled first, filled again by moving pods, and nothing is lost by it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from htas.execution.crash_points import VARIABLE
from tests.real.conftest import Tell
from tests.real.harness import Cluster, Htas, Json, configuration, eventually
from tests.real.test_rearranging import SLOW, Outsider, bind, ready_nodes
from tests.real.work import budget, deployment, node, pod

pytestmark = pytest.mark.timeout(300)

EDGE, FAR = ("e1", "e2"), "far"
CORES = {"e1": 2, "e2": 2, FAR: 8}
STEPS = ("rearrange.journalled", "rearrange.evicted", "rearrange.noted", "rearrange.completed")
CANCELLED = "rearrange.cancelled"


class Trial:
    """Two edge nodes of 2 cores and a cloud node of 8. `web` wants 3 places and `api` 3; the edge has 4."""

    def __init__(self, cluster: Cluster, tmp_path: Path, slow: str = "2s", **settings: Any) -> None:
        self.cluster = cluster
        self.config = configuration(
            tmp_path,
            cluster.kubeconfig,
            **{"limits": {"maxNodes": 0}, "edge": {"period": "3s", "settle": "0s"}, **settings},
        )
        for name in EDGE:
            cluster.create(node(name, "2", "8Gi", **{"htas.io/tier": "edge"}))
        cluster.create(node(FAR, "8", "16Gi"))
        eventually(lambda: len(ready_nodes(cluster)) == 3, 30, "the nodes are Ready")
        self._slow = slow
        cluster.create(budget("api", 1))
        self.outsider = Outsider(cluster, CORES)

    def deploy(self, name: str, replicas: int, **annotations: str) -> None:
        wanted = deployment(name, replicas, cpu="1", memory="256Mi")
        wanted["spec"]["template"]["metadata"]["annotations"] |= {SLOW: self._slow, **annotations}
        self.cluster.create(wanted)

    def scale(self, name: str, replicas: int) -> None:
        self.cluster.kubectl("scale", f"deployment/{name}", f"--replicas={replicas}")

    def of(self, app: str) -> list[Json]:
        """Its pods that are up."""
        return [
            item
            for item in self.cluster.pods(labelSelector=f"app={app}")
            if any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))
            and "deletionTimestamp" not in item["metadata"]
        ]

    def ratio(self, app: str) -> tuple[int, int]:
        """How many are up on the edge, and how many at all."""
        pods = self.of(app)
        return sum(item["spec"]["nodeName"] in EDGE for item in pods), len(pods)

    def unbound(self, app: str, count: int) -> list[Json]:
        """So many of its pods that wait, or none."""
        found = [item for item in self.cluster.pods(labelSelector=f"app={app}") if not item["spec"].get("nodeName")]
        return found if len(found) == count else []

    def free(self) -> list[str]:
        """The edge nodes, each as often as it has a core that nobody asks for."""
        taken = [item["spec"].get("nodeName") for item in self.cluster.pods()]
        return [name for name in EDGE for _ in range(CORES[name] - taken.count(name))]

    def fill(self) -> None:
        """`web` first, then `api`, of which two pods find no room near."""
        self.deploy("web", 3)
        eventually(lambda: self.ratio("web") == (3, 3), 30, "web is on the edge")
        self.deploy("api", 3)
        eventually(lambda: self.ratio("api") == (1, 3), 30, "api overflows into the cloud")
        self.outsider.expect("api", 3)

    def end(self) -> None:
        self.outsider.stop()
        worst = {name: self.outsider.worst[name] for name in CORES}  # what is bought is of any size
        assert all(most <= 1000 * CORES[name] for name, most in worst.items()), worst


@pytest.fixture
def trial(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    made: list[Trial] = []

    def make(slow: str = "2s", **settings: Any) -> Trial:
        made.append(Trial(cluster, tmp_path, slow, **settings))
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_the_edge_is_filled_first_and_again_when_it_frees(
    trial: Callable[..., Trial], tmp_path: Path, tell: Tell
) -> None:
    shop = trial()
    with Htas(shop.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        shop.fill()
        assert daemon.metric("htas_edge_ratio", service="default/Deployment/web") == 1
        shop.scale("web", 1)
        began = time.monotonic()
        eventually(lambda: shop.ratio("api") == (3, 3), 60, "api comes to the edge")
        took_s = time.monotonic() - began
        eventually(lambda: daemon.said("suggested", status="done"), 20, "the suggestion is complete")
        eventually(lambda: daemon.metric("htas_edge_ratio", service="default/Deployment/api") == 1, 20, "it is told")
        assert shop.outsider.left["api"] == 2, "each pod was moved once"
        assert shop.outsider.lowest["api"] >= 1, "the budget's minAvailable"
        tell(f"{took_s:.1f} s from the scale-down until api is near; least up {shop.outsider.lowest['api']} of 3")
        assert daemon.stop() == 0


def test_what_overflows_is_bought_for_and_given_back_once_it_is_near(
    trial: Callable[..., Trial], tmp_path: Path
) -> None:
    group = {
        "name": "cloud",
        "cleaning": {"underutilizedFor": "1s", "queueEmptyFor": "0s"},
    }
    shop = trial(limits={}, nodeGroups=[group])
    shop.cluster.delete(f"/api/v1/nodes/{FAR}")
    with Htas(shop.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        shop.fill()
        assert {item["spec"]["nodeName"] in EDGE for item in shop.of("api")} == {True, False}
        shop.scale("web", 0)
        eventually(lambda: shop.ratio("api") == (3, 3), 90, "api comes to the edge")
        eventually(lambda: len(shop.cluster.nodes()) == len(EDGE), 60, "what was bought is given back")
        assert daemon.stop() == 0


@pytest.mark.parametrize("point", STEPS)
def test_a_suggestion_goes_on_after_a_kill(point: str, trial: Callable[..., Trial], tmp_path: Path) -> None:
    shop = trial()
    killed = Htas(shop.config, tmp_path / "killed.log", {VARIABLE: point})
    killed.says("leads")
    shop.fill()
    shop.scale("web", 1)
    eventually(lambda: killed.process.poll() is not None, 60, "the daemon gets to the step and is killed")
    assert killed.process.returncode == -signal.SIGKILL, killed.tail()
    with Htas(shop.config, tmp_path / "again.log") as daemon:
        daemon.says("leads")
        eventually(lambda: shop.ratio("api") == (3, 3), 90, "api comes to the edge")
        eventually(lambda: daemon.metric("htas_rearranging_pods") == 0, 30, "no slot is kept any more")
        assert shop.outsider.left["api"] == 2, "nobody was moved twice"
        assert shop.outsider.lowest["api"] >= 1
        assert daemon.stop() == 0


def killed_with_both_evicted(shop: Trial, tmp_path: Path) -> list[Json]:
    """A daemon dies once it has evicted two of api's pods; their replacements, which wait."""
    killed = Htas(shop.config, tmp_path / "killed.log", {VARIABLE: "rearrange.evicted:2"})
    killed.says("leads")
    shop.fill()
    shop.scale("web", 1)
    eventually(lambda: killed.process.poll() is not None, 60, "the daemon has evicted both and is killed")
    waiting: list[Json] = eventually(lambda: shop.unbound("api", 2), 30, "their replacements wait")
    return waiting


@pytest.mark.parametrize("point", ["", CANCELLED])
def test_strangers_in_the_room_of_its_steps_cancel_the_whole(
    point: str, trial: Callable[..., Trial], tmp_path: Path, tell: Tell
) -> None:
    """The daemon dies once both pods have been evicted, and strangers take the edge before the next one leads."""
    shop = trial()
    killed_with_both_evicted(shop, tmp_path)
    for number, where in enumerate(shop.free()):
        stranger = pod(f"stranger-{number}", cpu="1")
        stranger["spec"]["nodeName"] = where
        shop.cluster.create(stranger)
    if point:
        again = Htas(shop.config, tmp_path / "again.log", {VARIABLE: point})
        eventually(lambda: again.process.poll() is not None, 60, "the daemon gets to the step and is killed")
    with Htas(shop.config, tmp_path / "log") as daemon:
        daemon.says("leads")
        if not point:
            cancelled = daemon.says("cancel-suggestion", within_s=30)
            assert cancelled["message"].startswith("RoomTaken"), cancelled
            tell(cancelled["message"])
        eventually(lambda: shop.ratio("api") == (1, 3), 60, "all of api is up again, in the cloud")
        assert shop.outsider.left["api"] == 2
        assert daemon.metric("htas_rearranging_pods") == 0
        assert daemon.stop() == 0


def test_a_replacement_that_somebody_else_binds_cancels_the_whole(
    trial: Callable[..., Trial], tmp_path: Path, tell: Tell
) -> None:
    """The daemon dies once both pods have been evicted, and somebody else binds one of their replacements."""
    shop = trial()
    waiting = killed_with_both_evicted(shop, tmp_path)
    bind(shop.cluster, waiting[0]["metadata"]["name"], FAR)
    with Htas(shop.config, tmp_path / "again.log") as daemon:
        daemon.says("leads")
        cancelled = daemon.says("cancel-suggestion", within_s=30)
        assert cancelled["message"].startswith("Contradicted"), cancelled
        eventually(lambda: shop.ratio("api") == (3, 3), 90, "a later suggestion brings it near")
        tell(cancelled["message"])
        assert daemon.stop() == 0
