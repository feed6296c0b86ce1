"""Nodes, budgets, namespaces and volumes."""

from __future__ import annotations

import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import Effect, NodeSelectorTerm, Taint
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim
from tests.unit.adapters.kubernetes.manifests import Manifest, manifest, node, problems_of, view_of

ZONE_1 = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
IN_ZONE_1 = NodeSelectorTerm((Requirement("zone", Operator.IN, ("z1",)),))


def test_a_node_with_everything() -> None:
    offered = {"cpu": "3920m", "memory": "16Gi", "ephemeral-storage": "10G", "pods": "110", "nvidia.com/gpu": "1"}
    meta = {"uid": "u", "labels": {"l": "1"}, "annotations": {"a": "1"}, "creationTimestamp": "1970-01-01T00:01:00Z"}
    spec = {
        "providerID": "openstack:///1",
        "unschedulable": True,
        "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
    }
    ready = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]
    drivers = [{"name": "b", "allocatable": {"count": 20}}, {"name": "a", "allocatable": {"count": 3}}, {"name": "c"}]
    drivers[0]["topologyKeys"], drivers[2]["topologyKeys"] = ["b/zone", "region"], ["c/zone", "region"]
    limits = manifest("CSINode", "n", spec={"drivers": drivers})
    (found,) = view_of(
        node("n", meta, spec, allocatable=offered, capacity={"cpu": "4"}, conditions=ready), limits
    ).nodes
    assert found.allocatable == Resources(3920, 16 * 2**30, 10**10, 110, (("nvidia.com/gpu", 1),))
    assert (found.uid, found.labels, found.annotations, found.created_at) == ("u", {"l": "1"}, {"a": "1"}, 60.0)
    assert (found.provider_id, found.is_unschedulable, found.is_ready) == ("openstack:///1", True, True)
    assert found.taints == (Taint("k", Effect.NO_EXECUTE, "v"),)
    assert found.attach_limits == (("a", 3), ("b", 20))
    assert found.topology_keys == ("b/zone", "c/zone", "region")


def test_a_tier_that_there_is_none_of_is_told_and_the_node_goes_on() -> None:
    view = view_of(node("n", {"labels": {"htas.io/tier": "egde"}}), node("m", {"labels": {"htas.io/tier": "edge"}}))
    assert [each.name for each in view.nodes] == ["m", "n"]
    assert [(each.where, each.what) for each in view.problems] == [
        (
            "dump.json: Node n: metadata.labels[htas.io/tier]",
            "'egde' is neither edge nor cloud; its group's tier counts",
        )
    ]


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_a_node_is_ready_only_when_it_says_so(status: str | None) -> None:
    conditions = [{"type": "Ready", "status": status}] if status else []
    (found,) = view_of(node(conditions=conditions)).nodes
    assert not found.is_ready


@pytest.mark.parametrize(
    ("taint", "is_ready"),
    [
        pytest.param(
            "node.kubernetes.io/not-ready", False, id="says Ready, and the node controller has not noticed yet"
        ),
        pytest.param("node.cloudprovider.kubernetes.io/uninitialized", False, id="waits for its cloud"),
        pytest.param("example.com/gpu", True, id="a taint of the operator's"),
    ],
)
def test_a_node_is_ready_once_what_its_start_tainted_it_with_is_gone(taint: str, is_ready: bool) -> None:
    ready = [{"type": "Ready", "status": "True"}]
    (found,) = view_of(node(spec={"taints": [{"key": taint, "effect": "NoSchedule"}]}, conditions=ready)).nodes
    assert found.is_ready is is_ready


@pytest.mark.parametrize(
    ("condition", "taints", "since"),
    [
        pytest.param({"status": "True", "lastTransitionTime": "1970-01-01T00:02:30Z"}, [], 150.0, id="it is"),
        pytest.param({"status": "True"}, [], None, id="nobody says since when"),
        pytest.param({"status": "Unknown", "lastTransitionTime": "1970-01-01T00:02:30Z"}, [], None, id="it is silent"),
        pytest.param(
            {"status": "True", "lastTransitionTime": "1970-01-01T00:02:30Z"},
            [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
            None,
            id="it is tainted yet",
        ),
    ],
)
def test_since_when_a_node_is_ready(condition: Manifest, taints: list[Manifest], since: float | None) -> None:
    (found,) = view_of(node(spec={"taints": taints}, conditions=[{"type": "Ready", **condition}])).nodes
    assert found.ready_since == since


def test_a_node_without_allocatable_offers_its_capacity() -> None:
    (found,) = view_of(node(capacity={"cpu": "4"})).nodes
    assert found.allocatable == Resources(4000)


def test_all_that_is_wrong_with_a_node_is_told() -> None:
    odd = node(spec={"taints": [{"key": "k", "effect": "NoWay"}]}, allocatable={"cpu": "x", "memory": "-1"})
    assert [line.split(": ")[2] for line in problems_of(odd)] == [
        "spec.taints[0].effect",
        "status.allocatable.cpu",
        "status.allocatable.memory",
    ]


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(None, None, id="no selector covers nothing"),
        pytest.param({}, LabelSelector(), id="an empty one every pod of the namespace"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, LabelSelector((Requirement("a", Operator.IN, ("1",)), Requirement("b", Operator.IN, ("2",)), Requirement("c", Operator.EXISTS))), id="labels and expressions"),
    ],
)  # fmt: skip
def test_disruption_budgets(selector: Manifest | None, want: LabelSelector | None) -> None:
    made = manifest("PodDisruptionBudget", "b", spec={"selector": selector}, status={"disruptionsAllowed": 2})
    assert view_of(made).budgets == (DisruptionBudget("default", "b", want, 2),)


@pytest.mark.parametrize(("policy", "always"), [("AlwaysAllow", True), ("IfHealthyBudget", False), (None, False)])
def test_a_budget_tells_how_healthy_it_is_and_whether_that_matters(policy: str | None, always: bool) -> None:
    status = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2}
    made = manifest("PodDisruptionBudget", "b", spec={"unhealthyPodEvictionPolicy": policy}, status=status)
    assert view_of(made).budgets == (DisruptionBudget("default", "b", None, 1, 3, 2, always),)


@pytest.mark.parametrize(
    ("generation", "observed", "allowed"),
    [
        pytest.param(2, 2, 1, id="the status is of what is asked for now"),
        pytest.param(3, 2, 0, id="changed since: the Eviction API refuses"),
        pytest.param(1, None, 0, id="never looked at"),
        pytest.param(None, None, 1, id="generations that nobody tells"),
    ],
)
def test_a_budget_allows_nothing_until_its_change_was_seen(
    generation: int | None, observed: int | None, allowed: int
) -> None:
    made = manifest("PodDisruptionBudget", "b", spec={}, status={"disruptionsAllowed": 1, "currentHealthy": 3})
    if generation is not None:
        made["metadata"]["generation"] = generation
    if observed is not None:
        made["status"]["observedGeneration"] = observed
    assert view_of(made).budgets == (DisruptionBudget("default", "b", None, allowed, 3),)


def test_a_budget_without_status_allows_nothing() -> None:
    assert view_of(manifest("PodDisruptionBudget", "b", spec={})).budgets[0].disruptions_allowed == 0


def test_namespaces_carry_their_name() -> None:
    view = view_of(manifest("Namespace", "team", {"labels": {"tier": "gold"}}))
    assert view.namespaces == {"team": {"tier": "gold", "kubernetes.io/metadata.name": "team"}}


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        pytest.param({"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "1"}}, "cinder.csi.openstack.org", id="CSI"),
        pytest.param({"cinder": {"volumeID": "1"}}, "cinder.csi.openstack.org", id="Cinder from before CSI"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "1"}}, "ebs.csi.aws.com", id="EBS from before CSI"),
        pytest.param({"gcePersistentDisk": {"pdName": "1"}}, "pd.csi.storage.gke.io", id="a GCE disk from before CSI"),
        pytest.param({"nfs": {"server": "s", "path": "/"}}, None, id="NFS is not attached"),
    ],
)  # fmt: skip
def test_drivers_of_volumes(source: Manifest, driver: str | None) -> None:
    volumes = view_of(manifest("PersistentVolume", "v", {"labels": {"zone": "z1"}}, spec=source)).volumes
    assert volumes.persistent == (PersistentVolume("v", {"zone": "z1"}, None, driver),)


def test_a_volume_that_only_some_nodes_reach() -> None:
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": [ZONE_1]}}, "local": {"path": "/"}}
    (found,) = view_of(manifest("PersistentVolume", "v", spec=spec)).volumes.persistent
    assert found.node_affinity == (IN_ZONE_1,)


def test_claims_and_classes() -> None:
    bound = {"volumeName": "v", "storageClassName": "fast", "accessModes": ["ReadWriteOncePod"]}
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["z1"]}]}]
    view = view_of(
        manifest("PersistentVolumeClaim", "bound", {"namespace": "team"}, spec=bound),
        manifest("PersistentVolumeClaim", "waiting", spec={}),
        manifest("StorageClass", "fast", provisioner="p", volumeBindingMode="WaitForFirstConsumer"),
        manifest("StorageClass", "zonal", provisioner="p", allowedTopologies=topologies),
    )
    assert view.problems == ()
    assert view.volumes.claims == (
        VolumeClaim("default", "waiting"),
        VolumeClaim("team", "bound", "v", "fast", ("ReadWriteOncePod",)),
    )
    assert view.volumes.classes == (StorageClass("fast", "p", True), StorageClass("zonal", "p", False, (IN_ZONE_1,)))
