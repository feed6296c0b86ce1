"""Document 000's Figure 1 on the real API server: two nodes of 4 GB, 2 GB running on each, 3 GB wait.

With nothing to buy, one move makes room; `htas optimize` says so without touching anything, and the daemon then does
it, by each engine. With a machine on offer it is moved all the same where that costs less, and bought where it does not.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from htas.model.policy import Engine
from tests.real.conftest import Tell
from tests.real.harness import Cluster, Htas, Json, configuration, eventually
from tests.real.test_rearranging import bind, ready_nodes
from tests.real.work import deployment, job, node

pytestmark = pytest.mark.timeout(180)

NODES = ("left", "right")


def where(cluster: Cluster) -> dict[str, str]:
    """The node of each app's pod that runs and is not on its way out."""
    found = {}
    for item in cluster.pods():
        is_up = any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))
        if is_up and "deletionTimestamp" not in item["metadata"]:
            found[item["metadata"]["labels"]["app"]] = item["spec"]["nodeName"]
    return found


def nodes_of_the_figure(cluster: Cluster, **labels: str) -> None:
    for name in NODES:
        cluster.create(node(name, "4", "4Gi", **labels))
    eventually(lambda: len(ready_nodes(cluster)) == len(NODES), 30, "the nodes are Ready")


def arranged_as_in_the_figure(cluster: Cluster, **labels: str) -> None:
    nodes_of_the_figure(cluster, **labels)
    for name, there in zip(("one", "two"), NODES, strict=True):
        cluster.create(deployment(name, cpu="100m", memory="2Gi"))
        (item,) = eventually(lambda name=name: cluster.pods(labelSelector=f"app={name}"), 30, f"{name} has its pod")
        bind(cluster, item["metadata"]["name"], there)
    eventually(lambda: len(where(cluster)) == len(NODES), 30, "both run")
    cluster.create(deployment("three", cpu="100m", memory="3Gi"))
    eventually(lambda: cluster.pods(labelSelector="app=three"), 30, "the third waits")


@pytest.mark.parametrize("engine", list(Engine))
def test_one_move_places_all_three(engine: Engine, cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    arranged_as_in_the_figure(cluster)
    before = where(cluster)
    settings = {"after": "1s", "budget": "5s", "pause": "5s", "engine": engine.value}
    config = configuration(tmp_path, cluster.kubeconfig, limits={"maxNodes": 0}, fallback=settings)
    said = CliRunner().invoke(app, ["optimize", "--config", str(config), "-o", "json"])
    assert said.exit_code == 0, said.stderr
    found: Json = msgspec.json.decode(said.stdout)
    assert (found["status"], len(found["leave"]), len(found["place"])) == ("ProvenOptimal", 1, 1)
    assert where(cluster) == before, "it was only said"
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        after = eventually(lambda: len(now := where(cluster)) == 3 and now, 60, "all three run")
        moved = [app for app in ("one", "two") if after[app] != before[app]]
        assert len(moved) == 1
        assert after["three"] == before[moved[0]]
        eventually(lambda: daemon.metric("htas_rearrangements_total", result="Completed") == 1, 20, "it is complete")
        tell(f"{engine}: {moved[0]} moved, all three run; optimize took {found['tookSeconds']:.2f} s")
        assert daemon.stop() == 0


def priced(directory: Path, cluster: Cluster) -> Path:
    """A small machine at a twentieth of what the nodes cost, which take 1 min to come."""
    offers = [
        {"name": name, "cpu": "4", "memory": "4Gi", "pricePerHour": price}
        for name, price in (("small", "0.02"), ("dear", "0.40"))
    ]
    prices = {"billing": {"granularity": "1s", "minimum": "1s"}, "currency": "USD", "flavours": offers}
    return configuration(directory, cluster.kubeconfig, flavours=prices, moveInsteadOfLaunch=True)


def bought(cluster: Cluster) -> int:
    return len(cluster.nodes()) - len(NODES)


def test_one_move_is_made_instead_of_buying_a_machine(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    arranged_as_in_the_figure(cluster, **{"node.kubernetes.io/instance-type": "dear"})
    before = where(cluster)
    with Htas(priced(tmp_path, cluster), tmp_path / "log") as daemon:
        daemon.says("leads")
        [begun] = eventually(lambda: daemon.said("rearrange", status="done"), 30, "it is begun")
        after = eventually(lambda: len(now := where(cluster)) == 3 and now, 60, "all three run")
        [moved] = [app for app in ("one", "two") if after[app] != before[app]]
        assert after["three"] == before[moved]
        assert "to make room instead of launching small: saves 0.02 USD an hour" in begun["message"]
        eventually(lambda: daemon.metric("htas_rearrangements_total", result="Completed") == 1, 20, "it is complete")
        assert bought(cluster) == 0
        tell(begun["message"])
        assert daemon.stop() == 0


def test_where_a_small_machine_is_cheaper_than_the_move_it_is_bought(
    cluster: Cluster, tmp_path: Path, tell: Tell
) -> None:
    """Jobs that would begin again on half a node of 0.40 an hour, and one of 20 s waits: a machine of its own costs less."""
    nodes_of_the_figure(cluster, **{"node.kubernetes.io/instance-type": "dear"})
    for name, there in zip(("one", "two"), NODES, strict=True):
        cluster.create(job(name, "1h", cpu="100m", memory="2Gi"))
        (item,) = eventually(lambda name=name: cluster.pods(labelSelector=f"job={name}"), 30, f"{name} has its pod")
        bind(cluster, item["metadata"]["name"], there)
    # Beginning anew 3 s after the start costs less than 80 s of the small machine; 15 s after it, more.
    eventually(lambda: shortest_run_s(cluster, "job in (one,two)") >= 15, 60, "both have something to lose")
    cluster.create(job("three", "20s", cpu="100m", memory="3Gi"))
    with Htas(priced(tmp_path, cluster), tmp_path / "log") as daemon:
        daemon.says("leads")
        eventually(lambda: bought(cluster) == 1, 60, "a machine comes")
        eventually(lambda: _done(cluster, "three"), 60, "the third job is done")
        assert not daemon.said("rearrange")
        assert {item["spec"]["nodeName"] for item in cluster.pods(labelSelector="job in (one,two)")} == set(NODES)
        tell("bought a small machine for 20 s rather than begin an hour's job anew")
        assert daemon.stop() == 0


def shortest_run_s(cluster: Cluster, selector: str) -> float:
    """Since when the newest of some pods has run; 0 where one has not begun."""
    begun = [item["status"].get("startTime") for item in cluster.pods(labelSelector=selector)]
    if not all(begun):
        return 0.0
    return min(time.time() - datetime.fromisoformat(each).timestamp() for each in begun)


def _done(cluster: Cluster, name: str) -> bool:
    jobs = cluster.items("/apis/batch/v1/namespaces/default/jobs")
    return any(each["metadata"]["name"] == name and each["status"].get("succeeded") for each in jobs)
