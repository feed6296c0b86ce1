"""The cluster as it is now, kept up to date object by object: a view costs in proportion to what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

import msgspec

from htas.adapters.kubernetes import daemon_sets, objects, pods, unread, wire, wire_storage
from htas.adapters.kubernetes.errors import UNREADABLE, Fault, Faults, decoding_fault, title
from htas.adapters.kubernetes.objects import NO_STORAGE, NodeStorage
from htas.adapters.kubernetes.pods import SYSTEM_PRIORITIES, PriorityClass, Surroundings
from htas.adapters.kubernetes.resources import RESOURCES, Resource
from htas.adapters.kubernetes.shelves import CONTROLLERS, Key, PodsByController, Sharing, Shelf
from htas.model.budgets import DisruptionBudget
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.snapshot import ENDED_KEPT, ClusterView, Ended, Problem
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes


class LiveView:
    """What the watches have told so far. Safe from several threads.

    `scheduler_name` tells which pods count as work that arrives (see `changes`).
    """

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name
        self._lock = RLock()
        self._changes = 0
        self.on_change: Callable[[], None] = lambda: None
        """Called after each of `changes`, by the thread that brought it."""
        self._view: ClusterView | None = None
        self._problems: dict[tuple[str, Key], tuple[Problem, ...]] = {}
        self._synced: set[str] = set()
        self._sharing = Sharing()
        self._nodes: Shelf[Node] = Shelf()
        self._pods: Shelf[Pod] = Shelf()
        self._budgets: Shelf[DisruptionBudget] = Shelf()
        self._volumes: Shelf[PersistentVolume] = Shelf()
        self._claims: Shelf[VolumeClaim] = Shelf()
        self._storage_classes: Shelf[StorageClass] = Shelf()
        self._namespaces: Shelf[tuple[str, dict[str, str]]] = Shelf()
        self._storage: dict[Key, NodeStorage] = {}
        self._priority_classes: dict[Key, wire.PriorityClass] = {}
        self._owned = PodsByController()
        self._length_is_own: dict[Key, bool] = {}
        self._ended: dict[str, Ended] = {}
        self._unread: dict[Key, str] = {}
        """The nodes of pods that are left out."""
        self._daemons: Shelf[Pod] = Shelf()
        self._templates: dict[Key, wire.DaemonSet] = {}
        self._daemon_sets: dict[Key, str] = {}
        self._around = Surroundings(dict(SYSTEM_PRIORITIES), PriorityClass(), {}, {}, self._daemon_sets)
        self._put: dict[str, Callable[[Key, Any, Faults], None]] = {
            "Node": self._put_node,
            "Pod": self._put_pod,
            "PodDisruptionBudget": self._put_budget,
            "PriorityClass": self._put_priority_class,
            "CSINode": self._put_storage,
            "DaemonSet": self._put_daemon_set,
            "Namespace": lambda key, raw, _: self._namespaces.put(key, (key[1], objects.namespace_labels(raw))),
            "PersistentVolume": lambda key, raw, faults: self._volumes.put(key, objects.volume(raw, faults)),
            "PersistentVolumeClaim": lambda key, raw, _: self._claims.put(key, objects.claim(raw)),
            "StorageClass": lambda key, raw, _: self._storage_classes.put(key, objects.storage_class(raw)),
            **{kind: self._controller_putter(kind) for kind in CONTROLLERS},
        }
        self._drop: dict[str, Callable[[Key], object]] = {
            "Node": self._drop_node,
            "Pod": self._drop_pod,
            "PodDisruptionBudget": self._budgets.drop,
            "PriorityClass": self._drop_priority_class,
            "CSINode": lambda key: self._set_storage(key, NO_STORAGE),
            "DaemonSet": self._drop_daemon_set,
            "Namespace": self._namespaces.drop,
            "PersistentVolume": self._volumes.drop,
            "PersistentVolumeClaim": self._claims.drop,
            "StorageClass": self._storage_classes.drop,
            **{kind: self._controller_dropper(kind) for kind in CONTROLLERS},
        }
        self._keys: dict[str, set[Key]] = {resource.kind: set() for resource in RESOURCES}

    # What the watches tell.

    def take_page(self, resource: Resource, raws: Iterable[bytes | msgspec.Raw]) -> set[Key]:
        """Objects from a page of a list; returns their keys."""
        keys = set()
        for raw in raws:
            with self._lock:  # object by object: a list of 50,000 must not hold up a cycle
                key = self._take(resource, raw)
            if key is not None:
                keys.add(key)
        return keys

    def end_list(self, resource: Resource, listed: set[Key]) -> None:
        """All pages of a list have been taken in: what was not in them is gone."""
        with self._lock:
            for key in self._keys[resource.kind] - listed:
                self._forget(resource, key)
            if resource.kind not in self._synced:
                self._synced.add(resource.kind)
                self._note_change()

    def put(self, resource: Resource, raw: bytes | msgspec.Raw) -> None:
        """An object that is new or has changed."""
        with self._lock:
            self._take(resource, raw)

    def remove(self, resource: Resource, raw: bytes | msgspec.Raw) -> None:
        """An object that is gone."""
        with self._lock:
            try:
                key = _key(resource, msgspec.json.decode(raw, type=_Named).metadata)
            except UNREADABLE:
                return  # it was never taken in either
            self._forget(resource, key)

    # What the daemon asks.

    @property
    def missing(self) -> tuple[str, ...]:
        """Kinds not listed yet: no view can be relied on before they are."""
        return tuple(resource.kind for resource in RESOURCES if resource.kind not in self._synced)

    def view(self) -> ClusterView:
        """The cluster now. The same object is returned while nothing has changed."""
        with self._lock:
            if self._view is None:
                self._view = ClusterView(
                    nodes=self._nodes.all(),
                    pods=self._pods.all(),
                    budgets=self._budgets.all(),
                    namespaces=dict(self._namespaces.all()),
                    volumes=Volumes(self._volumes.all(), self._claims.all(), self._storage_classes.all()),
                    problems=tuple(problem for told in self._problems.values() for problem in told),
                    ended=tuple(self._ended.values()),
                    unread=unread.by_node(self._unread),
                    daemons=self._daemons.all(),
                )
            return self._view

    def pod(self, key: Key) -> Pod | None:
        with self._lock:
            return self._pods.items.get(key)

    def node(self, name: str) -> Node | None:
        with self._lock:
            return self._nodes.items.get(("", name))

    def unbound(self, pod: Pod) -> list[VolumeClaim]:
        """A pod's claims whose volumes are still to be made."""
        with self._lock:
            claims = (self._claims.items.get((pod.namespace, name)) for name in pod.constraints.claims)
            return [claim for claim in claims if claim is not None and claim.volume is None]

    @property
    def changes(self) -> int:
        """Grows when work arrives, room frees, or a budget allows again what it refused."""
        return self._changes

    # Taking objects in.

    def _take(self, resource: Resource, raw: bytes | msgspec.Raw) -> Key | None:
        """The object's key; None where it has no name. One that cannot be understood is a problem and is left out."""
        self._view = None
        try:
            decoded = wire.decode(raw, resource.form)
        except UNREADABLE as error:
            return self._unreadable(resource, raw, error)
        key = _key(resource, decoded.metadata)
        self._keys[resource.kind].add(key)
        self._problems.pop((resource.kind, key), None)
        faults: Faults = []
        self._put[resource.kind](key, decoded, faults)
        if faults:
            self._drop[resource.kind](key)
            self._tell(resource.kind, key, faults)
            if isinstance(decoded, wire.Pod):
                self._note_unread(key, unread.node_of_faulty(decoded))
        return key

    def _unreadable(self, resource: Resource, raw: bytes | msgspec.Raw, error: Exception) -> Key | None:
        try:
            key = _key(resource, msgspec.json.decode(raw, type=_Named).metadata)
        except UNREADABLE:
            return None
        self._keys[resource.kind].add(key)
        self._drop[resource.kind](key)
        self._problems[resource.kind, key] = (Problem(title(resource.kind, key), decoding_fault(error)),)
        if resource.form is wire.Pod:
            self._note_unread(key, unread.node_of(raw))
        return key

    def _forget(self, resource: Resource, key: Key) -> None:
        self._view = None
        self._keys[resource.kind].discard(key)
        self._problems.pop((resource.kind, key), None)
        self._drop[resource.kind](key)

    def _tell(self, kind: str, key: Key, faults: Iterable[Fault], *, are_doubts: bool = False) -> None:
        told = tuple(Problem(f"{title(kind, key)}: {fault.path}", fault.what, are_doubts) for fault in faults)
        self._problems[kind, key] = self._problems.get((kind, key), ()) + told

    def _note_change(self) -> None:
        self._changes += 1
        self.on_change()

    # Nodes and what is known of them.

    def _put_node(self, key: Key, raw: wire.Node, faults: Faults) -> None:
        node = objects.node(raw, {key[1]: self._storage.get(key, NO_STORAGE)}, faults)
        if doubts := objects.tier_doubts(raw):
            self._tell("Node", key, doubts, are_doubts=True)
        before = self._nodes.items.get(key)
        self._nodes.put(key, node)
        if before is None or objects.opens(before, node) or before.is_ready != node.is_ready:
            self._note_change()

    def _drop_node(self, key: Key) -> None:
        if self._nodes.drop(key) is not None:
            self._note_change()

    def _put_storage(self, key: Key, raw: wire_storage.CsiNode, _: Faults) -> None:
        self._set_storage(key, objects.node_storage(raw))

    def _set_storage(self, key: Key, storage: NodeStorage) -> None:
        if storage != NO_STORAGE:
            self._storage[key] = storage
        else:
            self._storage.pop(key, None)
        node = self._nodes.items.get(key)
        if node is not None and (node.attach_limits, node.topology_keys) != storage:
            attach_limits, topology_keys = storage
            self._nodes.put(
                key, msgspec.structs.replace(node, attach_limits=attach_limits, topology_keys=topology_keys)
            )
            self._note_change()

    # Pods, and the controllers that say something of them.

    def _put_pod(self, key: Key, raw: wire.Pod, faults: Faults) -> None:
        doubts: Faults = []
        pod = pods.translate(raw, self._around, faults, doubts)
        if doubts:
            self._tell("Pod", key, doubts, are_doubts=True)
        if pod is None:
            self._note_end(pods.ended(raw, self._around))
            self._drop_pod(key)
            return
        pod = self._sharing.of(pod)
        before = self._pods.items.get(key)
        self._unread.pop(key, None)
        self._pods.put(key, pod)
        self._length_is_own[key] = pods.states_its_length(raw)
        if before is None or before.owner is not pod.owner:
            self._owned.drop(key, before)
            self._owned.put(key, pod)
        is_known = before is not None and before.uid == pod.uid and pods.waits_for(before, self._scheduler_name)
        if pods.waits_for(pod, self._scheduler_name) and not is_known:
            self._note_change()
        if before is not None and before.node is not None and before.uid != pod.uid:
            self._note_change()  # one pod of a name went and another came, which a lost watch shows as one change

    def _note_end(self, end: Ended | None) -> None:
        """Once for each pod, also for one that ended before we came: another daemon may have seen it run."""
        if end is None or end.uid in self._ended:
            return
        self._ended[end.uid] = end
        if len(self._ended) > ENDED_KEPT:
            del self._ended[next(iter(self._ended))]

    def _note_unread(self, key: Key, node: str | None) -> None:
        if node is not None:
            self._unread[key] = node

    def _drop_pod(self, key: Key) -> None:
        self._unread.pop(key, None)
        pod = self._pods.drop(key)
        if pod is None:
            return
        self._owned.drop(key, pod)
        del self._length_is_own[key]
        if pod.node is not None:
            self._note_change()

    def _controller_putter(self, kind: str) -> Callable[[Key, Any, Faults], None]:
        def put(key: Key, raw: wire.Controller, _: Faults) -> None:
            wanted, deadline_s = objects.replicas(kind, raw), raw.spec.active_deadline_seconds
            replicas: Any = self._around.replicas
            deadlines: Any = self._around.deadlines_s
            if replicas.get((kind, *key)) == wanted and (kind != "Job" or deadlines.get(key) == deadline_s):
                return
            replicas[(kind, *key)] = wanted
            if kind == "Job":
                deadlines[key] = deadline_s
            for pod_key in self._owned.of(kind, key):
                self._owner_says(pod_key, wanted, deadline_s if kind == "Job" else None)

        return put

    def _owner_says(self, key: Key, wanted: int | None, deadline_s: float | None) -> None:
        """A controller changed, or was told of after its pods; None: it is gone."""
        pod = self._pods.items[key]
        assert pod.owner is not None
        run_length = pod.run_length if self._length_is_own[key] else pods.ended_by(deadline_s)
        owner = msgspec.structs.replace(pod.owner, replicas=wanted)
        changed = msgspec.structs.replace(pod, owner=owner, run_length=run_length)
        self._pods.put(key, self._sharing.of(changed))

    def _controller_dropper(self, kind: str) -> Callable[[Key], object]:
        def drop(key: Key) -> None:
            replicas: Any = self._around.replicas
            deadlines: Any = self._around.deadlines_s
            replicas.pop((kind, *key), None)
            if kind == "Job":
                deadlines.pop(key, None)
            for pod_key in self._owned.of(kind, key):
                self._owner_says(pod_key, None, None)

        return drop

    def _put_daemon_set(self, key: Key, raw: wire.DaemonSet, faults: Faults) -> None:
        self._know_daemon_set(key, raw.metadata.uid)
        self._templates[key] = raw
        self._put_daemon(key, raw, faults)

    def _put_daemon(self, key: Key, raw: wire.DaemonSet, faults: Faults) -> None:
        pod = pods.translate(daemon_sets.pod_of(raw), self._around, faults, [])
        if pod is not None and not faults:
            self._daemons.put(key, self._sharing.of(pod))

    def _drop_daemon_set(self, key: Key) -> None:
        """Gone, or not to be understood: its pods are nobody's until it is back."""
        self._daemons.drop(key)
        self._templates.pop(key, None)
        self._know_daemon_set(key, None)

    def _know_daemon_set(self, key: Key, uid: str | None) -> None:
        if self._daemon_sets.get(key) == uid:
            return
        if uid is None:
            self._daemon_sets.pop(key, None)
        else:
            self._daemon_sets[key] = uid
        for pod_key in self._owned.of(daemon_sets.KIND, key):
            pod = self._pods.items[pod_key]
            assert pod.owner is not None
            kind = daemon_sets.KIND if pod.owner.uid == uid else daemon_sets.NONE_SUCH
            changed = msgspec.structs.replace(pod, owner=msgspec.structs.replace(pod.owner, kind=kind))
            self._pods.put(pod_key, self._sharing.of(changed))

    # The rest.

    def _put_budget(self, key: Key, raw: wire.Budget, faults: Faults) -> None:
        budget = objects.budget(raw, faults)
        before = self._budgets.items.get(key)
        self._budgets.put(key, budget)
        if before is not None and (
            budget.disruptions_allowed > before.disruptions_allowed or budget.is_healthy > before.is_healthy
        ):
            self._note_change()

    def _put_priority_class(self, key: Key, raw: wire.PriorityClass, _: Faults) -> None:
        self._priority_classes[key] = raw
        self._note_priorities()

    def _drop_priority_class(self, key: Key) -> None:
        self._priority_classes.pop(key, None)
        self._note_priorities()

    def _note_priorities(self) -> None:
        """Pods that come later are judged by these; those there already have had theirs filled in by admission.

        Templates of DaemonSets name a class alone, and may have been listed before it.
        """
        self._around = msgspec.structs.replace(self._around, **pods.priorities_of(self._priority_classes.values()))
        for key, raw in self._templates.items():
            self._put_daemon(key, raw, [])


class _Named(msgspec.Struct):
    """Enough to tell which object it is, whatever else is wrong with it."""

    metadata: wire.Identity


def _key(resource: Resource, meta: wire.Metadata | wire.Identity) -> Key:
    return (meta.namespace or "default" if resource.is_namespaced else "", meta.name)
