"""Kubernetes objects of the sample, with the fields that kubectl prints and HTAS or its readers look at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]

NOW = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)
"""When the sample was taken: the newest heartbeat in it."""
ZONES = ("az-1", "az-2")
CINDER = "cinder.csi.openstack.org"
CINDER_ZONE = "topology.cinder.csi.openstack.org/zone"
TYPE = "node.kubernetes.io/instance-type"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
SIZES = {"m3.small": (2, 4), "m1.medium": (2, 8), "m1.large": (4, 16), "m1.xlarge": (8, 32)}
"""Flavours of config/flavours/nectar.yaml: cores and GiB."""


def instant(ago: timedelta = timedelta()) -> str:
    return (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")


def made(kind: str, version: str, name: str, namespace: str = "", age_days: float = 60, **fields: Any) -> Object:
    meta: Object = {"name": name, "creationTimestamp": instant(timedelta(days=age_days)), "uid": f"{kind}-{name}"}
    if namespace:
        meta["namespace"] = namespace
    meta |= fields.pop("meta", {})
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def node(name: str, flavour: str, zone: str, *, is_control_plane: bool = False) -> Object:
    """A machine of kubeadm's: its kernel and firmware keep 3 % of the memory, the kubelet 100 Mi more."""
    cores, gib = SIZES[flavour]
    memory_ki = int(gib * 2**20 * 0.97)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        TYPE: flavour,
        "topology.kubernetes.io/zone": zone,
        CINDER_ZONE: zone,
    }
    spec: Object = {"providerID": f"openstack:///{name}"}
    if is_control_plane:
        labels[CONTROL_PLANE] = ""
        spec["taints"] = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]
    since, beat = instant(timedelta(days=60)), instant(timedelta(seconds=sum(name.encode()) % 300))
    common = {"ephemeral-storage": "81106868Ki", "pods": "110", "cpu": str(cores)}
    return made(
        "Node",
        "v1",
        name,
        meta={"labels": labels},
        spec=spec,
        status={
            "capacity": {**common, "memory": f"{memory_ki}Ki"},
            "allocatable": {**common, "memory": f"{memory_ki - 102400}Ki"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": beat, "lastTransitionTime": since},
                {"type": "Ready", "status": "True", "lastHeartbeatTime": beat, "lastTransitionTime": since},
            ],
            "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.34.1"},
        },
    )


def beside_node(name: str) -> list[Object]:
    """What a kubelet and the Cinder driver write beside a node: its lease, and how many volumes it attaches."""
    driver = {"name": CINDER, "nodeID": name, "topologyKeys": [CINDER_ZONE], "allocatable": {"count": 25}}
    renewed = instant(timedelta(seconds=sum(name.encode()) % 10)).replace("Z", ".000000Z")
    return [
        made("CSINode", "storage.k8s.io/v1", name, spec={"drivers": [driver]}),
        made(
            "Lease",
            "coordination.k8s.io/v1",
            name,
            "kube-node-lease",
            spec={"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
        ),
    ]


def volume(claim: str, namespace: str, zone: str, gib: int) -> list[Object]:
    """A claim and the Cinder volume behind it, which machines of its zone alone attach."""
    name = f"pvc-{namespace}-{claim}"
    term = {"matchExpressions": [{"key": CINDER_ZONE, "operator": "In", "values": [zone]}]}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "csi-cinder"}
    return [
        made(
            "PersistentVolume",
            "v1",
            name,
            spec={
                **common,
                "capacity": {"storage": f"{gib}Gi"},
                "claimRef": {"namespace": namespace, "name": claim},
                "csi": {"driver": CINDER, "volumeHandle": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            status={"phase": "Bound"},
        ),
        made("PersistentVolumeClaim", "v1", claim, namespace, spec={**common, "volumeName": name}),
    ]


def budget(name: str, namespace: str, labels: dict[str, str], allowed: int) -> Object:
    return made(
        "PodDisruptionBudget",
        "policy/v1",
        name,
        namespace,
        spec={"minAvailable": 1, "selector": {"matchLabels": labels}},
        status={"disruptionsAllowed": allowed},
    )
