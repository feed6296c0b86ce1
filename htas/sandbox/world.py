"""The world: cluster, cloud and clock together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

from htas.model.claims import Headroom
from htas.model.nodes import Node
from htas.ports import PermanentError
from htas.sandbox.announcer import SandboxAnnouncer
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cloud import Chances, SandboxCloud
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.horizontal import HorizontalAutoscaler
from htas.sandbox.ledger import Ledger
from htas.sandbox.migration import ATTEMPTS, TERMINATION_S, Rates, SandboxMigration
from htas.sandbox.workload import Workload

MONDAY = 1_767_571_200.0
"""Where virtual time begins unless told otherwise: midnight UTC of Monday, 5 January 2026."""


class World:
    """Everything outside HTAS. `advance_to` lets time pass; the ports answer for the present."""

    def __init__(
        self,
        *,
        start: float = MONDAY,
        seed: int = 1,
        startup_s: float = 60.0,
        quota: Headroom | None = None,
        chances: Chances | None = None,
        rates: Rates | None = None,
        termination_s: float = TERMINATION_S,
        attempts: int = ATTEMPTS,
        cluster: type[SandboxCluster] = SandboxCluster,
    ) -> None:
        self.clock = VirtualClock(start)
        self.queue = EventQueue(self.clock)
        self.ledger = Ledger()
        self.cluster = cluster(self.clock, self.queue, self.ledger)
        self.cloud = SandboxCloud(
            self.clock,
            self.queue,
            self.cluster,
            self.ledger,
            startup_s=startup_s,
            quota=quota,
            chances=chances,
            seed=seed,
        )
        self.horizontal = HorizontalAutoscaler(self.clock, self.queue, self.cluster.counted, self.cluster.rescale)
        self._arrives_at: dict[str, float] = {}
        self.migration = SandboxMigration(
            self.clock,
            self.queue,
            self.cluster,
            self.ledger,
            rates=rates,
            termination_s=termination_s,
            attempts=attempts,
        )
        self.announcer = SandboxAnnouncer(self.cluster)

    def load(self, workload: Workload) -> None:
        """Let a workload arrive, counted from now; raises PermanentError where a name in it makes no sense."""
        start = self.clock.now()
        self._check_names(workload, start)
        for name, labels in workload.namespaces.items():
            self.cluster.add_namespace(name, labels)
        for task in workload.daemons:
            self.cluster.add_daemon(task)
        for budget in workload.budgets:
            self.cluster.add_budget(budget)
        for arrival in workload.arrivals:
            self.queue.at(start + arrival.at_s, partial(self.cluster.arrive, arrival))
        for rescale in workload.rescales:
            self.queue.at(start + rescale.at_s, partial(self.cluster.rescale, rescale))
        for scaler in workload.scalers:
            self.horizontal.add(scaler)
        for load in workload.loads:
            self.queue.at(start + load.at_s, partial(self.horizontal.serve, load))

    def _check_names(self, workload: Workload, start: float) -> None:
        """Controllers have names of their own, what is rescaled is there by then, and what gets requests is scaled."""
        for arrival in workload.arrivals:
            key = f"{arrival.task.namespace}/{arrival.task.name}"
            if key in self._arrives_at:
                raise PermanentError(f"workload {workload.name}: {key} arrives twice; give each task a name of its own")
            self._arrives_at[key] = start + arrival.at_s
        scaled = {scaler.key for scaler in workload.scalers}
        for load in workload.loads:
            if load.key not in scaled:
                raise PermanentError(
                    f"workload {workload.name}: {load.key} gets requests and has no scaler; give it one"
                )
        for rescale in workload.rescales:
            key = f"{rescale.namespace}/{rescale.name}"
            if start + rescale.at_s < self._arrives_at.get(key, math.inf):
                raise PermanentError(
                    f"workload {workload.name}: {key} is rescaled before anything of that name arrives"
                )

    def add_nodes(self, nodes: Iterable[Node]) -> None:
        """Fixed capacity that no cloud sells."""
        for node in nodes:
            self.cluster.add_node(node)

    def advance_to(self, instant: float) -> None:
        """Let everything happen up to an instant."""
        self.queue.play_until(instant)

    def next_event_at(self) -> float | None:
        return self.queue.next_at()
