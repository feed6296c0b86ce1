"""The sandbox's cluster: pods, nodes and controllers behind the ClusterPort."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set

import msgspec

from htas.model.constraints import Taint
from htas.model.deletion_costs import is_ours
from htas.model.nodes import DRAINING_TAINT, HOSTNAME_LABEL, OWN_LABELS, Node
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.ports import ConflictError, NotFoundError
from htas.sandbox.controllers import Controller
from htas.sandbox.daemon_sets import template_pod
from htas.sandbox.pod_life import NAMESPACE_NAME_LABEL, PodLife, Record
from htas.sandbox.workload import Arrival, Budget, Rescale, Task


class SandboxCluster(PodLife):
    """Implements ClusterPort; the rest of the world changes it through the other methods."""

    # The port.

    def observe(self) -> ClusterView:
        self.faults.strike("observe")
        if self._view is None:
            self._view = ClusterView(
                nodes=tuple(self._nodes[name] for name in sorted(self._nodes)),
                pods=tuple(record.pod for record in self._records.values()),
                budgets=self._budgets.statuses(),
                namespaces=dict(sorted(self._namespaces.items())),
                ended=tuple(self._ended),
                daemons=tuple(template_pod(task) for task in self._daemons),
            )
        return _without(self._view, self.faults.unreadable) if self.faults.unreadable else self._view

    def changes(self) -> int:
        return self._changes

    def on_change(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def bind(self, pod: Pod, node: str, deletion_cost: int | None = None) -> None:
        self.faults.strike("bind")
        record = self._record(pod)
        if record.pod.node is not None:
            if record.pod.node == node:
                return
            raise ConflictError(f"pod {pod.key} is bound to {record.pod.node} already")
        if node not in self._nodes:
            raise NotFoundError(f"node {node} is gone")
        if not self._occupancy.has_room(self._nodes[node], record.pod.requests):
            self._ledger.overcommitted += 1
            self._remove(record, fails=True)
            return
        cost = deletion_cost if deletion_cost is not None else record.pod.deletion_cost
        self._put(record, msgspec.structs.replace(record.pod, node=node, deletion_cost=cost))
        self._occupancy.seat(node, pod.key, record.pod.requests)
        self._start_soon(record.pod)

    def evict(self, pod: Pod, grace_s: float | None = None) -> None:
        self.faults.strike("evict")
        record = self._present(pod.key, pod.uid)
        if record is None or record.pod.is_terminating:
            return
        self._budgets.check_eviction(record.pod)
        self._ledger.evictions += 1
        self._end(record, grace_s)

    def nominate(self, pod: Pod, node: str | None) -> None:
        self.faults.strike("nominate")
        record = self._record(pod)
        if record.pod.nominated_node != node:
            self._put(record, msgspec.structs.replace(record.pod, nominated_node=node))

    def preempt(self, pod: Pod, message: str) -> None:
        self.faults.strike("preempt")
        record = self._present(pod.key, pod.uid)
        if record is not None and not record.pod.is_terminating:
            self._ledger.preempted += 1
            self._end(record, None)

    def set_draining(self, node: str, draining: bool) -> None:
        self.faults.strike("set_draining")
        known = self._node(node)
        taints = tuple(taint for taint in known.taints if taint != DRAINING_TAINT)
        if draining:
            taints += (DRAINING_TAINT,)
        self._set_node(msgspec.structs.replace(known, taints=taints, is_unschedulable=draining))

    def set_up_node(self, node: str, labels: Mapping[str, str], taints: Sequence[Taint] = ()) -> None:
        self.faults.strike("set_up_node")
        known = self._node(node)
        new = tuple(taint for taint in taints if taint not in known.taints)
        self._set_node(msgspec.structs.replace(known, labels={**known.labels, **labels}, taints=known.taints + new))

    def take_off(self, node: str, taints: Collection[Taint]) -> None:
        """An agent that has started on a node takes off the taints that it was to start with."""
        known = self._nodes.get(node)
        if known is not None:
            left = tuple(taint for taint in known.taints if taint not in taints)
            self._set_node(msgspec.structs.replace(known, taints=left))

    def set_offered(self, node: str, offered: Resources) -> None:
        """A kubelet reports other amounts, as after a device plugin has registered."""
        known = self._nodes.get(node)
        if known is not None:
            self._set_node(msgspec.structs.replace(known, allocatable=offered))
            self._note_change()

    def disown_node(self, node: str) -> None:
        self.faults.strike("disown_node")
        known = self._nodes.get(node)
        if known is not None:
            labels = {label: text for label, text in known.labels.items() if label not in OWN_LABELS}
            self._set_node(msgspec.structs.replace(known, labels=labels))

    def offer(self, node: str, allocatable: Resources) -> None:
        """A node offers so much from now on, if it is there."""
        if node in self._nodes:
            self._set_node(msgspec.structs.replace(self._nodes[node], allocatable=allocatable))
            self._note_change()

    def delete_node(self, node: str) -> None:
        self.faults.strike("delete_node")
        if node in self._nodes:
            self.lose_pods(node)
            del self._nodes[node]
            self._occupancy.close(node)
            self._touch()

    def mark_waiting(self, pod: Pod) -> None:
        """A scheduler notes on a pod that it found no room for it."""
        record = self._present(pod.key, pod.uid)
        if record is not None and record.pod.node is None:
            self._put(record, msgspec.structs.replace(record.pod, is_unschedulable=True))

    # What the cloud does to nodes.

    def add_node(self, node: Node) -> None:
        """A node registers; its DaemonSet pods are bound at once."""
        self._nodes[node.name] = node
        self._occupancy.open(node.name)
        for task in self._daemons:
            self._start_daemon(task, node.name)
        self._touch()

    def set_ready(self, node: str, ready: bool) -> None:
        """A node's kubelet reports or falls silent; what was bound to it meanwhile starts once it reports.

        While it is silent none of its pods counts as Ready (the node lifecycle controller, MarkPodsNotReady).
        """
        if node not in self._nodes or self._nodes[node].is_ready is ready:
            return
        since = self._clock.now() if ready else None
        self._set_node(msgspec.structs.replace(self._nodes[node], is_ready=ready, ready_since=since))
        self._note_change()
        for key in self._occupancy.pods(node):
            record = self._records[key]
            if record.pod.started_at is None and ready:
                self._start_soon(record.pod)
            elif record.pod.started_at is not None:
                self._put(record, msgspec.structs.replace(record.pod, ready_since=since))

    def set_condition(self, node: str, condition: str, holds: bool) -> None:
        """A detector says that something is wrong with a node, or that it is well again."""
        known = self._node(node)
        borne = dict(known.conditions)
        if holds:
            borne.setdefault(condition, self._clock.now())
        else:
            borne.pop(condition, None)
        self._set_node(msgspec.structs.replace(known, conditions=tuple(sorted(borne.items()))))
        self._note_change()

    def lose_pods(self, node: str) -> int:
        """A node's machine is gone, its pods with it; returns how many were work."""
        records = [self._records[key] for key in self._occupancy.pods(node)]
        for record in records:
            self._remove(record, fails=not record.pod.is_daemon)
        return sum(not record.pod.is_daemon for record in records)

    def on_machine(self, provider_id: str) -> list[str]:
        """The nodes that name a machine in their providerID."""
        return [name for name, node in self._nodes.items() if node.provider_id == provider_id]

    # What people with rights on nodes do.

    def relabel(self, node: str, labels: Mapping[str, str | None]) -> None:
        """Somebody overwrites labels of a node, or takes them off (None)."""
        known = self._node(node)
        rest = {key: text for key, text in known.labels.items() if key not in labels}
        given = {key: text for key, text in labels.items() if text is not None}
        self._set_node(msgspec.structs.replace(known, labels=rest | given))
        self._note_change()

    def rename(self, node: str, name: str) -> None:
        """A kubelet registers under another name; what it ran is lost, and its old Node object stays, not Ready."""
        known = self._node(node)
        self.lose_pods(node)
        self.set_ready(node, False)
        labels = {**known.labels, HOSTNAME_LABEL: name}
        self.add_node(msgspec.structs.replace(known, name=name, uid=f"node-{name}", labels=labels))
        self._note_change()

    def lose_provider_id(self, node: str, provider_id: str = "") -> None:
        """A node is made anew without its providerID, or with one of another form."""
        self._set_node(msgspec.structs.replace(self._node(node), provider_id=provider_id))

    # What users do.

    def add_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace with labels; others appear, without any of their own, with their first pod."""
        self._namespaces[name] = {NAMESPACE_NAME_LABEL: name, **labels}
        self._touch()

    def add_daemon(self, task: Task) -> None:
        """A DaemonSet: its pods run on every node that suits it, now and later."""
        self._daemons.append(task)
        for node in sorted(self._nodes):
            self._start_daemon(task, node)

    def add_budget(self, budget: Budget) -> None:
        self._budgets.add(budget, [record.pod for record in self._records.values()])
        self._touch()

    def add_pod(self, pod: Pod) -> None:
        """A pod that is there already: bound by somebody else, or left Unschedulable by another scheduler.

        In a sandbox what runs on a Ready node is Ready.
        """
        if pod.node is not None and self._node(pod.node).is_ready and pod.phase is Phase.RUNNING:
            since = pod.started_at if pod.started_at is not None else self._clock.now()
            pod = msgspec.structs.replace(pod, ready_since=since if pod.ready_since is None else pod.ready_since)
        self._appear(Record(pod))

    def arrive(self, arrival: Arrival) -> None:
        """A controller appears with its pods."""
        controller = Controller(arrival.controller, arrival.task, arrival.replicas)
        self._controllers[controller.key] = controller
        if arrival.task.runs_s is not None:
            self._ledger.arrived += arrival.replicas
        self._refill(controller)

    def rescale(self, rescale: Rescale) -> None:
        controller = self._controllers[f"{rescale.namespace}/{rescale.name}"]
        controller.wanted = rescale.replicas
        self._remove_surplus(controller)
        self._refill(controller)

    def counted(self, controller: str) -> tuple[int, int] | None:
        """(pods a controller wants, pods of it that run and stay); None: it has not arrived."""
        known = self._controllers.get(controller)
        if known is None:
            return None
        pods = [self._records[key].pod for key in known.pods]
        return known.wanted, sum(pod.phase is Phase.RUNNING and not pod.is_terminating for pod in pods)

    # Moves (the MigrationPort changes pods through these).

    def reserve(self, node: str, pod: str, requests: Resources) -> None:
        """Keep room for a pod that moves; ConflictError where there is none, NotFoundError: there is no such node.

        Whatever ends the pod gives it back: a copy under way notices the end only as it is done.
        """
        there = self._node(node)
        if not there.is_ready or not self._occupancy.has_room(there, requests):
            raise ConflictError(f"node {node} has no room")
        self._occupancy.keep(node, pod, requests)

    def unreserve(self, pod: str) -> None:
        self._occupancy.give_back(pod)

    def relocate(self, key: str, target: str, started_at: float | None = None) -> None:
        """A pod goes on running on another node, Ready there from now on; `started_at`: since when a copy of it is."""
        record = self._records[key]
        self._occupancy.leave(record.pod.node or "", key)
        self._occupancy.seat(target, key, record.pod.requests)
        now, own_start = self._clock.now(), record.pod.started_at
        began, ready = (own_start, now) if started_at is None else (started_at, started_at)
        cost = None if is_ours(record.pod.deletion_cost) else record.pod.deletion_cost
        moved = msgspec.structs.replace(
            record.pod, node=target, started_at=began, ready_since=ready, deletion_cost=cost
        )
        self._put(record, moved)
        self._note_change()

    def repeat(self, key: str, seconds: float) -> None:
        """A pod does so many seconds of its work again (fewer than 0: after all not) and ends later by that."""
        record = self._records.get(key)
        if record is not None:
            record.repeats_s = max(0.0, record.repeats_s + seconds)


def _without(view: ClusterView, unreadable: Set[str]) -> ClusterView:
    """The view of one who cannot understand these pods: of those that are bound it shows the nodes alone."""
    read = tuple(pod for pod in view.pods if pod.key not in unreadable)
    bound = {pod.node: pod.key for pod in view.pods if pod.key in unreadable and pod.node is not None}
    return msgspec.structs.replace(view, pods=read, unread=bound)
