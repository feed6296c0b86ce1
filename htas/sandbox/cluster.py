"""The sandbox's cluster: pods, nodes and controllers behind the ClusterPort."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.nodes import DRAINING_TAINT, Node
from htas.model.pods import Owner, Phase, Pod
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterView
from htas.ports import ConflictError, NotFoundError, TransientError
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.controllers import Controller
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger
from htas.sandbox.workload import Arrival, Budget, ControllerKind, Rescale, Task

START_S = 1.0
"""From bind to running: the image is there already."""
CONTROLLER_S = 1.0
"""Until a controller replaces a pod that is gone."""


@dataclass(slots=True)
class _Record:
    """A pod and what only the world knows of it."""

    pod: Pod
    controller: Controller | None
    runs_s: float | None


class SandboxCluster:
    """Implements ClusterPort; the rest of the world changes it through the other methods."""

    def __init__(self, clock: VirtualClock, queue: EventQueue, ledger: Ledger) -> None:
        self._clock = clock
        self._queue = queue
        self._ledger = ledger
        self.faults = Faults()
        self._records: dict[str, _Record] = {}
        self._nodes: dict[str, Node] = {}
        self._on_node: dict[str, set[str]] = {}
        self._held: dict[str, dict[str, Resources]] = {}
        self._controllers: dict[str, Controller] = {}
        self._budgets: list[Budget] = []
        self._daemons: list[Task] = []
        self._changes = 0
        self._view: ClusterView | None = None

    # The port.

    def observe(self) -> ClusterView:
        self.faults.strike("observe")
        if self._view is None:
            self._view = ClusterView(
                nodes=tuple(self._nodes[name] for name in sorted(self._nodes)),
                pods=tuple(record.pod for record in self._records.values()),
                budgets=tuple(self._budget_status(budget) for budget in self._budgets),
                namespaces={name: {} for name in sorted({r.pod.namespace for r in self._records.values()})},
            )
        return self._view

    def changes(self) -> int:
        return self._changes

    def bind(self, pod: Pod, node: str) -> None:
        self.faults.strike("bind")
        record = self._record(pod)
        if record.pod.node is not None:
            if record.pod.node == node:
                return
            raise ConflictError(f"pod {pod.key} is bound to {record.pod.node} already")
        if node not in self._nodes:
            raise NotFoundError(f"node {node} is gone")
        if not self._has_room(node, record.pod.requests):
            self._ledger.overcommitted += 1
            self._remove(record, fails=True)
            return
        self._put(record, msgspec.structs.replace(record.pod, node=node))
        self._hold(node, pod.key, record.pod.requests)
        self._on_node[node].add(pod.key)
        uid = record.pod.uid
        self._queue.after(START_S, lambda: self._start(pod.key, uid))

    def evict(self, pod: Pod) -> None:
        self.faults.strike("evict")
        record = self._records.get(pod.key)
        if record is None or record.pod.uid != pod.uid or record.pod.is_terminating:
            return
        for budget in self._budgets:
            status = self._budget_status(budget)
            if status.covers(record.pod) and status.disruptions_allowed < 1:
                raise TransientError(f"disruption budget {budget.namespace}/{budget.name} allows no disruption", 10.0)
        self._ledger.evictions += 1
        self._put(record, msgspec.structs.replace(record.pod, deleted_at=self._clock.now()))
        self._queue.after(record.pod.grace_s, lambda: self._gone(record.pod.key, record.pod.uid))

    def set_draining(self, node: str, draining: bool) -> None:
        self.faults.strike("set_draining")
        known = self._node(node)
        taints = tuple(taint for taint in known.taints if taint != DRAINING_TAINT)
        if draining:
            taints += (DRAINING_TAINT,)
        self._set_node(msgspec.structs.replace(known, taints=taints, is_unschedulable=draining))

    def delete_node(self, node: str) -> None:
        self.faults.strike("delete_node")
        if node in self._nodes:
            self.lose_pods(node)
            del self._nodes[node], self._on_node[node], self._held[node]
            self._touch()

    # What the cloud does to nodes.

    def add_node(self, node: Node) -> None:
        """A node registers; its DaemonSet pods are bound at once."""
        self._nodes[node.name] = node
        self._on_node[node.name] = set()
        self._held[node.name] = {}
        for task in self._daemons:
            self._start_daemon(task, node)
        self._touch()

    def set_ready(self, node: str, ready: bool) -> None:
        if node in self._nodes:
            self._set_node(msgspec.structs.replace(self._nodes[node], is_ready=ready))
            self._changes += 1

    def lose_pods(self, node: str) -> int:
        """A node's machine is gone, its pods with it; returns how many were work."""
        records = [self._records[key] for key in sorted(self._on_node.get(node, ()))]
        for record in records:
            self._remove(record, fails=not record.pod.is_daemon)
        return sum(not record.pod.is_daemon for record in records)

    # What users do.

    def add_daemon(self, task: Task) -> None:
        self._daemons.append(task)

    def add_budget(self, budget: Budget) -> None:
        self._budgets.append(budget)

    def arrive(self, arrival: Arrival) -> None:
        """A controller appears with its pods."""
        controller = Controller(arrival.controller, arrival.task, arrival.replicas)
        self._controllers[controller.key] = controller
        if arrival.task.runs_s is not None:
            self._ledger.arrived += arrival.replicas
        for _ in range(arrival.replicas):
            self._create(controller)

    def rescale(self, rescale: Rescale) -> None:
        controller = self._controllers[f"{rescale.namespace}/{rescale.name}"]
        controller.wanted = rescale.replicas
        surplus = sorted(controller.pods)[rescale.replicas :]
        for key in surplus:
            self._remove(self._records[key], fails=False)
        self._refill(controller)

    # Moves (the MigrationPort changes pods through these).

    def pod(self, key: str) -> Pod | None:
        record = self._records.get(key)
        return record.pod if record is not None else None

    def reserve(self, node: str, token: str, requests: Resources) -> None:
        """Keep room on a node; ConflictError where there is none, NotFoundError where there is no such node."""
        if not self._node(node).is_ready or not self._has_room(node, requests):
            raise ConflictError(f"node {node} has no room")
        self._hold(node, token, requests)

    def unreserve(self, node: str, token: str) -> None:
        self._held.get(node, {}).pop(token, None)

    def relocate(self, key: str, target: str) -> None:
        """A pod goes on running on another node."""
        record = self._records[key]
        source = record.pod.node or ""
        self._on_node[source].discard(key)
        self._held[source].pop(key, None)
        self._on_node[target].add(key)
        self._hold(target, key, record.pod.requests)
        self._put(record, msgspec.structs.replace(record.pod, node=target))
        self._changes += 1

    # Inside.

    def _record(self, pod: Pod) -> _Record:
        record = self._records.get(pod.key)
        if record is None or record.pod.uid != pod.uid:
            raise NotFoundError(f"pod {pod.key} is gone")
        return record

    def _node(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise NotFoundError(f"node {name} is gone")
        return node

    def _touch(self) -> None:
        self._view = None

    def _put(self, record: _Record, pod: Pod) -> None:
        record.pod = pod
        self._touch()

    def _set_node(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._touch()

    def _hold(self, node: str, token: str, requests: Resources) -> None:
        self._held[node][token] = requests

    def _has_room(self, node: str, requests: Resources) -> bool:
        used = sum_of(self._held[node].values())
        return requests.fits_in(self._nodes[node].allocatable - used)

    def _create(self, controller: Controller) -> None:
        pod = controller.next_pod(self._clock.now())
        controller.pods.add(pod.key)
        self._records[pod.key] = _Record(pod, controller, controller.task.runs_s)
        self._touch()
        self._changes += 1

    def _start_daemon(self, task: Task, node: Node) -> None:
        now = self._clock.now()
        pod = Pod(
            namespace=task.namespace,
            name=f"{task.name}-{node.name}",
            requests=task.requests,
            uid=f"uid-{task.name}-{node.name}",
            labels=task.labels,
            owner=Owner("DaemonSet", task.name),
            constraints=task.constraints,
            phase=Phase.RUNNING,
            node=node.name,
            created_at=now,
            started_at=now,
        )
        self._records[pod.key] = _Record(pod, None, None)
        self._on_node[node.name].add(pod.key)
        self._hold(node.name, pod.key, pod.requests)

    def _start(self, key: str, uid: str) -> None:
        record = self._records.get(key)
        if record is None or record.pod.uid != uid or record.pod.node is None:
            return
        now = self._clock.now()
        self._ledger.waits_s.append(now - record.pod.created_at)
        self._put(record, msgspec.structs.replace(record.pod, phase=Phase.RUNNING, started_at=now))
        if record.runs_s is not None:
            self._queue.after(record.runs_s, lambda: self._finish(key, uid))

    def _finish(self, key: str, uid: str) -> None:
        """A batch pod ends well, wherever it runs by now."""
        record = self._records.get(key)
        if record is None or record.pod.uid != uid:
            return
        self._ledger.finished += 1
        self._ledger.finished_tasks.append(record.controller.key if record.controller is not None else key)
        if record.controller is not None:
            record.controller.wanted -= 1
        self._remove(record, fails=False)

    def _gone(self, key: str, uid: str) -> None:
        """An evicted pod's grace is over."""
        record = self._records.get(key)
        if record is not None and record.pod.uid == uid:
            self._remove(record, fails=True)

    def _remove(self, record: _Record, *, fails: bool) -> None:
        """A pod goes; `fails`: before its time, so that its work is lost and its controller starts another."""
        pod = record.pod
        del self._records[pod.key]
        if pod.node is not None and pod.node in self._on_node:
            self._on_node[pod.node].discard(pod.key)
            self._held[pod.node].pop(pod.key, None)
        self._touch()
        self._changes += 1
        controller = record.controller
        if controller is None:
            return
        controller.pods.discard(pod.key)
        if not fails:
            return
        if record.runs_s is not None and pod.started_at is not None:
            self._ledger.work_lost_s += self._clock.now() - pod.started_at
        if controller.kind is ControllerKind.BARE:
            self._ledger.lost += record.runs_s is not None
        else:
            self._ledger.restarts += 1
            self._queue.after(CONTROLLER_S, lambda: self._refill(controller))

    def _refill(self, controller: Controller) -> None:
        while len(controller.pods) < controller.wanted:
            self._create(controller)

    def _budget_status(self, budget: Budget) -> DisruptionBudget:
        """What the disruption controller would write: healthy pods above the minimum."""
        healthy = sum(
            record.pod.namespace == budget.namespace
            and record.pod.phase is Phase.RUNNING
            and not record.pod.is_terminating
            and budget.selector.matches(record.pod.labels)
            for record in self._records.values()
        )
        return DisruptionBudget(budget.namespace, budget.name, budget.selector, max(0, healthy - budget.min_available))


def sum_of(items: Iterable[Resources]) -> Resources:
    total = NOTHING
    for item in items:
        total += item
    return total
