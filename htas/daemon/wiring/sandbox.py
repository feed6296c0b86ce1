"""The sandbox as the world: within this process, or in one of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from htas.config.loader import Loaded
from htas.config.settings import SandboxSetting
from htas.model.policy import NodeGroup
from htas.sandbox.cloud import Chances
from htas.sandbox.migration import Rates
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.server import WorldServer
from htas.sandbox.workloads.day import day
from htas.sandbox.world import World


def new_world(setting: SandboxSetting, attempts: int, groups: Sequence[NodeGroup] = ()) -> World:
    """A sandbox as configured, its work already on its way; a move in it is taken back after so many attempts."""
    world = World(
        seed=setting.seed,
        startup_s=setting.startup_delay,
        quota=setting.quota.model(),
        chances=Chances(setting.faults.out_of_stock, setting.faults.boot_failure, setting.faults.never_registers),
        rates=Rates(setting.moves.bandwidth, setting.moves.dump, setting.moves.restore),
        termination_s=setting.moves.termination,
        attempts=attempts,
    )
    world.cloud.startup_taints = tuple(taint for group in groups for taint in group.startup_taints)
    if setting.workload == "day":
        world.load(day(setting.seed))
    return world


@contextmanager
def opened_world(loaded: Loaded, setting: SandboxSetting) -> Iterator[RemoteWorld]:
    """The configured sandbox: the one at its address, or one of our own that ends with us."""
    with ExitStack() as stack:
        if setting.address is not None:
            # It states its own speed: what is configured here was meant for a world of our own.
            world = RemoteWorld(loaded.directory / setting.address)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="htas-")))
            server = WorldServer(
                new_world(setting, loaded.policy.migration.attempts, loaded.policy.groups),
                folder / "world.sock",
                setting.speed,
            )
            server.start()
            stack.callback(server.stop)
            world = RemoteWorld(folder / "world.sock", setting.speed)
        stack.callback(world.close)
        yield world
