"""Pods and nodes that a move is not begun with."""

from __future__ import annotations

from typing import Any

import pytest

from htas.adapters.migration.present import check_nodes, check_pod
from htas.model.migrations import MigrationSettings, Refusal
from htas.model.moves import MigrationMethod
from htas.ports import MoveRefusedError
from tests.unit.adapters.migration.pods import a_node, a_pod

KUBELET, REPLACE = MigrationMethod.KUBELET_CHECKPOINT, MigrationMethod.REPLACE
TWO = [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": {"waiting": {}}}, Refusal.NOT_RUNNING),
        ({"owner": "StatefulSet"}, Refusal.KEEPS_ITS_NAME),
        ({"owner": "DaemonSet"}, Refusal.OWNER_UNKNOWN),
        ({"initContainers": [{"name": "mesh", "restartPolicy": "Always"}]}, Refusal.SIDECAR),
        ({"hostPID": True}, Refusal.HOST_NAMESPACE),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, Refusal.EMPTY_DIR),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, Refusal.HOST_PATH),
        ({"volumes": [{"name": "v", "csi": {}}]}, Refusal.LOCAL_VOLUME),
        ({"resourceClaims": [{"name": "gpu"}]}, Refusal.RESOURCE_CLAIM),
    ],
)
def test_what_would_be_lost_is_refused(changes: dict[str, Any], reason: Refusal) -> None:
    with pytest.raises(MoveRefusedError) as refused:
        check_pod(a_pod(**changes), MigrationSettings(), KUBELET)
    assert refused.value.reason is reason


def test_devices_are_refused() -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}
    with pytest.raises(MoveRefusedError) as refused:
        check_pod(pod, MigrationSettings(), KUBELET)
    assert refused.value.reason is Refusal.DEVICE


@pytest.mark.parametrize("owner", ["", "Job", "ReplicaSet"])
def test_plain_pods_are_moved(owner: str) -> None:
    volumes = [{"name": "c", "configMap": {}}, {"name": "t", "projected": {}}]
    check_pod(a_pod(owner=owner, volumes=volumes), MigrationSettings(), KUBELET)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (a_node("a", "cri-o://1.30.0"), a_node("b"), Refusal.SOURCE_CANNOT_CHECKPOINT),
        (a_node("a"), a_node("b", "containerd://2.1.9"), Refusal.TARGET_CANNOT_RESTORE),
        (a_node("a"), a_node("b", "containerd://2.4.2"), Refusal.TARGET_CANNOT_RESTORE),
        (a_node("a"), a_node("b", ready=False), Refusal.TARGET_NOT_READY),
        (a_node("a"), a_node("b", cordoned=True), Refusal.TARGET_NOT_READY),
    ],
)
def test_nodes_that_cannot_are_refused(source: dict[str, Any], target: dict[str, Any], reason: Refusal) -> None:
    with pytest.raises(MoveRefusedError) as refused:
        check_nodes(source, target, KUBELET)
    assert refused.value.reason is reason


def test_nodes_that_can_are_not() -> None:
    check_nodes(
        a_node("a", "containerd://2.1.9"), a_node("b", "containerd://2.3.7"), MigrationMethod.KUBELET_CHECKPOINT
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": TWO, "state": None},
        {"initContainers": [{"name": "mesh", "restartPolicy": "Always"}]},
        {"hostPID": True},
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/"}}]},
    ],
    ids=["several containers", "a sidecar", "the node's processes", "directories of its node"],
)
def test_what_cannot_be_dumped_can_be_started_afresh(changes: dict[str, Any]) -> None:
    pod = a_pod(owner="ReplicaSet", **changes)
    pod["status"]["containerStatuses"] = [
        {"name": each["name"], "state": {"running": {}}} for each in pod["spec"]["containers"]
    ]
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    check_pod(pod, MigrationSettings(), REPLACE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"state": {"waiting": {}}}, Refusal.NOT_RUNNING, id="it does not run"),
        pytest.param({"owner": "StatefulSet"}, Refusal.KEEPS_ITS_NAME, id="a StatefulSet's pod"),
        pytest.param({"owner": "DaemonSet"}, Refusal.OWNER_UNKNOWN, id="a DaemonSet's pod"),
        pytest.param({"owner": "Job", "restartPolicy": "Never"}, Refusal.BEGINS_AGAIN, id="a Job's pod"),
        pytest.param({"restartPolicy": "OnFailure"}, Refusal.BEGINS_AGAIN, id="it runs to an end"),
        pytest.param({"volumes": [{"name": "v", "ephemeral": {}}]}, Refusal.READ_WRITE_ONCE, id="a claim of its own"),
        pytest.param({"volumes": [{"name": "v", "csi": {}}]}, Refusal.LOCAL_VOLUME, id="a volume nobody tried"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, Refusal.RESOURCE_CLAIM, id="a device to be allocated"),
        pytest.param({"readinessGates": [{"conditionType": "x"}]}, Refusal.READINESS_GATE, id="a readiness gate"),
    ],
)
def test_what_cannot_start_beside_its_source_is_refused(changes: dict[str, Any], reason: Refusal) -> None:
    with pytest.raises(MoveRefusedError) as refused:
        check_pod(a_pod(**changes), MigrationSettings(), REPLACE)
    assert refused.value.reason is reason


def test_nodes_of_any_runtime_will_do_for_a_fresh_copy() -> None:
    check_nodes(a_node("a", "cri-o://1.30.0"), a_node("b", "containerd://2.4.2"), REPLACE)
