"""The demo's day behind `htas ui --demo`: as HTAS runs it, or as somebody else does, with HTAS looking on."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.demo import world_of
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.cycle_view import seen, seen_of_course
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.recommend.recommender import Recommender
from htas.daemon.recommend.watching import WatchingPorts
from htas.execution.ports import Ports
from htas.model.modes import Approval, Charge
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy
from htas.model.policy import Fallback, FallbackMode, Policy
from htas.ports import StorePort
from htas.sandbox.fixed_nodes import nodes_for
from htas.sandbox.workload import Arrival, ControllerKind, Workload
from htas.sandbox.workloads.day import day
from htas.sandbox.world import World
from htas.web.seat import RECOMMEND, Seat


def with_deployments(work: Workload) -> Workload:
    """The same work, with the ReplicaSets named after Deployments, as in a real cluster."""
    return msgspec.structs.replace(work, arrivals=tuple(map(_of_deployment, work.arrivals)))


def _of_deployment(arrival: Arrival) -> Arrival:
    if arrival.controller is not ControllerKind.REPLICA_SET:
        return arrival
    task = msgspec.structs.replace(arrival.task, template=f"Deployment/{arrival.task.name}")
    return msgspec.structs.replace(arrival, task=task)


FLAVOUR = "m1.medium"
"""The flavour of the nodes that are there."""


def as_kube_scheduler(policy: Policy) -> Policy:
    """A policy that only places pods, as kube-scheduler's defaults do: on the node with the most left."""
    least_allocated = Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.LEAST_ALLOCATED))
    return msgspec.structs.replace(policy, groups=(), packing=least_allocated, fallback=Fallback(mode=FallbackMode.OFF))


class PlayedDay(ABC):
    """The sandbox's day on virtual time: quickly up to an hour, then at a pace that can be watched."""

    seat: Seat
    QUICK_S: ClassVar[float]
    WATCHED_S: ClassVar[float]
    """Virtual time that passes at a stretch: up to the hour, and between two looks at the clock of the wall."""

    def __init__(self, world: World, hours: float, speed: float) -> None:
        self._world, self._store = world, SqliteStore(":memory:")
        self._hours, self._speed = hours, speed

    @contextmanager
    def _reading(self) -> Iterator[StorePort]:
        yield self._store

    def play(self) -> None:
        """To the hour and then on, for as long as the process lives; without a speed it stands still there."""
        end = self._world.clock.now() + self._hours * 3600
        while (now := self._world.clock.now()) < end:
            self._run_until(min(end, now + self.QUICK_S))
        while self._speed > 0:
            began = time.monotonic()
            if not self.stands_still():
                self._run_until(self._world.clock.now() + self.WATCHED_S)
            time.sleep(max(0.0, self.WATCHED_S / self._speed - (time.monotonic() - began)))

    def stands_still(self) -> bool:
        """Whether the day waits for its reader."""
        return False

    @abstractmethod
    def _run_until(self, instant: float) -> None: ...


class Played(PlayedDay):
    """As HTAS runs it. With `approval` whatever would disturb running pods waits for a word, which the pages' reader
    may say.
    """

    QUICK_S, WATCHED_S = 900.0, 20.0
    AFTER_A_WORD_S = 120.0
    """Virtual time in which what was approved is seen to happen."""

    def __init__(self, seed: int, hours: float, speed: float, approval: Approval | None = None) -> None:
        loaded = load_configuration(config_file("htas.yaml"))
        policy = msgspec.structs.replace(loaded.policy, approval=approval)
        world = world_of(loaded, seed)
        world.load(with_deployments(day(seed)))
        super().__init__(world, hours, speed)
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self._store, world.announcer)
        self._daemon = Daemon(ports, policy)
        self._driver = VirtualDriver(world, self._daemon)
        self.seat = Seat("demo", lambda: policy, self._reading, world.clock.now)
        self.seat.approvals = self._daemon.approvals
        self._daemon.listeners.append(lambda result: self.seat.observe(seen(result, self._daemon)))
        self._waiting, self._goes_on_until = 0, 0.0

    def stands_still(self) -> bool:
        """While proposals wait for a word, since the day is quicker than its reader; on for a while after each word."""
        waiting, now = self._daemon.approvals.waiting, self._world.clock.now()
        if waiting < self._waiting:
            self._goes_on_until = now + self.AFTER_A_WORD_S
        self._waiting = waiting
        return waiting > 0 and now >= self._goes_on_until

    def _run_until(self, instant: float) -> None:
        self._driver.run_until(instant)


class PlayedBeside(PlayedDay):
    """As somebody else runs it: on nodes that are there, under kube-scheduler. HTAS looks on, once a minute."""

    QUICK_S = WATCHED_S = 60.0

    def __init__(self, seed: int, hours: float, speed: float) -> None:
        policy = load_configuration(config_file("htas.yaml")).policy
        work, world = with_deployments(day(seed)), World(seed=seed)
        super().__init__(world, hours, speed)
        flavour = policy.catalogue.named(FLAVOUR)
        assert flavour is not None
        nodes = nodes_for(flavour, work.arrivals)
        world.add_nodes(msgspec.structs.replace(node, created_at=world.clock.now()) for node in nodes)
        world.load(work)
        journal = SqliteStore(":memory:")
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, journal, world.announcer)
        scheduler = Daemon(ports, as_kube_scheduler(policy), keeps_history=False)
        self._driver = VirtualDriver(world, scheduler)
        watching = WatchingPorts(world.clock, world.cluster, self._store, world.announcer)
        self._htas = Recommender(watching, policy, Charge())
        self.seat = Seat(RECOMMEND, lambda: policy, self._reading, world.clock.now)
        self._htas.listeners.append(lambda result: self.seat.observe(seen(result, self._htas)))
        self._htas.course_listeners.append(lambda *told: self.seat.chronicle.observe(*seen_of_course(*told)))

    def play(self) -> None:
        self._htas.run_cycle()
        super().play()

    def _run_until(self, instant: float) -> None:
        self._driver.run_until(instant)
        self._htas.run_cycle()
