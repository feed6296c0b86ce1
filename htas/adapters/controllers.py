"""Controllers by kind and API group: a Job of Volcano is no Job of Kubernetes, though both are called Job."""

from __future__ import annotations

GROUPS = {
    "DaemonSet": "apps",
    "Deployment": "apps",
    "Job": "batch",
    "ReplicaSet": "apps",
    "ReplicationController": "",
    "StatefulSet": "apps",
}
"""Of the controllers that Kubernetes has itself; ReplicationControllers are of the core's, which is empty."""


def kind_and_group(kind: str, api_version: str) -> str:
    """`Job` for that of `batch/v1`, `Job.batch.volcano.sh` for one of `batch.volcano.sh/v1alpha1`, as kubectl has it.

    Kinds that Kubernetes does not have itself stay as they are. No API version (a manifest by hand) is taken for the
    built-in one: the API server takes no reference without it.
    """
    group = api_version.rpartition("/")[0]
    if kind not in GROUPS or not api_version or group == GROUPS[kind]:
        return kind
    return f"{kind}.{group}" if group else f"{kind}.core"


def base_kind(kind: str) -> str:
    """The kind without its group: a Job of Volcano's is not started again as one of Kubernetes', but is a job."""
    return kind.partition(".")[0]
