"""Checkpoint moves in the sandbox: the pod runs on at its source until it runs at the target.

A move takes T = C ÷ B + K (HTAS paper 5.3): the image's size (here the pod's memory request) over the bandwidth, and
the time to end the pod at the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from htas.model.pods import Phase, Pod
from htas.model.snapshot import Move
from htas.ports import ConflictError, NotFoundError
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger

BANDWIDTH_BYTES_PER_S = 150_000_000
"""1,200 Mbit/s per machine (HTAS paper 6.2)."""
TERMINATION_S = 2.0
"""K: to end the pod at its source."""


class SandboxMigration:
    """Implements MigrationPort."""

    def __init__(
        self,
        clock: VirtualClock,
        queue: EventQueue,
        cluster: SandboxCluster,
        ledger: Ledger,
        *,
        bandwidth_bytes_per_s: int = BANDWIDTH_BYTES_PER_S,
        termination_s: float = TERMINATION_S,
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._cluster = cluster
        self._ledger = ledger
        self.bandwidth_bytes_per_s = bandwidth_bytes_per_s
        self.termination_s = termination_s
        self.faults = Faults()
        self._moves: dict[str, Move] = {}

    def start(self, pod: Pod, target: str) -> None:
        self.faults.strike("migrate")
        if pod.key in self._moves:
            return
        present = self._cluster.pod(pod.key)
        if present is None or present.uid != pod.uid:
            raise NotFoundError(f"pod {pod.key} is gone")
        if present.node == target:
            return
        if present.phase is not Phase.RUNNING or present.node is None or present.is_terminating:
            raise ConflictError(f"pod {pod.key} does not run, or not for long")
        self._cluster.reserve(target, _token(pod.key), present.requests)
        self._moves[pod.key] = Move(pod.key, present.node, target, "checkpoint", self._clock.now())
        seconds = present.requests.memory_bytes / self.bandwidth_bytes_per_s + self.termination_s
        self._queue.after(seconds, partial(self._switch, present, target))

    def moving(self) -> Sequence[Move]:
        return tuple(self._moves.values())

    def _switch(self, pod: Pod, target: str) -> None:
        """The restored process runs at the target, unless the pod or the target is gone: then nothing has changed."""
        del self._moves[pod.key]
        self._cluster.unreserve(target, _token(pod.key))
        present = self._cluster.pod(pod.key)
        if present is None or present.uid != pod.uid or present.is_terminating:
            return
        try:
            self._cluster.reserve(target, _token(pod.key), pod.requests)
        except (ConflictError, NotFoundError):
            return
        self._cluster.unreserve(target, _token(pod.key))
        self._cluster.relocate(pod.key, target)
        self._ledger.migrations += 1


def _token(key: str) -> str:
    return f"move of {key}"
