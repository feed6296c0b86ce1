"""Pods and nodes that a move is not begun with."""

from __future__ import annotations

from typing import Any

import pytest

from htas.adapters.checkpoint.refusals import check_nodes, check_pod
from htas.model.migrations import MigrationSettings, Refusal
from htas.model.policy import MigrationMethod
from htas.ports import MoveRefusedError
from tests.unit.adapters.checkpoint.pods import a_node, a_pod

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
    ],
)
def test_what_would_be_lost_is_refused(changes: dict[str, Any], reason: Refusal) -> None:
    with pytest.raises(MoveRefusedError) as refused:
        check_pod(a_pod(**changes), MigrationSettings())
    assert refused.value.reason is reason


def test_devices_are_refused() -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}
    with pytest.raises(MoveRefusedError) as refused:
        check_pod(pod, MigrationSettings())
    assert refused.value.reason is Refusal.DEVICE


@pytest.mark.parametrize("owner", ["", "Job", "ReplicaSet"])
def test_plain_pods_are_moved(owner: str) -> None:
    volumes = [{"name": "c", "configMap": {}}, {"name": "t", "projected": {}}]
    check_pod(a_pod(owner=owner, volumes=volumes), MigrationSettings())


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
        check_nodes(source, target, MigrationMethod.KUBELET_CHECKPOINT)
    assert refused.value.reason is reason


def test_nodes_that_can_are_not() -> None:
    check_nodes(
        a_node("a", "containerd://2.1.9"), a_node("b", "containerd://2.3.7"), MigrationMethod.KUBELET_CHECKPOINT
    )
