"""The sandbox's cluster: pods, nodes and controllers behind the ClusterPort."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.model.constraints import Taint
from htas.model.nodes import DRAINING_TAINT, OWN_LABELS, Node
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from htas.model.snapshot import ENDED_KEPT, ClusterView, Ended
from htas.ports import ConflictError, NotFoundError
from htas.sandbox.budgets import BudgetBook
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.controllers import Controller
from htas.sandbox.daemon_sets import daemon_pod, suits, template_pod
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger
from htas.sandbox.occupancy import Occupancy
from htas.sandbox.workload import Arrival, Budget, ControllerKind, Rescale, Task

START_S = 1.0
"""From bind to running: the image is there already."""
START_AGAIN_S = 10.0
"""Until a kubelet whose image pull failed tries again; its first back-off."""
CONTROLLER_S = 1.0
"""Until a controller replaces a pod that is gone, or on its way out."""
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace: its name."""


@dataclass(slots=True)
class _Record:
    """A pod and what only the world knows of it: who keeps it coming, and how long it really runs."""

    pod: Pod
    controller: Controller | None = None
    runs_s: float | None = None
    daemon: Task | None = None
    repeats_s: float = 0.0
    """By how much it ends later, for work that a move made it do again."""


class SandboxCluster:
    """Implements ClusterPort; the rest of the world changes it through the other methods."""

    def __init__(self, clock: VirtualClock, queue: EventQueue, ledger: Ledger) -> None:
        self._clock = clock
        self._queue = queue
        self._ledger = ledger
        self.faults = Faults()
        self._records: dict[str, _Record] = {}
        self._nodes: dict[str, Node] = {}
        self._occupancy = Occupancy()
        self._controllers: dict[str, Controller] = {}
        self._budgets = BudgetBook(self.pod)
        self._daemons: list[Task] = []
        self._daemon_serial = 0
        self._namespaces: dict[str, dict[str, str]] = {}
        self._changes = 0
        self._wake: Callable[[], None] = lambda: None
        self._view: ClusterView | None = None
        self._ended: deque[Ended] = deque(maxlen=ENDED_KEPT)

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

    def bind(self, pod: Pod, node: str) -> None:
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
        self._put(record, msgspec.structs.replace(record.pod, node=node))
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

    def _end(self, record: _Record, grace_s: float | None) -> None:
        """A pod is given its grace, or what the caller grants, and its controller starts another."""
        self._put(record, msgspec.structs.replace(record.pod, deleted_at=self._clock.now()))
        self._replace_early(record)
        # A pod without a node has nobody to end it: the API server deletes it at once.
        stated_s = record.pod.grace_s if grace_s is None else grace_s
        self._queue.after(
            stated_s if record.pod.node is not None else 0.0, partial(self._gone, record.pod.key, record.pod.uid)
        )

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

    def disown_node(self, node: str) -> None:
        self.faults.strike("disown_node")
        known = self._nodes.get(node)
        if known is not None:
            labels = {label: text for label, text in known.labels.items() if label not in OWN_LABELS}
            self._set_node(msgspec.structs.replace(known, labels=labels))

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

    def lose_pods(self, node: str) -> int:
        """A node's machine is gone, its pods with it; returns how many were work."""
        records = [self._records[key] for key in self._occupancy.pods(node)]
        for record in records:
            self._remove(record, fails=not record.pod.is_daemon)
        return sum(not record.pod.is_daemon for record in records)

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
        self._appear(_Record(pod))

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

    def pod(self, key: str) -> Pod | None:
        record = self._records.get(key)
        return record.pod if record is not None else None

    def reserve(self, node: str, token: str, requests: Resources) -> None:
        """Keep room on a node; ConflictError where there is none, NotFoundError where there is no such node."""
        there = self._node(node)
        if not there.is_ready or not self._occupancy.has_room(there, requests):
            raise ConflictError(f"node {node} has no room")
        self._occupancy.keep(node, token, requests)

    def unreserve(self, node: str, token: str) -> None:
        self._occupancy.give_back(node, token)

    def relocate(self, key: str, target: str, started_at: float | None = None) -> None:
        """A pod goes on running on another node, Ready there from now on; `started_at`: since when a copy of it is."""
        record = self._records[key]
        self._occupancy.leave(record.pod.node or "", key)
        self._occupancy.seat(target, key, record.pod.requests)
        now, own_start = self._clock.now(), record.pod.started_at
        began, ready = (own_start, now) if started_at is None else (started_at, started_at)
        self._put(record, msgspec.structs.replace(record.pod, node=target, started_at=began, ready_since=ready))
        self._note_change()

    def repeat(self, key: str, seconds: float) -> None:
        """A pod does so many seconds of its work again (fewer than 0: after all not) and ends later by that."""
        record = self._records.get(key)
        if record is not None:
            record.repeats_s = max(0.0, record.repeats_s + seconds)

    # Inside.

    def _record(self, pod: Pod) -> _Record:
        record = self._present(pod.key, pod.uid)
        if record is None:
            raise NotFoundError(f"pod {pod.key} is gone")
        return record

    def _present(self, key: str, uid: str) -> _Record | None:
        """A pod, unless it is gone; another one may bear its name by now."""
        record = self._records.get(key)
        return record if record is not None and record.pod.uid == uid else None

    def _node(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise NotFoundError(f"node {name} is gone")
        return node

    def _note_change(self) -> None:
        self._changes += 1
        self._wake()

    def _touch(self) -> None:
        self._view = None

    def _put(self, record: _Record, pod: Pod) -> None:
        record.pod = pod
        self._touch()

    def _set_node(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._touch()

    def _create(self, controller: Controller) -> None:
        pod = controller.next_pod(self._clock.now())
        controller.pods.add(pod.key)
        self._appear(_Record(pod, controller, controller.task.runs_s))
        self._note_change()

    def _appear(self, record: _Record) -> None:
        pod = record.pod
        self._records[pod.key] = record
        if pod.node is not None:
            self._occupancy.seat(pod.node, pod.key, pod.requests)
        self._budgets.appeared(pod)
        self._namespaces.setdefault(pod.namespace, {NAMESPACE_NAME_LABEL: pod.namespace})
        self._touch()

    def _start_daemon(self, task: Task, node: str) -> None:
        known = self._nodes.get(node)
        if known is None or not suits(task, known):
            return
        self._daemon_serial += 1
        self._appear(_Record(daemon_pod(task, node, self._daemon_serial, self._clock.now()), daemon=task))

    def _start_soon(self, pod: Pod) -> None:
        if pod.started_at is None:
            self._queue.after(START_S, partial(self._start, pod.key, pod.uid))

    def _start(self, key: str, uid: str) -> None:
        """The kubelet starts a bound pod; on a node that is not Ready there is no kubelet to do so."""
        record = self._present(key, uid)
        if record is None or record.pod.node is None or record.pod.started_at is not None or record.pod.is_terminating:
            return
        if not self._nodes[record.pod.node].is_ready:
            return
        if record.pod.node in self.faults.starts_nothing:
            self._queue.after(START_AGAIN_S, partial(self._start, key, uid))
            return
        now = self._clock.now()
        self._ledger.waits_s.append(now - record.pod.created_at)
        if record.controller is not None and record.controller.starts_first():
            self._ledger.first_waits_s.append(now - record.pod.created_at)
            self._ledger.first_starts.append((record.controller.key, now))
        self._put(record, msgspec.structs.replace(record.pod, phase=Phase.RUNNING, started_at=now, ready_since=now))
        if record.runs_s is not None:
            self._queue.after(record.runs_s, partial(self._finish, key, uid))

    def _finish(self, key: str, uid: str) -> None:
        """A batch pod ends well, wherever it runs by now."""
        record = self._present(key, uid)
        if record is None:
            return
        if record.repeats_s > 0.0:
            self._queue.after(record.repeats_s, partial(self._finish, key, uid))
            record.repeats_s = 0.0
            return
        self._ended.append(Ended(uid, True, self._clock.now()))
        self._ledger.finished += 1
        self._ledger.finished_tasks.append(record.controller.key if record.controller is not None else key)
        if record.controller is not None:
            record.controller.wanted -= 1
        self._remove(record, fails=False)
        if record.controller is not None:  # it ended well while it was to be stopped: its replacement is one too many
            self._remove_surplus(record.controller)

    def _replace_early(self, record: _Record) -> None:
        """ReplicaSets and Jobs count a pod on its way out as gone, and start another; a StatefulSet needs its name."""
        controller = record.controller
        if controller is not None and controller.kind in (ControllerKind.REPLICA_SET, ControllerKind.JOB):
            controller.pods.discard(record.pod.key)
            self._queue.after(CONTROLLER_S, partial(self._refill, controller))

    def _gone(self, key: str, uid: str) -> None:
        """An evicted pod's grace is over."""
        record = self._present(key, uid)
        if record is not None:
            self._remove(record, fails=True)

    def _remove(self, record: _Record, *, fails: bool) -> None:
        """A pod goes; `fails`: before its time, so that its work is lost and its controller starts another."""
        pod = record.pod
        del self._records[pod.key]
        if pod.node is not None:
            self._occupancy.leave(pod.node, pod.key)
        self._budgets.went(pod.key)
        self._touch()
        self._note_change()
        if record.daemon is not None and fails:
            self._queue.after(CONTROLLER_S, partial(self._start_daemon, record.daemon, pod.node or ""))
        controller = record.controller
        if controller is None:
            return
        controller.pods.discard(pod.key)
        if not fails:
            return
        if pod.started_at is not None:
            self._ended.append(Ended(pod.uid, False, self._clock.now()))
        if record.runs_s is not None and pod.started_at is not None:
            self._ledger.work_lost_s += self._clock.now() - pod.started_at
        if controller.kind is ControllerKind.BARE:
            self._ledger.lost += record.runs_s is not None
        else:
            self._ledger.restarts += 1
            self._queue.after(CONTROLLER_S, partial(self._refill, controller))

    def _remove_surplus(self, controller: Controller) -> None:
        for pod in controller.surplus((self._records[key].pod for key in controller.pods), self._clock.now()):
            self._remove(self._records[pod.key], fails=False)

    def _refill(self, controller: Controller) -> None:
        controller.most_wanted = max(controller.most_wanted, controller.wanted)
        while len(controller.pods) < controller.wanted:
            self._create(controller)


def _without(view: ClusterView, unreadable: Set[str]) -> ClusterView:
    """The view of one who cannot understand these pods: of those that are bound it shows the nodes alone."""
    read = tuple(pod for pod in view.pods if pod.key not in unreadable)
    bound = {pod.node: pod.key for pod in view.pods if pod.key in unreadable and pod.node is not None}
    return msgspec.structs.replace(view, pods=read, unread=bound)
