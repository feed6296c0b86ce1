"""Volumes of machines that are not there yet: the labels their CSI drivers will give them, and what they attach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState
from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy
from htas.model.reasons import Unplaced
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import (
    CINDER_ZONE_LABEL,
    PersistentVolume,
    StorageClass,
    TopologyLabel,
    VolumeClaim,
    VolumeRules,
    Volumes,
)
from htas.planning.cluster.attaching import REGISTERS_WITHIN_S, Attaching
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, make_snapshot, owned_node, ready_claim

ZONE = "topology.kubernetes.io/zone"
RACK = "topology.example.com/rack"
CINDER = "cinder.csi.openstack.org"
LONG = NOW - 3600.0
GROUP = NodeGroup("any")
ZONES = ("az-1", "az-2")
SMALL = make_flavour("small", "1", "2Gi", "0.02", zones=ZONES)


def node(
    name: str,
    zone: str | None = "az-1",
    cinder: str | None = None,
    group: str = "any",
    rack: str = "",
    arch: str = "",
    **more: Any,
) -> Node:
    """A node that CSI drivers have labelled, as they do: by the label and by naming it in its CSINode."""
    said = {ZONE: zone, CINDER_ZONE_LABEL: cinder, RACK: rack or None, "kubernetes.io/arch": arch or None}
    labels = {key: value for key, value in said.items() if value is not None}
    keys = tuple(key for key in (CINDER_ZONE_LABEL, RACK) if key in labels)
    fields = {"ready_since": LONG, "topology_keys": keys, "cpu": "1m", **more}
    return owned_node(name, group, labels=labels, **fields) if group else make_node(name, labels=labels, **fields)


def labels(nodes: Sequence[Node], zone: str | None, *rules: TopologyLabel) -> dict[str, str]:
    policy = make_policy(volumes=VolumeRules(rules or VolumeRules().topology))
    return Attaching(policy, make_snapshot(nodes)).labels(GROUP, zone)


@pytest.mark.parametrize(
    ("nodes", "zone", "found"),
    [
        pytest.param([], "az-1", {CINDER_ZONE_LABEL: "az-1", "kubernetes.io/os": "linux"}, id="no node yet: Cinder's zones are Nova's"),
        pytest.param([], None, {"kubernetes.io/os": "linux"}, id="nor a zone: nobody knows where the cloud puts it"),
        pytest.param([node("a", cinder="nova")], None, {CINDER_ZONE_LABEL: "nova"}, id="as the group's node has it"),
        pytest.param([node("a", cinder="room-1")], "az-1", {CINDER_ZONE_LABEL: "room-1"}, id="whatever it is called"),
        pytest.param([node("a", cinder="az-1")], "az-2", {CINDER_ZONE_LABEL: "az-2"}, id="a zone without a node yet"),
        pytest.param([node("a", cinder="room-1")], "az-2", {}, id="zones go by other names, and nobody told this one's"),
        pytest.param([node("a", None, cinder="x"), node("b", None, cinder="y")], None, {}, id="two values, and no zone to tell them apart"),
        pytest.param([node("a", "az-2", cinder="az-2", group="")], "az-2", {CINDER_ZONE_LABEL: "az-2"}, id="a node of nobody's shows it, too"),
        pytest.param([node("a")], "az-1", {}, id="the group's node has gone without for long: no driver runs there"),
        pytest.param([node("a", ready_since=NOW - 5)], "az-1", {CINDER_ZONE_LABEL: "az-1"}, id="it became Ready just now: its driver may yet come"),
        pytest.param([node("a", group="gpu")], "az-1", {CINDER_ZONE_LABEL: "az-1"}, id="what another group goes without says nothing of this one"),
        pytest.param([node("a", rack="r1"), node("b", rack="r1")], "az-1", {RACK: "r1"}, id="another driver's label, the same on two nodes of the zone"),
        pytest.param([node("a", arch="arm64"), node("b", None, arch="amd64", group="gpu")], "az-1", {"kubernetes.io/arch": "arm64"}, id="an architecture, as the group's nodes have it"),
        pytest.param([node("a", None, arch="arm64", group=""), node("b", None, arch="amd64", group="")], None, {}, id="of a group without nodes nobody knows which of two it will be"),
        pytest.param([node("a", rack="n1")], "az-1", {}, id="on a single node it may be that node's own name"),
        pytest.param([node("a", rack="az-1")], "az-1", {RACK: "az-1"}, id="unless it is the zone's"),
        pytest.param([node("a", rack="az-1")], "az-2", {RACK: "az-2"}, id="then it is so in other zones"),
        pytest.param([node("a", None, rack="n1")], "az-1", {}, id="whose zone nobody tells either"),
        pytest.param([node("a", rack="n1"), node("b", rack="n2")], "az-1", {}, id="different on each node: a node's own"),
    ],
)  # fmt: skip
def test_the_labels_a_machine_will_get(nodes: list[Node], zone: str | None, found: dict[str, str]) -> None:
    assert labels(nodes, zone) == found


@pytest.mark.parametrize(
    ("nodes", "zone", "value"),
    [
        pytest.param([], "az-1", "room-1", id="a zone that is named"),
        pytest.param([], "az-2", "az-2", id="one that is not names itself"),
        pytest.param([], None, "room-0", id="no zone"),
        pytest.param([node("a", rack="seen")], "az-1", "seen", id="what a node of the zone shows counts for more"),
    ],
)
def test_labels_are_told_by_the_configuration(nodes: list[Node], zone: str | None, value: str) -> None:
    assert labels(nodes, zone, TopologyLabel(RACK, {"az-1": "room-1"}, "room-0"))[RACK] == value


@pytest.mark.parametrize(
    ("flavour", "limits"),
    [
        pytest.param("seen", (("a", 3),), id="as a Ready node of the flavour shows"),
        pytest.param("new", (("a", 3), ("b", 9), ("c", 7)), id="else as told, else the least that any node shows"),
    ],
)
def test_how_many_volumes_a_machine_attaches(flavour: str, limits: tuple[tuple[str, int], ...]) -> None:
    nodes = [
        owned_node("n1", flavour="seen", attach_limits=(("a", 3),)),
        owned_node("n2", flavour="more", attach_limits=(("a", 8), ("b", 2), ("c", 7))),
        owned_node("n3", flavour="not-ready", is_ready=False, attach_limits=(("a", 1),)),
    ]
    policy = make_policy(volumes=VolumeRules(attach_limits=(("b", 9),)))
    assert Attaching(policy, make_snapshot(nodes)).limits(flavour) == limits


def reached_from(key: str, *values: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(key, Operator.IN, values),)),)


def stored(terms: tuple[NodeSelectorTerm, ...], **claim: Any) -> Volumes:
    return Volumes((PersistentVolume("pv-1", {}, terms, CINDER),), (VolumeClaim("default", "data", "pv-1", **claim),))


def user(name: str = "db", **more: Any) -> Pod:
    return make_pod(name, constraints=Constraints(claims=("data",)), **more)


def planned(
    pods: list[Pod], volumes: Volumes, nodes: Sequence[Node] = (), policy: Policy | None = None, **more: Any
) -> Plan:
    snapshot = make_snapshot(nodes, pods, volumes=volumes, **more)
    return plan(snapshot, policy or make_policy(flavours=[SMALL]), NOW)


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param(stored(reached_from(CINDER_ZONE_LABEL, "az-2")), id="a volume that is there"),
        pytest.param(
            Volumes(
                (),
                (VolumeClaim("default", "data", None, "fast"),),
                (StorageClass("fast", CINDER, True, reached_from(CINDER_ZONE_LABEL, "az-2")),),
            ),
            id="one to be made, in topologies that its class allows",
        ),
    ],
)
def test_a_machine_is_bought_in_the_zone_of_the_volume(volumes: Volumes) -> None:
    (launch,) = planned([user()], volumes).launch
    assert (launch.zone, launch.pods) == ("az-2", ("default/db",))


def test_a_machine_on_its_way_is_waited_for() -> None:
    """The plan after the purchase does not buy a second machine."""
    volumes = stored(reached_from(CINDER_ZONE_LABEL, "az-1"))
    coming = node("n")
    claim = msgspec.structs.replace(
        ready_claim(coming), flavour="small", zone="az-1", state=ClaimState.ACTIVE, node=None
    )
    result = planned([user()], volumes, claims=(claim,))
    assert (result.launch, [item.node for item in result.nominate]) == ((), ["n"])


def test_a_new_node_is_waited_for_until_the_driver_has_labelled_it() -> None:
    """Other work is bound to it at once; the pod with the volume neither is, nor is another machine bought for it."""
    volumes = stored(reached_from(CINDER_ZONE_LABEL, "az-1"))
    new = node("n", ready_since=NOW - 5, cpu="2")
    result = planned([user(), make_pod("other")], volumes, [new])
    assert result.launch == ()
    assert [item.pod for item in result.bind] == ["default/other"]
    assert [(item.pod, item.why) for item in result.nominate] == [
        ("default/db", "the driver of its volumes has not registered there yet")
    ]


def test_a_node_that_its_driver_never_labels_is_not_waited_for_and_no_other_one_is_bought_in_vain() -> None:
    volumes = stored(reached_from(CINDER_ZONE_LABEL, "az-1"))
    old = node("n", ready_since=NOW - REGISTERS_WITHIN_S, cpu="2")
    result = planned([user()], volumes, [old])
    assert (result.launch, result.bind, result.nominate) == ((), (), ())
    assert result.unplaced[0].reason is Unplaced.NO_FLAVOUR_FITS


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        pytest.param(
            reached_from(RACK, "r9"),
            f"volume pv-1 of claim data asks for {RACK} In (r9), and no machine on offer is known to get that label; "
            "write which it will be under volumes.topology, or under labels of the node group",
            id="a label that nobody knows of",
        ),
        pytest.param(
            reached_from(CINDER_ZONE_LABEL, "az-9"),
            f"volume pv-1 of claim data asks for {CINDER_ZONE_LABEL} In (az-9); machines on offer would have az-1, az-2",
            id="a zone that is not sold",
        ),
        pytest.param(
            reached_from("kubernetes.io/hostname", "n1"),
            "volume pv-1 of claim data can be reached from n1 alone: no new machine can help",
            id="a disk of another node",
        ),
    ],
)
def test_the_volume_and_the_label_are_named_where_no_machine_would_reach_it(
    terms: tuple[NodeSelectorTerm, ...], told: str
) -> None:
    result = planned([user()], stored(terms))
    assert result.launch == ()
    assert result.unplaced[0].reason is Unplaced.NO_FLAVOUR_FITS
    assert f"no flavour on offer would hold it: {told}; " in result.unplaced[0].message


def test_a_volume_that_is_being_made_for_a_node_is_used_from_there_alone() -> None:
    volumes = Volumes(
        (),
        (VolumeClaim("default", "data", None, "fast", (), "b"),),
        (StorageClass("fast", CINDER, True),),
    )
    result = planned([user()], volumes, [make_node("a", "1"), make_node("b", "8")])
    assert [item.node for item in result.bind] == ["b"]  # the tighter one is a
    result = planned([user()], volumes, [make_node("a", "1")])
    assert result.launch == ()
    assert "the volume that is being made for claim data on node b can be reached from" in result.unplaced[0].message


def test_a_flavour_without_zones_is_the_cure_for_a_volume_of_a_zone() -> None:
    """With its zones, machines get the driver's label; what `volumes.topology` could say is not what lacks."""
    nodes = [node(f"n-{zone}", zone, zone, group="") for zone in ZONES]
    volumes = stored(reached_from(CINDER_ZONE_LABEL, "az-2"))
    zoneless = make_policy(flavours=[make_flavour("small", "1", "2Gi", "0.02")])
    [waits] = planned([user()], volumes, nodes, zoneless).unplaced
    advice = "; flavour small has no zones: give it `zones: [az-1, az-2]` (price file: flavours[0].zones); "
    assert advice in waits.message
    assert "volumes.topology" not in waits.message
    [launch] = planned([user()], volumes, nodes).launch
    assert launch.zone == "az-2"


def test_a_zone_that_no_node_is_in_is_told_as_such() -> None:
    nodes = [node(f"n-{zone}", zone, group="") for zone in ZONES]
    there = make_pod("late", constraints=Constraints(node_selector=((ZONE, "az-9"),)))
    zoneless = make_policy(flavours=[make_flavour("small", "1", "2Gi", "0.02")])
    [waits] = planned([there], Volumes(), nodes, zoneless).unplaced
    assert "; no node is in az-9: HTAS launches machines there if a flavour's `zones` name it; " in waits.message
