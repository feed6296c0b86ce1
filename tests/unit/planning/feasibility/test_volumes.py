"""VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits, after kube-scheduler's tables of those plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from htas.model.constraints import Constraints, HostPort, NodeSelectorTerm
from htas.model.nodes import Node
from htas.model.selectors import Operator
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.cluster.feasibility import volumes
from htas.planning.cluster.feasibility.message import summary
from tests.builders import make_node, make_pod, no_schedule, opened
from tests.unit.planning.feasibility.situations import (
    HOST,
    REGION,
    ZONE,
    expressions,
    named,
    on,
    pod,
    refusals,
    requires,
    zoned,
)

FAR = "node(s) didn't match PersistentVolume's node affinity"
NO_ZONE = "node(s) had no available volume zone"
NOT_HERE = "node(s) didn't find available persistent volumes to bind"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
FULL = "node(s) exceed max volume count"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
CINDER = "cinder.csi.openstack.org"


def in_zone(*zones: str) -> tuple[NodeSelectorTerm, ...]:
    return (expressions(requires(ZONE, Operator.IN, *zones)),)


def claim(name: str, volume: str | None = None, storage: str | None = "fast", *modes: str) -> VolumeClaim:
    return VolumeClaim("default", name, volume, storage, modes or ("ReadWriteOnce",))


STORE = Volumes(
    (
        PersistentVolume("pv-1", {}, in_zone("1"), CINDER),
        PersistentVolume("pv-2", {}, in_zone("2"), CINDER),
        PersistentVolume("pv-12", {}, (*in_zone("1"), expressions(requires(HOST, Operator.IN, "b"))), CINDER),
        PersistentVolume("pv-any", {}, None, CINDER),
        PersistentVolume("pv-nowhere", {}, (NodeSelectorTerm(),), CINDER),
        PersistentVolume("pv-label-1", {ZONE: "1"}, None, CINDER),
    ),
    (
        claim("one", "pv-1"),
        claim("two", "pv-2"),
        claim("one-or-b", "pv-12"),
        claim("any", "pv-any"),
        claim("nowhere", "pv-nowhere"),
        claim("labelled", "pv-label-1"),
        claim("lost", "pv-gone"),
        claim("eager", None, "fast"),
        claim("classless", None, None),
        claim("stranger", None, "no-such-class"),
        claim("lazy", None, "lazy"),
        claim("lazy-1", None, "lazy-1"),
        claim("lazy-3", None, "lazy-3"),
        claim("local", None, "local"),
        claim("alone", None, "lazy", "ReadWriteOncePod"),
        VolumeClaim("blue", "alone", None, "lazy", ("ReadWriteOncePod",)),
    ),
    (
        StorageClass("fast", CINDER),
        StorageClass("lazy", CINDER, True),
        StorageClass("lazy-1", CINDER, True, in_zone("1")),
        StorageClass("lazy-3", CINDER, True, in_zone("3")),
        StorageClass("local", "kubernetes.io/no-provisioner", True),
    ),
)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param((), None, id="no claims"),
        pytest.param(("one", "lazy"), None, id="one bound, one to be bound with the pod"),
        pytest.param(("nobody",), 'persistentvolumeclaim "nobody" not found', id="no such claim"),
        pytest.param(("eager", "nobody"), 'persistentvolumeclaim "nobody" not found', id="a missing claim comes first"),
        pytest.param(("eager",), UNBOUND, id="an immediate claim still unbound"),
        pytest.param(("one", "eager"), UNBOUND, id="beside a bound one"),
        pytest.param(("classless",), UNBOUND, id="an unbound claim without a class is immediate"),
        pytest.param(("stranger",), UNBOUND, id="so is one of a class that is not there"),
        pytest.param(("lost",), 'persistentvolume "pv-gone" not found', id="bound to a volume that is gone"),
        pytest.param(
            ("local",),
            'storageclass "local" has no provisioner: choosing static volumes is not supported by htas',
            id="static volumes are not chosen among, and this is said",
        ),
    ],
)
def test_what_is_wrong_with_claims_lies_in_the_pod(claims: tuple[str, ...], reason: str | None) -> None:
    found = refusals(volumes.refuse_claims, zoned(a="1", b="2"), pod(claims=claims), volumes=STORE)
    assert found == ({} if reason is None else dict.fromkeys("ab", reason))


def test_a_claim_of_another_namespace_is_no_claim() -> None:
    incoming = pod(claims=("one",), namespace="blue")
    found = refusals(volumes.refuse_claims, zoned(a="1"), incoming, volumes=STORE)
    assert found == {"a": 'persistentvolumeclaim "one" not found'}


@pytest.mark.parametrize(
    ("claims", "refused"),
    [
        pytest.param(("any",), {}, id="a volume for every node"),
        pytest.param(("one",), {"b": FAR, "c": FAR}, id="a volume of one zone"),
        pytest.param(("one-or-b",), {"c": FAR}, id="terms are alternatives"),
        pytest.param(("nowhere",), dict.fromkeys("abc", FAR), id="an empty term reaches nowhere"),
        pytest.param(("one", "two"), dict.fromkeys("abc", FAR), id="volumes of two zones: each node counted once"),
        pytest.param(("lazy",), {}, id="a claim to be bound with the pod, anywhere"),
        pytest.param(("lazy-1",), {"b": NOT_HERE, "c": NOT_HERE}, id="or only in the topologies of its class"),
        pytest.param(("lazy-1", "lazy-3"), dict.fromkeys("abc", NOT_HERE), id="in topologies that exclude each other"),
        pytest.param(("one", "lazy"), {"b": FAR, "c": FAR}, id="a bound one decides for both"),
    ],
)
def test_binding(claims: tuple[str, ...], refused: dict[str, str]) -> None:
    found = refusals(volumes.refuse_binding, zoned(a="1", b="2", c=""), pod(claims=claims), volumes=STORE)
    assert found == refused


def test_bound_and_unbound_claims_may_both_be_out_of_reach_of_a_node() -> None:
    opening = opened(zoned(b="2"), [pod(claims=("one", "lazy-1"))], volumes=STORE)
    counts = opening.sim.diagnose(opening.book.class_of(opening.waiting[0]))
    assert counts == {FAR: 1, NOT_HERE: 1}


@pytest.mark.parametrize(
    ("volume", "node", "fits"),
    [
        pytest.param({}, {ZONE: "1"}, True, id="a volume without labels"),
        pytest.param({"tier": "gold"}, {ZONE: "1"}, True, id="a volume with other labels"),
        pytest.param({ZONE: "1"}, {ZONE: "1"}, True, id="the same zone"),
        pytest.param({ZONE: "1"}, {ZONE: "2"}, False, id="another zone"),
        pytest.param({ZONE: "1"}, {}, True, id="a node that names no zone or region takes any volume"),
        pytest.param({ZONE: "1"}, {REGION: "r"}, False, id="a node that names a region but no zone"),
        pytest.param({REGION: "r"}, {REGION: "r", ZONE: "1"}, True, id="the same region"),
        pytest.param({REGION: "r"}, {REGION: "s", ZONE: "1"}, False, id="another region"),
        pytest.param({REGION: "r", ZONE: "1"}, {REGION: "r", ZONE: "2"}, False, id="the same region, another zone"),
        pytest.param({ZONE: "1__2"}, {ZONE: "2"}, True, id="one of several zones"),
        pytest.param({ZONE: "1__2"}, {ZONE: "3"}, False, id="none of several zones"),
        pytest.param({ZONE: "1__"}, {ZONE: "3"}, True, id="a label that is no list of zones is passed over"),
        pytest.param({OLD_ZONE: "1"}, {OLD_ZONE: "1"}, True, id="old labels, the same zone"),
        pytest.param({OLD_ZONE: "1"}, {OLD_ZONE: "2"}, False, id="old labels, another zone"),
        pytest.param({OLD_ZONE: "1"}, {ZONE: "1"}, True, id="an old label on the volume, today's on the node"),
        pytest.param({OLD_ZONE: "1"}, {ZONE: "2"}, False, id="the same, another zone"),
        pytest.param({OLD_ZONE: "1"}, {OLD_ZONE: "1", ZONE: "2"}, True, id="the node's old label goes first"),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, True, id="an old region label"),
        pytest.param({ZONE: "1"}, {OLD_ZONE: "1"}, False, id="today's label on the volume, an old one on the node"),
    ],
)
def test_zone_labels_of_volumes(volume: Mapping[str, str], node: Mapping[str, str], fits: bool) -> None:
    store = Volumes((PersistentVolume("pv", volume),), (claim("c", "pv"),))
    found = refusals(volumes.refuse_zone, [make_node("n", labels=dict(node))], pod(claims=("c",)), volumes=store)
    assert found == ({} if fits else {"n": NO_ZONE})


@pytest.mark.parametrize(
    ("there", "is_free"),
    [
        pytest.param([], True, id="nobody uses it"),
        pytest.param([on("a", claims=("alone",))], False, id="a pod on this node or any other"),
        pytest.param([on("a", claims=("lazy",))], True, id="a pod with another claim"),
        pytest.param([on("a", namespace="blue", claims=("alone",))], True, id="a claim of that name elsewhere"),
    ],
)
def test_read_write_once_pod(there: list[Any], is_free: bool) -> None:
    nodes = zoned(a="1", b="2")
    found = refusals(volumes.refuse_restrictions, nodes, pod(claims=("any", "alone")), there, volumes=STORE)
    assert found == ({} if is_free else dict.fromkeys("ab", IN_USE))


def test_two_claims_in_use_count_a_node_once() -> None:
    store = Volumes((), (claim("a", None, "lazy", "ReadWriteOncePod"), claim("b", None, "lazy", "ReadWriteOncePod")))
    there = [on("n", claims=("a", "b"))]
    assert refusals(volumes.refuse_restrictions, [make_node("n")], pod(claims=("a", "b")), there, volumes=store) == {
        "n": IN_USE
    }


def attachable(name: str, **limits: int) -> Node:
    return make_node(name, attach_limits=tuple(sorted((driver.replace("_", "."), n) for driver, n in limits.items())))


LIMITED = Volumes(
    (
        *(PersistentVolume(f"pv{i}", {}, None, CINDER) for i in range(4)),
        PersistentVolume("nfs", {}, None, "nfs.csi.k8s.io"),
        PersistentVolume("plain", {}, None, None),
    ),
    (
        *(claim(f"c{i}", f"pv{i}") for i in range(4)),
        claim("nfs", "nfs"),
        claim("plain", "plain"),
        claim("new", None, "lazy"),
        claim("migrated", None, "in-tree"),
        claim("lost", "pv-gone", "lazy"),
    ),
    (StorageClass("lazy", CINDER, True), StorageClass("in-tree", "kubernetes.io/cinder", True)),
)


@pytest.mark.parametrize(
    ("limit", "there", "wanted", "fits"),
    [
        pytest.param(2, ["c0"], ("c1",), True, id="up to the limit"),
        pytest.param(2, ["c0", "c1"], ("c2",), False, id="beyond the limit"),
        pytest.param(2, ["c0", "c1"], ("c1",), True, id="a volume that is attached already"),
        pytest.param(2, ["c0", "c0", "c0"], ("c1",), True, id="three pods with one volume attach one"),
        pytest.param(2, ["c0"], ("c1", "c2"), False, id="two more at once"),
        pytest.param(2, ["c0", "c1"], ("c1", "c2"), False, id="one attached already, one more"),
        pytest.param(1, ["c0", "c1"], ("c0",), True, id="a node beyond its limit takes pods that attach nothing new"),
        pytest.param(1, ["nfs"], ("c0",), True, id="another driver's volumes do not count"),
        pytest.param(1, ["c0"], ("nfs",), True, id="another driver has no limit here"),
        pytest.param(1, ["plain"], ("c0",), True, id="volumes without a driver are not attached"),
        pytest.param(0, [], ("plain",), True, id="nor do they need to be"),
        pytest.param(1, ["c0"], ("new",), False, id="a volume still to be made counts by its class"),
        pytest.param(1, ["new"], ("c0",), False, id="also when it is on the node"),
        pytest.param(1, ["c0"], ("migrated",), False, id="by the driver its class's in-tree plugin moved to"),
        pytest.param(1, ["c0"], ("lost",), False, id="a claim whose volume is gone counts by its class"),
        pytest.param(0, [], ("c0",), False, id="a driver that can attach nothing"),
        pytest.param(1, ["ghost"], ("c0",), True, id="a running pod's claim that is gone does not count"),
    ],
)
def test_attach_limits(limit: int, there: list[str], wanted: tuple[str, ...], fits: bool) -> None:
    nodes = [attachable("n", cinder_csi_openstack_org=limit), make_node("unlimited")]
    placed = [on("n", name=f"user-{i}", claims=(name,)) for i, name in enumerate(there)]
    found = refusals(volumes.refuse_limits, nodes, pod(claims=wanted), placed, volumes=LIMITED)
    assert found == ({} if fits else {"n": FULL})


def test_each_driver_has_a_limit_of_its_own() -> None:
    node = attachable("n", cinder_csi_openstack_org=1, nfs_csi_k8s_io=1)
    there = [on("n", claims=("c0",))]
    assert refusals(volumes.refuse_limits, [node], pod(claims=("nfs",)), there, volumes=LIMITED) == {}
    assert refusals(volumes.refuse_limits, [node], pod(claims=("nfs", "c1")), there, volumes=LIMITED) == {"n": FULL}


def test_limits_hold_for_machines_added_later() -> None:
    incoming = pod(claims=("c0", "c1"))
    opening = opened([make_node("old")], [incoming], volumes=LIMITED)
    cls = opening.book.class_of(incoming)
    assert opening.sim.feasible(cls).tolist() == [True]
    with opening.sim.fork():
        opening.sim.add_nodes(
            [attachable("small", cinder_csi_openstack_org=1), attachable("big", cinder_csi_openstack_org=2)]
        )
        assert opening.sim.feasible(cls).tolist() == [True, False, True]
    with opening.sim.fork():
        opening.sim.add_nodes(
            [attachable("big", cinder_csi_openstack_org=2), attachable("small", cinder_csi_openstack_org=1)]
        )
        assert opening.sim.feasible(cls).tolist() == [True, True, False]


def test_claims_are_judged_before_nodes_and_told_without_a_count() -> None:
    nodes = [
        make_node("tainted", taints=(no_schedule("x"),)),
        make_node("small", "1m"),
        make_node("cordoned", is_unschedulable=True),
    ]
    constraints = Constraints(claims=("eager",), host_ports=(HostPort(80),), node_affinity=(named("small"),))
    incoming = make_pod("incoming", constraints=constraints)
    opening = opened(nodes, [incoming], volumes=STORE)
    counts = opening.sim.diagnose(opening.book.class_of(incoming))
    assert summary(counts, 3) == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
