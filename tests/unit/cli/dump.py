"""A dump with every kind of object HTAS reads, and some it does not."""

from __future__ import annotations

from typing import Any

ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: str, memory: str, zone: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, ZONE: zone, **labels}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str = "100m", memory: str = "128Mi", **more: Any) -> dict[str, Any]:
    spec = {"schedulerName": "htas", **more.pop("spec", {})}
    spec.setdefault("containers", [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}])
    meta = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-05T08:00:00Z", **more.pop("meta", {})}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending", **more.pop("status", {})}}


def job_pod(name: str) -> dict[str, Any]:
    owner = {"kind": "Job", "name": "batch", "controller": True}
    return pod(name, "1", "3Gi", meta={"ownerReferences": [owner], "annotations": {"htas.io/runtime": "5m"}})


def running(name: str, where: str, **more: Any) -> dict[str, Any]:
    made = pod(name, "500m", "1Gi", **more)
    made["spec"]["nodeName"] = where
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-05T08:00:05Z"}
    made["status"] = {"phase": "Running", "startTime": "2026-01-05T08:00:05Z", "conditions": [ready]}
    return made


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def everything() -> list[dict[str, Any]]:
    near_web = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    zone_1 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]}
    return [
        node("fixed-1", "2", "4Gi", "z1"),
        node("fixed-2", "2", "4Gi", "z2"),
        running("web-1", "fixed-1", meta={"labels": {"app": "web"}}),
        pod("near-web", spec={"affinity": near_web}),
        pod("volume-user", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
        pod(
            "foreign",
            "1800m",
            "3500Mi",
            spec={"schedulerName": "default-scheduler"},
            status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        ),
        pod("gated", spec={"schedulingGates": [{"name": "wait"}]}),
        pod("dra", spec={"resourceClaims": [{"name": "gpu"}]}),
        pod("huge", "64", "1Gi"),
        job_pod("batch-1"),
        job_pod("batch-2"),
        named("Job", "batch", spec={"activeDeadlineSeconds": 600}),
        named("ReplicaSet", "web", spec={"replicas": 1}),
        named(
            "PodDisruptionBudget",
            "web",
            spec={"selector": {"matchLabels": {"app": "web"}}},
            status={"disruptionsAllowed": 0},
        ),
        named("PriorityClass", "high", value=1000),
        named("Namespace", "default"),
        named("PersistentVolume", "pv", spec={"nodeAffinity": {"required": zone_1}, "csi": {"driver": "cinder"}}),
        named("PersistentVolumeClaim", "data", spec={"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}),
        named("StorageClass", "fast", provisioner="cinder", volumeBindingMode="WaitForFirstConsumer"),
        named("CSINode", "fixed-1", spec={"drivers": [{"name": "cinder", "allocatable": {"count": 5}}]}),
        named("Lease", "passed-over", spec={}),
        named("ConfigMap", "passed-over-too", data={"a": "b"}),
    ]
