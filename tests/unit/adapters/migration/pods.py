"""Documents of pods and nodes as the API server has them."""

from __future__ import annotations

from typing import Any

from htas.model.migrations import MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod

Json = dict[str, Any]
RUNNING: Json = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}


def a_pod(state: Json | None = RUNNING, *, ready: bool = True, owner: str = "", **spec: Any) -> Json:
    """A pod of one container on node a, in a state."""
    statuses = [{"name": "main", "state": state}] if state is not None else []
    owners = [{"kind": owner, "name": "o", "uid": "u-o", "controller": True}] if owner else []
    return {
        "metadata": {
            "name": "train-x",
            "namespace": "default",
            "uid": "u-1",
            "labels": {"app": "train", "batch.kubernetes.io/job-completion-index": "3"},
            "annotations": {"keep": "me"},
            "ownerReferences": owners,
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": {
            "nodeName": "a",
            "containers": [{"name": "main", "image": "train:1", "imagePullPolicy": "Always"}],
            **spec,
        },
        "status": {
            "phase": "Running",
            "containerStatuses": statuses,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_node(name: str, runtime: str = "containerd://2.3.7", *, ready: bool = True, cordoned: bool = False) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {
            "nodeInfo": {"containerRuntimeVersion": runtime},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def a_record(state: MigrationState = MigrationState.TRANSFERRED, **changes: Any) -> MigrationRecord:
    facts: Json = {
        "id": "abcdef012345",
        "containers": ("main",),
        "pod": "default/train-x",
        "uid": "u-1",
        "source": "a",
        "target": "b",
        "method": MigrationMethod.KUBELET_CHECKPOINT,
        "state": state,
        "started_at": 1000.0,
        "reached": {state.value: 1000.0},
    }
    return MigrationRecord(**(facts | changes))
