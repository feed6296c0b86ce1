"""Processes that count in memory, and what can be told of them from outside: by their logs, on the API server alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from htas.ports import HTASError
from tests.real.harness import BATCH, CORE, Cluster, Json, eventually
from tools.testenv.real_nodes import IMAGE

STEP_S = 0.1
SCRIPT = """
id=$(cat /proc/sys/kernel/random/uuid); data=$(head -c {bytes} /dev/urandom | base64); {before} i=0
while [ $i -lt {until} ]; do i=$((i + 1)); echo "$EPOCHREALTIME $id $i"; sleep 0.1; done
"""
FOR_EVER = 10**9


class Count(NamedTuple):
    """A line of a counting process's log: when, which process (an id it drew at its start), how far."""

    at: float
    process: str
    number: int


def container(megabytes: int = 0, until: int = FOR_EVER, before: str = "") -> Json:
    """Counts ten times a second to `until`, with so many megabytes of random data in its memory."""
    script = SCRIPT.format(bytes=megabytes * 786432, until=until, before=before)
    size = {"cpu": "50m", "memory": f"{megabytes * 2 + 64}Mi"}
    return {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "resources": {"requests": size},
    }


def pod_spec(node: str | None, counting: Json, **more: object) -> Json:
    placed = {"nodeName": node} if node is not None else {"schedulerName": "htas"}
    return {
        **placed,
        "terminationGracePeriodSeconds": 30,
        "containers": [counting],
        "automountServiceAccountToken": False,
        **more,
    }


def bare_pod(name: str, node: str | None, counting: Json) -> Json:
    meta = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(node, counting)}


def job(name: str, node: str | None, counting: Json, count: int = 1, **more: object) -> Json:
    """No retry at all: a Job that lost its pod for a moment would fail."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(node, counting, restartPolicy="Never")}
    spec = {"completions": count, "parallelism": count, "backoffLimit": 0, "template": template, **more}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def replica_set(name: str, node: str | None, counting: Json) -> Json:
    """Opted in to being moved."""
    meta = {"labels": {"app": name}, "annotations": {"htas.io/migrate": "true"}}
    template = {"metadata": meta, "spec": pod_spec(node, counting)}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def counts(cluster: Cluster, pod: str) -> list[Count]:
    """All that a pod has counted, in order. A restored pod's log begins with what its source had counted."""
    try:
        log = cluster.api.get(f"{CORE}/namespaces/default/pods/{pod}/log").decode()
    except HTASError:  # its container is being created
        return []
    found = []
    for line in log.splitlines():
        parts = line.split()
        if len(parts) == 3:
            found.append(Count(float(parts[0]), parts[1], int(parts[2])))
    return found


def last(cluster: Cluster, pod: str) -> Count:
    """The last count of a pod, once there is one."""
    return eventually(lambda: counts(cluster, pod)[-1:], 60, f"{pod} counts")[0]


def goes_on(cluster: Cluster, pod: str) -> bool:
    """Whether a pod counts now."""
    before = last(cluster, pod).number
    eventually(lambda: last(cluster, pod).number > before, 15, f"{pod} counts on from {before}")
    return True


def longest_pause(told: Sequence[Count]) -> float:
    """Seconds between two counts, at most. In a restored pod's log that is from its dump to its restore."""
    return max((b.at - a.at for a, b in pairwise(told)), default=0.0)


def pods_of(cluster: Cluster, app: str) -> list[Json]:
    """Those that are not on their way out."""
    found = cluster.pods(labelSelector=f"app={app}")
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def job_status(cluster: Cluster, name: str) -> Json:
    found = [each for each in cluster.items(f"{BATCH}/namespaces/default/jobs") if each["metadata"]["name"] == name]
    status: Json = found[0]["status"]
    return status


def pod(cluster: Cluster, name: str) -> Json:
    found = [each for each in cluster.items(f"{CORE}/namespaces/default/pods") if each["metadata"]["name"] == name]
    return found[0] if found else {}
