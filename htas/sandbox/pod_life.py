"""The life of a sandbox's pods: kubelets start them, they end, controllers replace them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.snapshot import ENDED_KEPT, ClusterView, Ended
from htas.ports import NotFoundError
from htas.sandbox.budgets import BudgetBook
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.controllers import Controller
from htas.sandbox.daemon_sets import daemon_pod, suits
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger
from htas.sandbox.occupancy import Occupancy
from htas.sandbox.workload import ControllerKind, Task

START_S = 1.0
"""From bind to running: the image is there already."""
START_AGAIN_S = 10.0
"""Until a kubelet whose image pull failed tries again; its first back-off."""
CONTROLLER_S = 1.0
"""Until a controller replaces a pod that is gone, or on its way out."""
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace: its name."""


@dataclass(slots=True)
class Record:
    """A pod and what only the world knows of it: who keeps it coming, and how long it really runs."""

    pod: Pod
    controller: Controller | None = None
    runs_s: float | None = None
    daemon: Task | None = None
    repeats_s: float = 0.0
    """By how much it ends later, for work that a move made it do again."""


class PodLife:
    """Pods, nodes and controllers as they are. What users, the cloud and HTAS do to them stands in `cluster.py`."""

    def __init__(self, clock: VirtualClock, queue: EventQueue, ledger: Ledger) -> None:
        self._clock = clock
        self._queue = queue
        self._ledger = ledger
        self.faults = Faults()
        self._records: dict[str, Record] = {}
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

    def pod(self, key: str) -> Pod | None:
        record = self._records.get(key)
        return record.pod if record is not None else None

    def _record(self, pod: Pod) -> Record:
        record = self._present(pod.key, pod.uid)
        if record is None:
            raise NotFoundError(f"pod {pod.key} is gone")
        return record

    def _present(self, key: str, uid: str) -> Record | None:
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

    def _put(self, record: Record, pod: Pod) -> None:
        record.pod = pod
        self._touch()

    def _set_node(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._touch()

    def _create(self, controller: Controller) -> None:
        pod = controller.next_pod(self._clock.now())
        controller.pods.add(pod.key)
        self._appear(Record(pod, controller, controller.task.runs_s))
        self._note_change()

    def _appear(self, record: Record) -> None:
        pod = record.pod
        self._records[pod.key] = record
        if pod.node is not None:
            self._occupancy.seat(pod.node, pod.key, pod.requests)
        self._budgets.appeared(pod)
        self._namespaces.setdefault(pod.namespace, {NAMESPACE_NAME_LABEL: pod.namespace})
        self._touch()

    def _end(self, record: Record, grace_s: float | None) -> None:
        """A pod is given its grace, or what the caller grants, and its controller starts another."""
        self._put(record, msgspec.structs.replace(record.pod, deleted_at=self._clock.now()))
        self._replace_early(record)
        # A pod without a node has nobody to end it: the API server deletes it at once.
        stated_s = record.pod.grace_s if grace_s is None else grace_s
        self._queue.after(
            stated_s if record.pod.node is not None else 0.0, partial(self._gone, record.pod.key, record.pod.uid)
        )

    def _start_daemon(self, task: Task, node: str) -> None:
        known = self._nodes.get(node)
        if known is None or not suits(task, known):
            return
        self._daemon_serial += 1
        self._appear(Record(daemon_pod(task, node, self._daemon_serial, self._clock.now()), daemon=task))

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
        self._ended.append(_end(record.pod, True, self._clock.now()))
        self._ledger.finished += 1
        self._ledger.finished_tasks.append(record.controller.key if record.controller is not None else key)
        if record.controller is not None:
            record.controller.wanted -= 1
        self._remove(record, fails=False)
        if record.controller is not None:  # it ended well while it was to be stopped: its replacement is one too many
            self._remove_surplus(record.controller)

    def _replace_early(self, record: Record) -> None:
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

    def _remove(self, record: Record, *, fails: bool) -> None:
        """A pod goes; `fails`: before its time, so that its work is lost and its controller starts another."""
        pod = record.pod
        del self._records[pod.key]
        self._occupancy.give_back(pod.key)
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
            self._ended.append(_end(pod, False, self._clock.now()))
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


def _end(pod: Pod, succeeded: bool, at: float) -> Ended:
    return Ended(pod.uid, succeeded, at, pod.node, f"{pod.namespace}/{pod.maker}")
