"""The view that a dump gives (the live one: live.py). What cannot be understood is a Problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from htas.adapters.kubernetes import daemon_sets, objects, pods, unread, wire, wire_storage
from htas.adapters.kubernetes.errors import UNREADABLE, Fault, Faults, decoding_fault, title
from htas.adapters.kubernetes.instants import NEVER, Instant, newest
from htas.adapters.kubernetes.pods import Surroundings, namespace
from htas.adapters.kubernetes.requests import amounts
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView, Problem
from htas.model.volumes import Volumes

KINDS: dict[str, tuple[str, type[Any]]] = {
    "Node": ("", wire.Node),
    "Pod": ("", wire.Pod),
    "Namespace": ("", wire.Namespace),
    "PersistentVolume": ("", wire_storage.PersistentVolume),
    "PersistentVolumeClaim": ("", wire_storage.PersistentVolumeClaim),
    "ReplicationController": ("", wire.Controller),
    "ReplicaSet": ("apps", wire.Controller),
    "StatefulSet": ("apps", wire.Controller),
    "DaemonSet": ("apps", wire.DaemonSet),
    "Job": ("batch", wire.Controller),
    "PodDisruptionBudget": ("policy", wire.Budget),
    "PriorityClass": ("scheduling.k8s.io", wire.PriorityClass),
    "StorageClass": ("storage.k8s.io", wire_storage.StorageClass),
    "CSINode": ("storage.k8s.io", wire_storage.CsiNode),
}
"""What HTAS reads, with its API group. Other kinds (Lease, ConfigMap …) tell only when the dump was taken, and so do
kinds of the same name in other groups, such as Longhorn's Node."""

CLUSTER_SCOPED = frozenset({"Node", "PriorityClass", "Namespace", "PersistentVolume", "StorageClass", "CSINode"})

_T = TypeVar("_T")


class ViewBuilder:
    """Collects raw JSON objects; `view` translates them once all are there, since pods refer to other kinds.

    Of objects with one name the first counts, and the others are told. `source` leads the place of every problem, as
    in "dump.json: ".
    """

    def __init__(self, source: str = "") -> None:
        self.newest: Instant = NEVER
        self.kinds: set[str] = set()
        """Those that HTAS reads and the dump holds, be it as an empty list of that kind."""
        self.has_empty_list = False
        """Whether a List of no kind in particular has no items."""
        self._others: set[str] = set()
        self._source = source
        self._objects: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in KINDS}
        self._names: set[str] = set()
        self._malformed: list[Problem] = []
        self._doubles: list[tuple[str, str]] = []
        """Objects that were there already: what they are and where they stand."""
        self._undecoded: dict[tuple[str, str], str] = {}
        """The nodes of pods that could not be decoded."""
        self._shared: dict[object, Any] = {}

    def add(self, raw: bytes | msgspec.Raw, where: str, kind: str = "") -> None:
        """Take in one object, or all of a List; `where` tells its place should it have no name.

        `kind` is meant where the object states none, as the items of a PodList do.
        """
        try:
            head = msgspec.json.decode(raw, type=wire.Head)
        except UNREADABLE as error:
            self._malformed.append(self._told(where, decoding_fault(error)))
            return
        stated = head.kind or kind
        if stated.endswith("List") and _is_stated(head.items):
            self._add_items(head.items, where, stated.removesuffix("List"))
        elif not stated:
            self._malformed.append(self._told(f"{where}: kind" if where else "kind", "missing"))
        else:
            self._date(raw, head, stated)
            if stated in KINDS and _group(head.api_version) in (None, KINDS[stated][0]):
                self.kinds.add(stated)
                self._add_known(raw, head, stated, where)
            else:
                self._others.add(stated)

    def _date(self, raw: bytes | msgspec.Raw, head: wire.Head, kind: str) -> None:
        at = newest(raw)
        if at >= self.newest.at and at > 0:
            self.newest = max(self.newest, Instant(at, title(kind, _named(head))))

    def _add_items(self, items: msgspec.Raw, where: str, kind: str) -> None:
        if kind in KINDS:
            self.kinds.add(kind)
        place = f"{where}: items" if where else "items"
        try:
            listed = msgspec.json.decode(items, type=list[msgspec.Raw])
        except UNREADABLE as error:
            self._malformed.append(self._told(place, decoding_fault(error)))
            return
        self.has_empty_list |= not kind and not listed
        nulls = [i for i, item in enumerate(listed) if not _is_stated(item)]
        if nulls:
            more = f", and {len(nulls) - 1} more are null" if len(nulls) > 1 else ""
            told = self._told(f"{place}[{nulls[0]}]", f"null is no object{more}; passed over")
            self._malformed.append(msgspec.structs.replace(told, is_doubt=True))
        for i, item in enumerate(listed):
            if _is_stated(item):
                self.add(item, f"{place}[{i}]", kind)

    def _add_known(self, raw: bytes | msgspec.Raw, head: wire.Head, kind: str, where: str) -> None:
        nameless = f"{where} ({kind}, no name): metadata"
        try:
            identity = wire.decode(head.metadata if _is_stated(head.metadata) else b"{}", wire.Identity)
        except UNREADABLE as error:
            self._malformed.append(self._told(nameless, decoding_fault(error)))
            return
        if not identity.name:
            self._malformed.append(self._told(f"{nameless}.name", "missing"))
            return
        key = ("" if kind in CLUSTER_SCOPED else identity.namespace or "default", identity.name)
        named = title(kind, key)
        if named in self._names:
            self._doubles.append((named, where))
            return
        self._names.add(named)
        try:
            self._objects[kind][key] = wire.decode(raw, KINDS[kind][1])
        except UNREADABLE as error:
            self._malformed.append(self._told(named, decoding_fault(error)))
            if kind == "Pod" and (node := unread.node_of(raw)) is not None:
                self._undecoded[key] = node

    def view(self) -> ClusterView:
        """The view: sorted by name, so that the order of the objects does not matter."""
        problems = [*self._malformed, *self._told_doubles()]
        left_out = self._undecoded.copy()
        storage = {raw.metadata.name: objects.node_storage(raw) for raw in self._of("CSINode")}
        return ClusterView(
            nodes=self._nodes(storage, problems),
            pods=self._pods(problems, left_out),
            unread=unread.by_node(left_out),
            daemons=self._daemons(problems) if self._objects[daemon_sets.KIND] else None,
            budgets=self._each("PodDisruptionBudget", objects.budget, problems),
            namespaces={raw.metadata.name: objects.namespace_labels(raw) for raw in self._of("Namespace")},
            volumes=Volumes(
                self._each("PersistentVolume", objects.volume, problems),
                self._each("PersistentVolumeClaim", lambda raw, _: objects.claim(raw), problems),
                self._each("StorageClass", lambda raw, _: objects.storage_class(raw), problems),
            ),
            problems=tuple(sorted(problems, key=lambda problem: (problem.where, problem.what))),
        )

    def _told_doubles(self) -> list[Problem]:
        """One line, though a dump that was appended to twice has hundreds."""
        if not self._doubles:
            return []
        (named, where), more = self._doubles[0], len(self._doubles) - 1
        others = f", and {more} more objects are there twice" if more else ""
        told = self._told(named, f"{where} has this name too{others}; the first of a name counts")
        return [msgspec.structs.replace(told, is_doubt=True)]

    def ended(self) -> dict[str, str]:
        """The phases of pods that have ended, by namespace/name."""
        return {
            f"{namespace(raw.metadata)}/{raw.metadata.name}": raw.status.phase
            for raw in self._of("Pod")
            if raw.status.phase in (Phase.SUCCEEDED, Phase.FAILED)
        }

    def capacities(self) -> dict[str, Resources]:
        """What the machines have, by node, where it is stated and can be understood."""
        found = {}
        for raw in self._of("Node"):
            faults: Faults = []
            stated = amounts(raw.status.capacity, "status.capacity", faults)
            if raw.status.capacity and not faults:
                found[raw.metadata.name] = Resources.of(stated)
        return found

    @property
    def other_kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self._others))

    def _of(self, kind: str) -> Iterable[Any]:
        return (raw for _, raw in sorted(self._objects[kind].items(), key=lambda item: "/".join(item[0])))

    def _each(self, kind: str, translate: Callable[[Any, Faults], _T], problems: list[Problem]) -> tuple[_T, ...]:
        """All of a kind that can be understood, in order of their names."""
        done = []
        for raw in self._of(kind):
            faults: Faults = []
            made = translate(raw, faults)
            if faults:
                problems += self._faults(kind, raw.metadata, faults)
            else:
                done.append(made)
        return tuple(done)

    def _nodes(self, storage: Mapping[str, objects.NodeStorage], problems: list[Problem]) -> tuple[Node, ...]:
        for raw in self._of("Node"):
            problems += self._doubts("Node", raw.metadata, objects.tier_doubts(raw))
        return self._each("Node", lambda raw, faults: objects.node(raw, storage, faults), problems)

    def _pods(self, problems: list[Problem], left_out: dict[tuple[str, str], str]) -> tuple[Pod, ...]:
        """Those that run or wait; `left_out` is told of those with faults."""
        around = self._surroundings()
        doubts: Faults = []

        def translate(raw: wire.Pod, faults: Faults) -> Pod | None:
            doubts.clear()
            pod = pods.translate(raw, around, faults, doubts)
            problems.extend(self._doubts("Pod", raw.metadata, doubts))
            if faults and (node := unread.node_of_faulty(raw)) is not None:
                left_out[namespace(raw.metadata), raw.metadata.name] = node
            return pod

        return tuple(self._sharing(pod) for pod in self._each("Pod", translate, problems) if pod is not None)

    def _daemon_sets(self) -> dict[tuple[str, str], str] | None:
        found = {(namespace(raw.metadata), raw.metadata.name): raw.metadata.uid for raw in self._of(daemon_sets.KIND)}
        return found or None

    def _daemons(self, problems: list[Problem]) -> tuple[Pod, ...]:
        around = self._surroundings()

        def translate(raw: wire.DaemonSet, faults: Faults) -> Pod | None:
            return pods.translate(daemon_sets.pod_of(raw), around, faults, [])

        return tuple(pod for pod in self._each(daemon_sets.KIND, translate, problems) if pod is not None)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            **pods.priorities_of(list(self._of("PriorityClass"))),
            replicas={
                (kind, namespace(raw.metadata), raw.metadata.name): objects.replicas(kind, raw)
                for kind in ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
                for raw in self._of(kind)
            },
            deadlines_s={
                (namespace(raw.metadata), raw.metadata.name): raw.spec.active_deadline_seconds
                for raw in self._of("Job")
                if raw.spec.active_deadline_seconds is not None
            },
            daemon_sets=self._daemon_sets(),
        )

    def _sharing(self, pod: Pod) -> Pod:
        """One object for equal ones: the pods of a template share their requests and constraints."""
        return msgspec.structs.replace(
            pod,
            constraints=self._shared.setdefault(pod.constraints, pod.constraints),
            requests=self._shared.setdefault(pod.requests, pod.requests),
        )

    def _faults(self, kind: str, meta: wire.Metadata, faults: Iterable[Fault]) -> list[Problem]:
        named = title(kind, ("" if kind in CLUSTER_SCOPED else namespace(meta), meta.name))
        return [self._told(f"{named}: {fault.path}", fault.what) for fault in faults]

    def _doubts(self, kind: str, meta: wire.Metadata, doubts: Iterable[Fault]) -> list[Problem]:
        return [msgspec.structs.replace(told, is_doubt=True) for told in self._faults(kind, meta, doubts)]

    def _told(self, where: str, what: str) -> Problem:
        return Problem(self._source + where, what)


def _named(head: wire.Head) -> tuple[str, str]:
    """Namespace and name, as far as they can be read."""
    try:
        identity = msgspec.json.decode(head.metadata, type=wire.Identity)
    except UNREADABLE:
        return "", ""
    return identity.namespace, identity.name


def _group(api_version: str) -> str | None:
    """The group of `apps/v1` is apps, that of `v1` the core's, which is empty; None: none is stated."""
    return api_version.rpartition("/")[0] if api_version else None


def _is_stated(part: msgspec.Raw) -> bool:
    """Looks at a view: a List's items may be hundreds of megabytes."""
    return bytes(memoryview(part)[:4]) not in (b"", b"null")
