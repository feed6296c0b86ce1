"""The kinds HTAS reads, and where the API server lists them."""

from __future__ import annotations

from typing import Any

import msgspec

from htas.adapters.kubernetes import wire, wire_storage


class Resource(msgspec.Struct, frozen=True):
    """A kind, its API group and version, the plural of its address, and the fields that are decoded of it."""

    kind: str
    group: str
    version: str
    plural: str
    form: type[Any]
    is_namespaced: bool = True

    @property
    def path(self) -> str:
        """Where all of them are listed, in every namespace."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.plural}"


RESOURCES = (
    Resource("Namespace", "", "v1", "namespaces", wire.Namespace, is_namespaced=False),
    Resource("CSINode", "storage.k8s.io", "v1", "csinodes", wire_storage.CsiNode, is_namespaced=False),
    Resource("Node", "", "v1", "nodes", wire.Node, is_namespaced=False),
    Resource("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", wire.PriorityClass, is_namespaced=False),
    Resource("StorageClass", "storage.k8s.io", "v1", "storageclasses", wire_storage.StorageClass, is_namespaced=False),
    Resource("PersistentVolume", "", "v1", "persistentvolumes", wire_storage.PersistentVolume, is_namespaced=False),
    Resource("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", wire_storage.PersistentVolumeClaim),
    Resource("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", wire.Budget),
    Resource("ReplicationController", "", "v1", "replicationcontrollers", wire.Controller),
    Resource("ReplicaSet", "apps", "v1", "replicasets", wire.Controller),
    Resource("StatefulSet", "apps", "v1", "statefulsets", wire.Controller),
    Resource("DaemonSet", "apps", "v1", "daemonsets", wire.DaemonSet),
    Resource("Job", "batch", "v1", "jobs", wire.Controller),
    Resource("Pod", "", "v1", "pods", wire.Pod),
)
"""In the order in which they are best told: what pods refer to comes before the pods.

Finished pods are listed too, though they hold nothing: with kube-scheduler's selector (status.phase!=Succeeded …) a pod
that ends would be told as deleted, with its last words from before its end, and nobody could say how long it ran.
"""
