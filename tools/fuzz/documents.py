"""Whole documents that are then spoiled: objects of every kind HTAS reads, with nearly every field it knows."""

from __future__ import annotations

from typing import Any

import yaml

from htas.config.places import config_file

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
BORN = "2026-01-05T08:00:00Z"


def _named(version: str, kind: str, name: str, meta: Json | None = None, **fields: Any) -> Json:
    of = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", "creationTimestamp": BORN, **(meta or {})}
    return {"apiVersion": version, "kind": kind, "metadata": of, **fields}


def _node(name: str, zone: str) -> Json:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BORN}
    return _named(
        "v1",
        "Node",
        name,
        {"labels": {HOST: name, ZONE: zone, "node.kubernetes.io/instance-type": "m1.large"}},
        spec={
            "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
            "providerID": f"openstack:///{name}",
        },
        status={
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "3900m", "memory": "15Gi", "pods": "110", "nvidia.com/gpu": "1"},
            "conditions": [ready],
            "images": [{"names": ["x@sha256:00", "x:1"], "sizeBytes": 1000}],
            "volumesAttached": [{"name": "kubernetes.io/csi/cinder^v1", "devicePath": ""}],
        },
    )


def _rich_pod(name: str) -> Json:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}
    term = {"topologyKey": ZONE, "labelSelector": selector, "namespaceSelector": {}, "namespaces": ["default"]}
    wanted = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["z9"]}]}
    return _named(
        "v1",
        "Pod",
        name,
        {
            "labels": {"app": "web", "tier": "a", "htas.io/workload": "service"},
            "annotations": {"htas.io/runtime": "5m", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "ReplicaSet-web",
                    "controller": True,
                }
            ],
        },
        spec={
            "schedulerName": "htas",
            "priority": 10,
            "priorityClassName": "high",
            "preemptionPolicy": "PreemptLowerPriority",
            "terminationGracePeriodSeconds": 30,
            "activeDeadlineSeconds": 600,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "overhead": {"cpu": "10m"},
            "containers": [
                {
                    "name": "c",
                    "image": "x:1",
                    "resources": {"requests": {"cpu": "250m", "memory": "256Mi", "nvidia.com/gpu": "1"}, "limits": {}},
                    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
                }
            ],
            "initContainers": [
                {"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            ],
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": wanted}],
                },
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": HOST,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                    "minDomains": 2,
                    "matchLabelKeys": ["tier"],
                    "nodeAffinityPolicy": "Honor",
                    "nodeTaintsPolicy": "Ignore",
                }
            ],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "e", "emptyDir": {}}],
        },
        status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "x"}]},
    )


def _plain_pod(name: str, where: str | None = None) -> Json:
    requests = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    made = _named(
        "v1", "Pod", name, spec={"schedulerName": "htas", "containers": [{"name": "c", "resources": requests}]}
    )
    made["status"] = {"phase": "Pending"}
    if where is not None:
        made["spec"]["nodeName"] = where
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": BORN}
        made["status"] = {"phase": "Running", "startTime": BORN, "conditions": [ready]}
    return made


def objects() -> list[Json]:
    """A small cluster with something of each kind."""
    template = {"metadata": {"labels": {"app": "logs"}}, "spec": {"containers": [{"name": "c"}]}}
    on_z1 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]}
    return [
        _named("v1", "Namespace", "default", {"labels": {"team": "a"}}),
        _node("n1", "z1"),
        _node("n2", "z2"),
        _rich_pod("rich"),
        _plain_pod("waits"),
        _plain_pod("runs", "n1"),
        _named("scheduling.k8s.io/v1", "PriorityClass", "high", value=10, globalDefault=False),
        _named(
            "storage.k8s.io/v1", "StorageClass", "fast", provisioner="cinder", volumeBindingMode="WaitForFirstConsumer"
        ),
        _named("v1", "PersistentVolume", "pv", spec={"nodeAffinity": {"required": on_z1}, "csi": {"driver": "cinder"}}),
        _named("v1", "PersistentVolumeClaim", "data", spec={"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}),
        _named(
            "storage.k8s.io/v1", "CSINode", "n1", spec={"drivers": [{"name": "cinder", "allocatable": {"count": 5}}]}
        ),
        _named(
            "policy/v1",
            "PodDisruptionBudget",
            "web",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            status={"disruptionsAllowed": 1, "observedGeneration": 1},
        ),
        _named("v1", "ReplicationController", "old", spec={"replicas": 1}),
        _named("apps/v1", "ReplicaSet", "web", spec={"replicas": 3}, status={"replicas": 3}),
        _named("apps/v1", "StatefulSet", "db", spec={"replicas": 1}),
        _named("apps/v1", "DaemonSet", "logs", spec={"template": template}),
        _named("batch/v1", "Job", "train", spec={"parallelism": 2, "activeDeadlineSeconds": 600}),
    ]


def configuration() -> Json:
    """The configuration that comes with HTAS, its prices written into it."""
    whole: Json = yaml.safe_load(config_file("htas.yaml").read_text())
    return whole | {"flavours": prices()}


def prices() -> Json:
    """The price file that comes with HTAS."""
    read: Json = yaml.safe_load(config_file("flavours/nectar.yaml").read_text())
    return read
