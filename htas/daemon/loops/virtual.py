"""Driving the daemon on virtual time: the demo, traces and stories.

The world is moved from one instant to the next at which anything can happen: an event of the world, the end of a
batching window, a periodic cycle. Nothing sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from htas.daemon.loops.agenda import Agenda
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.model.policy import EmptyRelease
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterView, Memory
from htas.model.stages import EVENT_STAGES, Stage
from htas.planning.cluster.services import served, services_starting
from htas.planning.disrupt.cleaning.timers import rules_change_at
from htas.ports import HTASError

SETTLED_S = 600.0
"""While nothing changes and no timer runs, periodic cycles come no closer than this: they would decide the same."""


class MovableWorld(Protocol):
    """A world whose time can be moved."""

    def advance_to(self, instant: float) -> None: ...

    def next_event_at(self) -> float | None: ...


class VirtualDriver:
    """Runs a daemon's cycles when they are due on the world's clock; `event_stages` are what news brings forward."""

    def __init__(self, world: MovableWorld, daemon: Daemon, *, event_stages: frozenset[Stage] = EVENT_STAGES) -> None:
        self.world = world
        self.daemon = daemon
        cycles = daemon.policy.cycles
        now = daemon.ports.clock.now()
        every_s = {
            Stage.SCHEDULING: cycles.scheduling_s,
            Stage.AUTOSCALING: cycles.autoscaling_s,
            Stage.CLEANING: cycles.cleaning_s,
        }
        self._agenda = Agenda(every_s, cycles.batch_idle_s, cycles.batch_max_s, now, event_stages=event_stages)
        self._seen = daemon.changes()
        self._settled_at: float | None = None
        self._memory = Memory()
        self._edge_timers: list[float] = []
        self._timers: list[float] = []

    def run_until(self, end: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass to `end`, or until `stop` says so after a cycle."""
        while (now := self._advance(end)) < end:
            stages = self._due(now)
            if stages:
                self._cycle(stages, now)
                if stop():
                    return

    def _advance(self, end: float) -> float:
        """Move the world to the next instant that matters, and notice what changed."""
        instants = [end, self._agenda.news_at(), self._net_due(), self.world.next_event_at()]
        target = min(instant for instant in instants if instant is not None)
        now = max(target, self.daemon.ports.clock.now())
        self.world.advance_to(now)
        changes = self.daemon.changes()
        if changes != self._seen:
            self._seen = changes
            self._settled_at = None
            self._agenda.changed(now)
        return now

    def _net_due(self) -> float:
        """When the next periodic cycle runs; a settled cluster is looked at when a timer ends, or now and then."""
        due = self._agenda.periodic_at()
        settled_at = self._settled_at
        if settled_at is None or self._memory.empty_since:  # an empty machine goes just before it is paid for again
            return due
        timers = [instant for instant in (*self._edge_timers, *self._timers) if instant > settled_at]
        return max(due, min([*timers, settled_at + SETTLED_S]))

    def _due(self, now: float) -> frozenset[Stage]:
        return self._agenda.due(now, with_periodic=now >= self._net_due())

    def _cycle(self, stages: frozenset[Stage], now: float) -> None:
        self._agenda.began(stages, now)
        try:
            result = self.daemon.run_cycle(stages)
        except HTASError:  # as in the real driver: it is run again, whatever was wrong
            self._agenda.failed(stages, now)
            return
        self._agenda.ended(now, now, waits_to_buy=result.waits_to_buy)
        if self.daemon.searching.has_answer and self.daemon.policy.cycles.batch_max_s > 0:
            self._agenda.answered(now)
        self._memory = result.plan.memory
        self._timers = rules_change_at(self.daemon.policy, self._memory, result.snapshot)
        edge_s = self.daemon.policy.edge.period_s if self.daemon.has_edge else None
        self._agenda.follow(Stage.EDGE, edge_s, now)
        if self.daemon.has_edge:
            self._edge_timers = _settled_at(result.snapshot.cluster, self.daemon.policy.edge.settle_s)
        looked_at = Stage.CLEANING in stages and (Stage.EDGE in stages or not self.daemon.has_edge)
        is_starting = self.daemon.has_edge and bool(services_starting(result.snapshot.cluster))
        is_settled = looked_at and _is_quiet(result) and not is_starting and not self._waits_for_a_bill(result)
        self._settled_at = now if is_settled else None

    def _waits_for_a_bill(self, result: CycleResult) -> bool:
        """Whether a node is to go just before it is paid for again, or an empty one when no work is expected any more.

        Every cleaning cycle must look at it then.
        """
        policy = self.daemon.policy
        rules = [group.cleaning.empty_release for group in policy.groups]
        is_watched = EmptyRelease.BEFORE_BILLING in rules or policy.look_ahead_s > 0
        is_due = any(kept.reason is Kept.DRAINS_BEFORE_PERIOD_ENDS for kept in result.plan.kept)
        return is_due or (bool(result.plan.memory.empty_since) and is_watched)


def _settled_at(view: ClusterView, settle_s: float) -> list[float]:
    """When each pod of a service and each node will have been Ready for long enough."""
    since = {pod.ready_since for pod in served(view)} | {node.ready_since for node in view.nodes}
    return [instant + settle_s for instant in since if instant is not None]


def _is_quiet(result: CycleResult) -> bool:
    """Nothing was done, nothing waits and nothing is on its way."""
    snapshot = result.snapshot
    return not (
        result.outcomes
        or result.is_held  # patience ends, and a no
        or result.plan.unplaced
        or result.plan.nominate
        or snapshot.drains
        or snapshot.moves
        or snapshot.rearrangement
        or any(claim.state != "Ready" for claim in snapshot.claims)
    )
