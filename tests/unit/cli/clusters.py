"""Clusters that HTAS has not bought, as kubectl prints them."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.dump import named, node, running

TYPE = "node.kubernetes.io/instance-type"


def machine(name: str, flavour: str, cpu: str, memory: str, zone: str = "z1", **labels: str) -> dict[str, Any]:
    return node(name, cpu, memory, zone, **{TYPE: flavour, "kubernetes.io/os": "linux", **labels})


def control_plane(name: str, zone: str = "z1") -> dict[str, Any]:
    role = "node-role.kubernetes.io/control-plane"
    made = machine(name, "small", "2", "4Gi", zone, **{role: ""})
    made["spec"]["taints"] = [{"key": role, "effect": "NoSchedule"}]
    return made


def placed(name: str, where: str, cpu: str, memory: str, owner: str = "ReplicaSet/web", **meta: Any) -> dict[str, Any]:
    """A running pod of kube-scheduler's; an owner of "" is none."""
    kind, _, of = owner.partition("/")
    if owner:
        meta["ownerReferences"] = [{"kind": kind, "name": of, "controller": True}]
    made = running(name, where, meta=meta)
    made["spec"]["schedulerName"] = "default-scheduler"
    made["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    return made


def apart(name: str, where: str, cpu: str, memory: str) -> dict[str, Any]:
    """A pod of a database whose pods keep each other away from their nodes."""
    made = placed(name, where, cpu, memory, "StatefulSet/db", labels={"app": "db"})
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


def three_large_nodes(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """Three nodes of 4 cores and 8 GiB, each with one pod of 1 core and 2 GiB: 3 cores and 6 GiB of work."""
    nodes = [machine(name, "large", "4", "8Gi") for name in ("a", "b", "c")]
    return [*nodes, *(placed(f"web-{name}", name, "1", "2Gi") for name in ("a", "b", "c")), *more]


TWO_FLAVOURS = """
currency: EUR
flavours:
  - {name: small, cpu: 2, memory: 4Gi, pricePerHour: "0.15"}
  - {name: large, cpu: 4, memory: 8Gi, pricePerHour: "0.40"}
"""


def a_shop() -> list[dict[str, Any]]:
    """A cluster as they grow: two zones, a control plane, machines of three sizes half full, and pods of every kind."""
    objects = [control_plane(f"master-{i}", f"z{i % 2 + 1}") for i in range(3)]
    for item in objects:
        item["metadata"]["labels"][TYPE] = "m3.small"
    sizes = {"m1.xlarge": ("7900m", "30Gi", 6), "m1.large": ("3900m", "15Gi", 8), "m1.medium": ("1900m", "7Gi", 6)}
    workers = [
        machine(f"{flavour[3:]}-{i}", flavour, cpu, memory, f"z{i % 2 + 1}")
        for flavour, (cpu, memory, count) in sizes.items()
        for i in range(count)
    ]
    workers.append(machine("old-0", "c9.retired", "16", "64Gi"))
    names = [item["metadata"]["name"] for item in workers]
    for i, name in enumerate(names):
        objects.append(placed(f"proxy-{i}", name, "100m", "128Mi", "DaemonSet/proxy", namespace="kube-system"))
        objects += [
            placed(f"web-{i}-{j}", name, "300m", "1Gi", f"ReplicaSet/web-{j}", labels={"app": f"web-{j}"})
            for j in range(1 + i % 3)
        ]
    for i in range(9):
        job = placed(f"job-{i}", names[2 * i], "500m", "1Gi", f"Job/job-{i}", annotations={"htas.io/runtime": "3h"})
        objects.append(job)
    objects += _awkward(names)
    return objects + workers


def _awkward(names: list[str]) -> list[dict[str, Any]]:
    """Pods that hold their nodes, each by another rule."""
    cache = placed("cache-0", names[1], "200m", "2Gi", "StatefulSet/cache")
    cache["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    pinned = placed("licence", names[8], "100m", "128Mi")
    pinned["spec"]["nodeSelector"] = {"example.com/dongle": "yes"}
    return [
        cache,
        pinned,
        placed("bare", names[3], "100m", "128Mi", ""),
        placed("dns", names[5], "100m", "128Mi", namespace="kube-system"),
        placed("ledger", names[10], "500m", "1Gi", annotations={"htas.io/do-not-disrupt": "true"}),
        placed("quorum-0", names[12], "200m", "512Mi", "StatefulSet/quorum", labels={"app": "quorum"}),
        placed("quorum-1", names[15], "200m", "512Mi", "StatefulSet/quorum", labels={"app": "quorum"}),
        named(
            "PodDisruptionBudget",
            "quorum",
            spec={"selector": {"matchLabels": {"app": "quorum"}}},
            status={"disruptionsAllowed": 0},
        ),
        named(
            "PodDisruptionBudget",
            "web-0",
            spec={"selector": {"matchLabels": {"app": "web-0"}}},
            status={"disruptionsAllowed": 1},
        ),
    ]
