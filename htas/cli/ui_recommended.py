"""`htas ui --demo --recommend`: the demo's day on nodes that are there, under kube-scheduler, with HTAS looking on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.cycle import Daemon
from htas.daemon.cycle_view import seen, seen_of_course
from htas.daemon.recommend.recommender import Recommender
from htas.daemon.recommend.watching import WatchingPorts
from htas.daemon.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.experiments.baselines import fixed_set
from htas.experiments.baselines.default_kubernetes import flavour_of
from htas.experiments.workloads.day import day
from htas.model.modes import Charge
from htas.ports import StorePort
from htas.sandbox.world import World
from htas.web.seat import RECOMMEND, Seat

LOOK_S = 60.0
"""Virtual time between two looks of HTAS."""


class PlayedBeside:
    """The sandbox's day as somebody else runs it: quickly up to an hour, then at a pace that can be watched."""

    def __init__(self, seed: int, hours: float, speed: float) -> None:
        policy = load_configuration(config_file("htas.yaml")).policy
        work, self._world = day(seed), World(seed=seed)
        world = self._world
        flavour = policy.catalogue.named(flavour_of(policy.catalogue))
        assert flavour is not None
        nodes = fixed_set.nodes_for(flavour, work.arrivals)
        world.add_nodes(msgspec.structs.replace(node, created_at=world.clock.now()) for node in nodes)
        world.load(work)
        journal, self._store = SqliteStore(":memory:"), SqliteStore(":memory:")
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, journal, world.announcer)
        scheduler = Daemon(ports, policy, keeps_history=False, planner=fixed_set.plan)
        self._driver = VirtualDriver(world, scheduler)
        watching = WatchingPorts(world.clock, world.cluster, self._store, world.announcer)
        self._htas = Recommender(watching, policy, Charge())
        self._hours, self._speed = hours, speed
        self.seat = Seat(RECOMMEND, lambda: policy, self._reading, world.clock.now)
        self._htas.listeners.append(lambda result: self.seat.observe(seen(result, self._htas)))
        self._htas.course_listeners.append(lambda *told: self.seat.chronicle.observe(*seen_of_course(*told)))

    @contextmanager
    def _reading(self) -> Iterator[StorePort]:
        yield self._store

    def play(self) -> None:
        """To the hour and then on, for as long as the process lives; without a speed it stands still there."""
        end = self._world.clock.now() + self._hours * 3600
        self._htas.run_cycle()
        while self._world.clock.now() < end:
            self._look(min(end, self._world.clock.now() + LOOK_S))
        while self._speed > 0:
            began = time.monotonic()
            self._look(self._world.clock.now() + LOOK_S)
            time.sleep(max(0.0, LOOK_S / self._speed - (time.monotonic() - began)))

    def _look(self, until: float) -> None:
        self._driver.run_until(until)
        self._htas.run_cycle()
