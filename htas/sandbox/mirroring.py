"""A sandbox's cluster whose work is that of another one: its pods come and end as they did there.

Where they are placed, when they start and whether they are moved is up to who schedules here. So how long a pod runs is
known only once it has ended there, and a pod that is lost here comes again as often as it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod, WorkKind
from htas.model.snapshot import ClusterView
from htas.sandbox.budgets import BudgetBook
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.controllers import Controller
from htas.sandbox.ledger import Ledger
from htas.sandbox.workload import Budget, ControllerKind, Task

AGAIN = "~"
"""Stands in the uid of a pod that was lost here, between that of the pod it mirrors and a number."""
_KINDS = {"Job": ControllerKind.JOB, "StatefulSet": ControllerKind.STATEFUL_SET}


def mirrored_uid(uid: str) -> str:
    """The uid, in the other cluster, of the pod that one of this uid mirrors."""
    return uid.partition(AGAIN)[0]


@dataclass(slots=True, kw_only=True)
class Mirrored(Controller):
    """Keeps one pod of another cluster coming: itself at first, and after each loss another like it."""

    pod: Pod
    is_taken: Callable[[str], bool]
    """Whether a pod of that key is here."""

    @property
    def key(self) -> str:
        return f"{self.pod.namespace}/{mirrored_uid(self.pod.uid)}"

    def next_pod(self, now: float) -> Pod:
        self.serial += 1
        if self.serial == 1 and not self.is_taken(self.pod.key):
            return self.pod
        pod, again = self.pod, self.serial - 1
        name = pod.name if self.kind is ControllerKind.STATEFUL_SET and not self.is_taken(pod.key) else ""
        return msgspec.structs.replace(
            pod,
            name=name or f"{pod.name}-again-{again}",
            uid=f"{mirrored_uid(pod.uid)}{AGAIN}{again}" if again else pod.uid,
            phase=Phase.PENDING,
            node=None,
            nominated_node=None,
            created_at=now,
            started_at=None,
            ready_since=None,
            deleted_at=None,
        )


class MirroringCluster(SandboxCluster):
    """Implements ClusterPort; `mirror`, `ends_after` and `withdraw` tell it what happens in the other cluster."""

    def __init__(self, clock: VirtualClock, queue: EventQueue, ledger: Ledger) -> None:
        super().__init__(clock, queue, ledger)
        self.other = ClusterView()
        """The other cluster, as it was seen last: volumes and namespaces are its."""
        self.overrun_s = 0.0
        """For how long pods have run on here that should have ended: their length was not known yet."""
        self._stated: tuple[DisruptionBudget, ...] = ()

    def observe(self) -> ClusterView:
        view, other = super().observe(), self.other
        return msgspec.structs.replace(view, namespaces={**view.namespaces, **other.namespaces}, volumes=other.volumes)

    def mirror(self, pod: Pod) -> None:
        """A pod is in the other cluster; where it is bound to a node that is here as well, it is here, too."""
        kind = ControllerKind.BARE if pod.owner is None else _KINDS.get(pod.owner.kind, ControllerKind.REPLICA_SET)
        task = Task(pod.name, pod.requests, kind=pod.kind, namespace=pod.namespace)
        controller = Mirrored(kind, task, 1, pod=pod, is_taken=lambda key: key in self._records)
        self._controllers[controller.key] = controller
        self._refill(controller)
        controller.starts = int(pod.started_at is not None)
        if pod.node is not None:
            self._start_soon(pod)

    def has_mirrored(self, pod: Pod) -> bool:
        return f"{pod.namespace}/{pod.uid}" in self._controllers

    def ends_after(self, pod: Pod, runs_s: float) -> None:
        """A pod has ended by itself in the other cluster after so long: here it ends after as long from its start."""
        controller = self._controllers[f"{pod.namespace}/{pod.uid}"]
        controller.task = msgspec.structs.replace(controller.task, runs_s=runs_s)
        now = self._clock.now()
        for key in sorted(controller.pods):
            record = self._records[key]
            record.runs_s = runs_s
            started_at = record.pod.started_at
            if started_at is not None:
                if record.pod.kind is WorkKind.BATCH:
                    self.overrun_s += max(0.0, now - started_at - runs_s)
                self._queue.at(max(now, started_at + runs_s), partial(self._finish, key, record.pod.uid))

    def withdraw(self, pod: Pod) -> None:
        """A pod was removed in the other cluster: here, too."""
        controller = self._controllers.pop(f"{pod.namespace}/{pod.uid}")
        controller.wanted = 0
        self._remove_surplus(controller)

    def forget_ended(self) -> None:
        """Forget those who will have no pod any more."""
        over = [key for key, known in self._controllers.items() if known.wanted <= 0 and not known.pods]
        for key in over:
            del self._controllers[key]

    def show_node(self, node: Node) -> None:
        """A node that nobody buys or returns here is as it is in the other cluster."""
        known = self._nodes.get(node.name)
        if known is None:
            self.add_node(node)
        elif known != node:
            self.set_ready(node.name, node.is_ready)
            self._set_node(node)

    def show_budgets(self, budgets: Iterable[DisruptionBudget]) -> None:
        """Budgets ask for as many pods as they do in the other cluster."""
        stated = tuple(msgspec.structs.replace(each, disruptions_allowed=0, current_healthy=0) for each in budgets)
        if stated == self._stated:
            return
        self._stated = stated
        self._budgets = BudgetBook(self.pod)
        for each in stated:
            if each.selector is not None:
                self.add_budget(
                    Budget(each.namespace, each.name, each.selector, each.desired_healthy, each.always_allows_unready)
                )
