"""`htas simulate` on what holds nodes in clusters as they are: pinned pods, agents of operators, groups, run-to-end work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import TWO_FLAVOURS, placed, three_large_nodes
from tests.unit.cli.dump import named
from tests.unit.cli.test_simulate import answer_for, table_of

HOSTNAME = "kubernetes.io/hostname"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(TWO_FLAVOURS)
    return path


def by_selector(pod: dict[str, Any]) -> None:
    pod["spec"]["nodeSelector"] = {HOSTNAME: pod["spec"]["nodeName"]}


def by_affinity(pod: dict[str, Any]) -> None:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [pod["spec"]["nodeName"]]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}


def by_volume(pod: dict[str, Any]) -> None:
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def data_on(node: str) -> list[dict[str, Any]]:
    """A volume as local-path makes them: a directory of its node."""
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "hostPath": {"path": "/data"}}
    claim = {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}
    return [named("PersistentVolume", "pv", spec=where), named("PersistentVolumeClaim", "data", spec=claim)]


@pytest.mark.parametrize(
    ("tie", "by"),
    [
        pytest.param(by_selector, "nodeSelector", id="an OSD that selects its node"),
        pytest.param(by_affinity, "node affinity", id="a shard with a required affinity to its node"),
        pytest.param(by_volume, "its volume data", id="a database whose volume is a directory of its node"),
    ],
)
def test_a_pod_that_names_its_node_is_told_to_hold_it(prices: Path, tie: Change, by: str) -> None:
    osd = placed("osd", "a", "100m", "128Mi", namespace="default")
    tie(osd)
    objects = three_large_nodes(osd, *data_on("a"))
    answer = answer_for(prices, objects)
    [held] = answer["nodesHeld"]
    assert (held["node"], held["rule"], held["podsPinned"]) == ("a", "PinnedToNode", ["default/osd"])
    assert held["message"] == f"default/osd is pinned to its node by hostname ({by})"
    [rule] = [each for each in answer["rules"] if each["rule"] == "PinnedToNode"]
    assert (rule["pods"], rule["nodes"], rule["liftedBuyingAnewSavesPerHour"]) == (1, 1, "0.10")
    assert "1 node is held by pods pinned to it by hostname (default/osd)\n" in table_of(prices, objects, 160)


def test_a_pinned_pod_is_named_beside_the_other_rules_of_its_node(prices: Path) -> None:
    osd = placed("osd", "a", "100m", "128Mi", namespace="default")
    by_selector(osd)
    objects = three_large_nodes(osd, placed("bare", "a", "100m", "128Mi", ""))
    shown = " ".join(table_of(prices, objects, 160).split())
    assert "default/bare has no controller; also PinnedToNode (default/osd)" in shown
    assert "held by pods pinned to it by hostname (default/osd), beside other rules" in shown


def test_a_pod_that_names_two_nodes_holds_neither_against_packing(prices: Path) -> None:
    """It may move between them; only a machine bought anew is none of them."""
    shard = placed("shard", "a", "100m", "128Mi")
    by_affinity(shard)
    terms = shard["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = ["a", "b"]
    answer = answer_for(prices, three_large_nodes(shard))
    assert answer["packed"]["nodes"] == 1
    [held] = answer["nodesHeld"]
    assert held["rule"] == "PinnedToNode"
    assert held["message"] == "default/shard may run on 2 nodes of today alone, which it names (node affinity)"


def test_a_pod_that_names_a_zone_is_not_pinned_to_a_node(prices: Path) -> None:
    zonal = placed("zonal", "a", "100m", "128Mi")
    zonal["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "z1"}
    assert answer_for(prices, three_large_nodes(zonal))["nodesHeld"] == []
