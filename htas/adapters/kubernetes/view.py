"""The view of a cluster, built from raw objects of any kind and order. What cannot be understood is a Problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from htas.adapters.kubernetes import pods, selectors, wire
from htas.adapters.kubernetes.errors import ObjectError
from htas.adapters.kubernetes.pods import epoch
from htas.adapters.kubernetes.requests import resources
from htas.model.budgets import DisruptionBudget
from htas.model.constraints import NodeSelectorTerm
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView, Problem
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes

KINDS: dict[str, type[Any]] = {
    "Node": wire.Node,
    "Pod": wire.Pod,
    "PodDisruptionBudget": wire.Budget,
    "PriorityClass": wire.PriorityClass,
    "Namespace": wire.Namespace,
    "ReplicaSet": wire.Controller,
    "ReplicationController": wire.Controller,
    "StatefulSet": wire.Controller,
    "Job": wire.Controller,
    "PersistentVolume": wire.PersistentVolume,
    "PersistentVolumeClaim": wire.PersistentVolumeClaim,
    "StorageClass": wire.StorageClass,
    "CSINode": wire.CsiNode,
}
"""What HTAS reads. Other kinds (Lease, ConfigMap …) are passed over: they decide nothing here."""

CLUSTER_SCOPED = frozenset({"Node", "PriorityClass", "Namespace", "PersistentVolume", "StorageClass", "CSINode"})
CINDER_DRIVER = "cinder.csi.openstack.org"

_T = TypeVar("_T")


class ViewBuilder:
    """Collects raw JSON objects; `view` translates them once all are there, since pods refer to other kinds.

    `source` leads the place of every problem, as in "dump.json: ".
    """

    def __init__(self, source: str = "") -> None:
        self._source = source
        self._objects: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        self._problems: list[Problem] = []
        self._shared: dict[object, object] = {}
        self._names: set[str] = set()

    def add(self, raw: bytes | msgspec.Raw, where: str) -> None:
        """Take in one object; `where` tells its place should it have no name."""
        try:
            head = _decoded(raw, wire.Head)
        except msgspec.ValidationError as error:
            self._doubt(where, str(error))
            return
        kind = KINDS.get(head.kind)
        name = _name(head.kind, head.metadata)
        if not head.kind:
            self._doubt(f"{where}: kind", "missing")
        elif kind is None:
            return
        elif not head.metadata.name:
            self._doubt(f"{where} ({head.kind}, no name): metadata.name", "missing")
        elif name in self._names:
            self._doubt(name, f"{where} has this name too; the first one counts")
        else:
            self._names.add(name)
            try:
                self._objects[head.kind].append(_decoded(raw, kind))
            except msgspec.ValidationError as error:
                self._doubt(name, str(error))

    def view(self) -> ClusterView:
        """The view: sorted by name, so that the order of the objects does not matter."""
        nodes = self._each("Node", self._node)
        return ClusterView(
            nodes=tuple(sorted(nodes, key=lambda node: node.name)),
            pods=tuple(sorted(self._pods(), key=lambda pod: pod.key)),
            budgets=tuple(sorted(self._each("PodDisruptionBudget", _budget), key=lambda b: (b.namespace, b.name))),
            namespaces={
                raw.metadata.name: {"kubernetes.io/metadata.name": raw.metadata.name, **(raw.metadata.labels or {})}
                for raw in sorted(self._objects["Namespace"], key=lambda raw: raw.metadata.name)
            },
            volumes=Volumes(
                tuple(sorted(self._each("PersistentVolume", _volume), key=lambda volume: volume.name)),
                tuple(sorted(self._each("PersistentVolumeClaim", _claim), key=lambda claim: claim.key)),
                tuple(sorted(self._each("StorageClass", _storage_class), key=lambda storage: storage.name)),
            ),
            problems=tuple(sorted(self._problems, key=lambda problem: (problem.where, problem.what))),
        )

    def _each(self, kind: str, translate: Callable[[Any], _T]) -> list[_T]:
        done = []
        for raw in self._objects[kind]:
            try:
                done.append(translate(raw))
            except ObjectError as error:
                self._problem(kind, raw.metadata, error)
        return done

    def _problem(self, kind: str, meta: wire.Metadata, error: ObjectError) -> None:
        self._doubt(f"{_name(kind, meta)}: {error.path}", error.what)

    def _doubt(self, where: str, what: str) -> None:
        self._problems.append(Problem(self._source + where, what))

    def _node(self, raw: wire.Node) -> Node:
        limits = next(
            (csi.spec.drivers or [] for csi in self._objects["CSINode"] if csi.metadata.name == raw.metadata.name), []
        )
        offered = raw.status.allocatable if raw.status.allocatable is not None else raw.status.capacity
        return Node(
            name=raw.metadata.name,
            allocatable=resources(offered, "status.allocatable"),
            uid=raw.metadata.uid,
            labels=raw.metadata.labels or {},
            annotations=raw.metadata.annotations or {},
            taints=tuple(selectors.taint(t, f"spec.taints[{i}]") for i, t in enumerate(raw.spec.taints or ())),
            is_unschedulable=raw.spec.unschedulable,
            is_ready=any(c.type == "Ready" and c.status == "True" for c in raw.status.conditions or ()),
            provider_id=raw.spec.provider_id,
            created_at=epoch(raw.metadata.creation_timestamp) or 0.0,
            attach_limits=tuple(
                sorted(
                    (driver.name, driver.allocatable.count)
                    for driver in limits
                    if driver.allocatable is not None and driver.allocatable.count is not None
                )
            ),
        )

    def _pods(self) -> list[Pod]:
        priorities = {raw.metadata.name: raw.value for raw in self._objects["PriorityClass"]}
        default = next((raw.value for raw in self._objects["PriorityClass"] if raw.global_default), 0)
        replicas = {
            (kind, raw.metadata.namespace, raw.metadata.name): raw.spec.replicas
            for kind in ("ReplicaSet", "ReplicationController", "StatefulSet")
            for raw in self._objects[kind]
            if raw.spec.replicas is not None
        }
        deadlines = {
            (raw.metadata.namespace, raw.metadata.name): raw.spec.active_deadline_seconds
            for raw in self._objects["Job"]
            if raw.spec.active_deadline_seconds is not None
        }
        done: list[Pod] = []
        for raw in self._objects["Pod"]:
            try:
                pod, doubts = pods.translate(raw, priorities, default, replicas, deadlines)
            except ObjectError as error:
                self._problem("Pod", raw.metadata, error)
                continue
            for doubt in doubts:
                self._problem("Pod", raw.metadata, doubt)
            if pod is not None:
                done.append(
                    msgspec.structs.replace(
                        pod, constraints=self._share(pod.constraints), requests=self._share(pod.requests)
                    )
                )
        return done

    def _share(self, value: _T) -> _T:
        """One object for equal ones: the pods of a template share their requests and constraints."""
        return self._shared.setdefault(value, value)  # type: ignore[return-value]  # the value stored is of its key's type


def _decoded(raw: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    """An object of a kind. A null stands for a field that is not there, as the API server takes it."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _name(kind: str, meta: wire.Metadata) -> str:
    name = meta.name if kind in CLUSTER_SCOPED else f"{meta.namespace or 'default'}/{meta.name}"
    return f"{kind} {name}"


def _budget(raw: wire.Budget) -> DisruptionBudget:
    return DisruptionBudget(
        raw.metadata.namespace or "default",
        raw.metadata.name,
        selectors.selector(raw.spec.selector, "spec.selector"),
        raw.status.disruptions_allowed,
    )


def _volume(raw: wire.PersistentVolume) -> PersistentVolume:
    affinity = raw.spec.node_affinity
    required = affinity.required if affinity is not None else None
    driver = raw.spec.csi.driver if raw.spec.csi is not None else None
    return PersistentVolume(
        raw.metadata.name,
        raw.metadata.labels or {},
        selectors.node_terms(required, "spec.nodeAffinity.required") if required is not None else None,
        CINDER_DRIVER if driver is None and raw.spec.cinder is not None else driver,
    )


def _claim(raw: wire.PersistentVolumeClaim) -> VolumeClaim:
    return VolumeClaim(
        raw.metadata.namespace or "default",
        raw.metadata.name,
        raw.spec.volume_name or None,
        raw.spec.storage_class_name,
        tuple(raw.spec.access_modes or ()),
    )


def _storage_class(raw: wire.StorageClass) -> StorageClass:
    return StorageClass(
        raw.metadata.name,
        raw.provisioner,
        raw.volume_binding_mode == "WaitForFirstConsumer",
        tuple(
            NodeSelectorTerm(selectors.requirements(term.match_label_expressions, f"allowedTopologies[{i}]"))
            for i, term in enumerate(raw.allowed_topologies or ())
        ),
    )
