"""Manifests of work: what people would send to a cluster that HTAS schedules."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
RUNS = "pod-complete.stage.kwok.x-k8s.io/delay"


def job(
    name: str, runs: str, cpu: str = "500m", memory: str = "512Mi", count: int = 1, scheduler: str = "htas"
) -> Json:
    """A Job of `count` pods at once, each of which KWOK lets run so long."""
    annotations = {RUNS: runs, "htas.io/runtime": runs}
    template = {
        "metadata": {"annotations": annotations, "labels": {"job": name}},
        "spec": _spec(cpu, memory, scheduler),
    }
    template["spec"]["restartPolicy"] = "Never"
    spec = {"completions": count, "parallelism": count, "backoffLimit": 6, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def deployment(
    name: str, replicas: int = 1, cpu: str = "500m", memory: str = "512Mi", scheduler: str = "htas", **spec: Any
) -> Json:
    """One whose pods may be moved."""
    meta = {"labels": {"app": name}, "annotations": {"htas.io/migrate": "true"}}
    template = {"metadata": meta, "spec": _spec(cpu, memory, scheduler) | spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pod(name: str, cpu: str = "100m", memory: str = "64Mi", scheduler: str = "htas", **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": _spec(cpu, memory, scheduler),
    }


def budget(name: str, min_available: int | str) -> Json:
    """A disruption budget over the pods of the Deployment of that name."""
    spec = {"minAvailable": min_available, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def node(name: str, cpu: str = "4", memory: str = "8Gi", **labels: str) -> Json:
    """A node that KWOK keeps and HTAS did not buy."""
    room = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": room, "allocatable": room},
    }


def _spec(cpu: str, memory: str, scheduler: str) -> Json:
    requests = {"cpu": cpu, "memory": memory}
    return {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "example.com/none", "resources": {"requests": requests}}],
    }
