"""Which labels of nodes are their drivers', where a dump tells and where it does not."""

from __future__ import annotations

import pytest

from htas.model.constraints import NodeSelectorTerm
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, Volumes
from htas.planning.what_if.likeness import with_driver_labels
from tests.builders import make_node

ZONE, RACK = "topology.example/zone", "topology.example/rack"


def volume(name: str, key: str | None, driver: str | None = "csi.example") -> PersistentVolume:
    if key is None:
        return PersistentVolume(name, driver=driver)
    return PersistentVolume(
        name, node_affinity=(NodeSelectorTerm((Requirement(key, Operator.IN, ("z1",)),)),), driver=driver
    )


@pytest.mark.parametrize(
    ("volumes", "keys"),
    [
        pytest.param([volume("a", ZONE), volume("b", RACK)], (RACK, ZONE), id="what CSI volumes ask for"),
        pytest.param([volume("a", ZONE), volume("b", None)], (ZONE,), id="a volume that may be anywhere asks nothing"),
        pytest.param([volume("a", ZONE, driver=None)], (), id="a volume of no driver is a node's own"),
    ],
)
def test_without_csi_nodes_the_volumes_tell(volumes: list[PersistentVolume], keys: tuple[str, ...]) -> None:
    [node] = with_driver_labels([make_node("n")], Volumes(tuple(volumes)))
    assert node.topology_keys == keys


def test_what_csi_nodes_tell_counts_alone() -> None:
    nodes = [make_node("told", topology_keys=(RACK,)), make_node("untold")]
    assert with_driver_labels(nodes, Volumes((volume("a", ZONE),))) == tuple(nodes)
