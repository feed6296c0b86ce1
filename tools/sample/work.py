"""What the sample cluster runs, with requests as the charts of these projects have them, or people give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STATIC = {"etcd": 100, "kube-apiserver": 250, "kube-controller-manager": 200, "kube-scheduler": 100}
"""Of each control-plane node, in millicores."""


@dataclass(frozen=True, slots=True)
class Work:
    """Pods of one kind. `scratch` is a volume on the node's disk; `budgets` are (name, labels, disruptions allowed)."""

    namespace: str
    name: str
    kind: str
    replicas: int
    cpu_m: int
    memory_mi: int
    scratch: str = ""
    disk_gib: int = 0
    apart: bool = False
    on_control_plane_alone: bool = False
    version: str = "apps/v1"
    budgets: tuple[tuple[str, Mapping[str, str], int], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def _daemon(namespace: str, name: str, cpu_m: int, memory_mi: int, *, masters_alone: bool = False) -> Work:
    return Work(
        namespace, name, "DaemonSet", 0, cpu_m, memory_mi, scratch="hostPath", on_control_plane_alone=masters_alone
    )


def _postgres(namespace: str, name: str, cpu_m: int, memory_mi: int, disk_gib: int) -> Work:
    """Three instances of CloudNativePG, which keeps two budgets: none for the primary, one for its replicas."""
    app = {"app": name}
    budgets = ((f"{name}-primary", {**app, "role": "primary"}, 0), (name, {**app, "role": "replica"}, 1))
    return Work(
        namespace, name, "Cluster", 3, cpu_m, memory_mi, "emptyDir", disk_gib, True,
        version="postgresql.cnpg.io/v1", budgets=budgets,
    )  # fmt: skip


def _web(
    namespace: str, name: str, replicas: int, cpu_m: int, memory_mi: int, scratch: str = "", allowed: int | None = None
) -> Work:
    budgets = ((name, {"app": name}, allowed),) if allowed is not None else ()
    return Work(namespace, name, "ReplicaSet", replicas, cpu_m, memory_mi, scratch, budgets=budgets)


WORK: tuple[Work, ...] = (
    _daemon("kube-system", "kube-proxy", 0, 0),
    _daemon("kube-system", "calico-node", 250, 128),
    _daemon("kube-system", "csi-cinder-nodeplugin", 50, 64),
    _daemon("kube-system", "openstack-cloud-controller-manager", 200, 128, masters_alone=True),
    _daemon("monitoring", "node-exporter", 102, 180),
    _web("kube-system", "coredns", 2, 100, 70),
    _web("kube-system", "calico-kube-controllers", 1, 50, 64),
    _web("kube-system", "metrics-server", 1, 100, 200, "emptyDir"),
    _web("kube-system", "csi-cinder-controllerplugin", 1, 120, 256, "emptyDir"),
    _web("ingress-nginx", "ingress-nginx-controller", 3, 100, 90, allowed=2),
    _web("monitoring", "prometheus-operator", 1, 100, 100),
    _web("monitoring", "kube-state-metrics", 1, 20, 230),
    _web("monitoring", "grafana", 1, 100, 256, "emptyDir"),
    Work("monitoring", "prometheus-k8s", "StatefulSet", 2, 500, 4096, "emptyDir", 50, True,
         budgets=(("prometheus-k8s", {"app": "prometheus-k8s"}, 1),)),
    Work("monitoring", "alertmanager-main", "StatefulSet", 3, 20, 100, "emptyDir", 2, True,
         budgets=(("alertmanager-main", {"app": "alertmanager-main"}, 1),)),
    _web("cnpg-system", "cnpg-controller-manager", 1, 100, 200, "emptyDir"),
    _postgres("shop", "orders-db", 1000, 4096, 100),
    _postgres("billing", "ledger-db", 500, 2048, 40),
    _web("argo", "workflow-controller", 1, 100, 128),
    _web("argo", "argo-server", 1, 100, 128, "emptyDir"),
    Work("argo", "nightly-report-steps", "Workflow", 4, 500, 1024, "emptyDir", version="argoproj.io/v1alpha1"),
    _web("shop", "storefront", 6, 250, 512, allowed=2),
    _web("shop", "cart", 4, 200, 384, allowed=1),
    _web("shop", "search", 2, 500, 2048, "emptyDir"),
    _web("shop", "images", 3, 100, 256),
    Work("shop", "redis", "StatefulSet", 3, 100, 1024, "", 8, True, budgets=(("redis", {"app": "redis"}, 1),)),
    _web("billing", "invoices", 2, 250, 768),
    _web("billing", "payments", 1, 250, 512, allowed=0),
    Work("billing", "export-29120415", "Job", 2, 500, 1024, version="batch/v1"),
    Work("default", "netshoot", "Pod", 1, 10, 32, version="v1"),
)  # fmt: skip
