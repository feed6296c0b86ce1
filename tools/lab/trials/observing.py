"""What is seen of a trial by its cycles: what its tasks went through, and what `htas cost` says beside the invoice."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.documents.books import books_of
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Pod
from htas.model.reasons import ProposalReason
from htas.profiler.accounts import ALWAYS
from htas.sandbox.migration import BANDWIDTH_BYTES_PER_S, TERMINATION_S
from htas.sandbox.world import World
from tools.lab.contenders import ACQUISITION_LAG_S


@dataclass(slots=True)
class Observer:
    """Listens to a daemon's cycles and writes down what the ledger does not."""

    migrated_at: list[float] = field(default_factory=list)
    migration_s: list[float] = field(default_factory=list)
    deprovisioned_at: list[float] = field(default_factory=list)
    emptied: int = 0
    _evicted: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By owner: when a pod of it was evicted, and how long that had run."""
    _replacements: set[str] = field(default_factory=set)

    def saw(self, result: CycleResult) -> None:
        plan, now = result.plan, result.snapshot.taken_at
        self._replacements |= {launch.claim for launch in plan.launches if launch.why.startswith("replaces")}
        if self._evicted:
            self._see_restarts(result)
        reasons = {removing.node: removing.reason for removing in plan.remove}
        for outcome in result.outcomes:
            if outcome.status is not OutcomeStatus.DONE:
                continue
            if outcome.action is Action.DRAIN and outcome.subject in reasons:
                if reasons[outcome.subject] is ProposalReason.EMPTY:
                    self.emptied += 1
                else:
                    self.deprovisioned_at.append(now)
            elif outcome.action in (Action.MIGRATE, Action.EVICT):
                self._moved(outcome, result)

    def _moved(self, outcome: Outcome, result: CycleResult) -> None:
        """A task is moved. T = C ÷ B + K; where a machine was bought for it, also the time it took to come."""
        now = result.snapshot.taken_at
        pod = next((pod for pod in result.snapshot.cluster.pods if pod.key == outcome.subject), None)
        if pod is None:
            return
        self.migrated_at.append(now)
        if outcome.action is Action.EVICT:
            ran_s = now - pod.started_at if pod.started_at is not None else 0.0
            self._evicted[_owner(pod)] = now, ran_s if pod.kind.value == "batch" else 0.0
            return
        seconds = pod.requests.memory_bytes / BANDWIDTH_BYTES_PER_S + TERMINATION_S
        if outcome.target in self._replacements:
            seconds += ACQUISITION_LAG_S
        self.migration_s.append(seconds)

    def _see_restarts(self, result: CycleResult) -> None:
        """An evicted task runs again: it stood still until now, and what it had run before was in vain."""
        for pod in result.snapshot.cluster.pods:
            if pod.started_at is None or pod.is_terminating:
                continue
            evicted_at, ran_s = self._evicted.get(_owner(pod), (pod.started_at, 0.0))
            if pod.started_at > evicted_at:
                del self._evicted[_owner(pod)]
                self.migration_s.append(pod.started_at - evicted_at + ran_s)


def _owner(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.owner.name}" if pod.owner is not None else pod.key


EVERY_S = 30.0
"""Between two looks: bills that run are rounded up anew every minute, or every second."""


@dataclass(slots=True)
class Reckoning:
    """Looks at the bill and at the invoice after cycles, machines that run included.

    Sums are price an hour in billionths × billed seconds.
    """

    world: World
    daemon: Daemon
    said: int = 0
    invoice: int = 0
    off: int = 0
    """The greatest difference seen, whichever of both was more."""
    looks: int = 0
    _next_at: float = 0.0

    def saw(self, result: CycleResult) -> None:
        if result.snapshot.taken_at >= self._next_at:
            self._next_at = result.snapshot.taken_at + EVERY_S
            self.look()

    def look(self) -> None:
        policy, now = self.daemon.policy, self.world.clock.now()
        self.said = books_of(lambda: nullcontext(self.daemon.ports.store), policy, ALWAYS, now).total
        self.invoice = self.world.ledger.nano_seconds(policy.catalogue.billing, now)
        self.off = max(self.off, abs(self.said - self.invoice))
        self.looks += 1
