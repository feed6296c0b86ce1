"""A real daemon over a simulated cluster, with virtual time and a journal in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.sandbox.world import World
from tools.lab.contenders import Contender
from tools.lab.results import Timing


@dataclass(slots=True)
class PlanningTimes:
    """Real time that cycles took to plan."""

    cycles: int = 0
    planning_s: float = 0.0
    max_planning_s: float = 0.0

    def saw(self, result: CycleResult) -> None:
        self.cycles += 1
        self.planning_s += result.planning_s
        self.max_planning_s = max(self.max_planning_s, result.planning_s)

    def timing(self, contender: Contender, workload: str, seed: int, took_s: float) -> Timing:
        return Timing(contender.name, workload, seed, took_s, self.cycles, self.planning_s, self.max_planning_s)


@contextmanager
def daemon_of(contender: Contender, world: World, *listeners: Callable[[CycleResult], None]) -> Iterator[VirtualDriver]:
    """What drives a contender's daemon over a world; `listeners` are told of each cycle."""
    store = SqliteStore(":memory:")
    try:
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
        daemon = Daemon(ports, contender.policy, keeps_history=False, planner=contender.planner)
        daemon.listeners += listeners
        yield VirtualDriver(world, daemon, event_stages=contender.event_stages)
    finally:
        store.close()
