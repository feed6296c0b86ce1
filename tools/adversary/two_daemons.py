"""Two daemons act at once, each sure that it leads and each with a journal of its own, for an hour."""

from __future__ import annotations

from contextlib import suppress

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import Daemon
from htas.execution.ports import Ports
from htas.model.stages import ALL_STAGES
from htas.ports import HTASError
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import DAY_S, HOUR_S, Scene, jobs

CYCLE_S = 10.0


def both_lead() -> Verdict:
    """They buy and give back beside each other; then the second ends for good, and the first goes on alone."""
    scene = Scene(jobs(12))
    world = scene.world
    store = SqliteStore(":memory:")
    second = Daemon(
        Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer), scene.policy
    )
    while scene.at_s < HOUR_S:
        for daemon in (scene.daemon, second):
            with suppress(HTASError):  # its next cycle sees what the other one did
                daemon.run_cycle(ALL_STAGES)
        world.advance_to(world.clock.now() + CYCLE_S)
    store.close()
    scene.begin()
    scene.play_to_its_end(DAY_S)
    return verdict(scene.told(), scene.unfinished() | scene.broken())


def attacks() -> list[Attack]:
    return [Attack("two daemons: both sure to lead for an hour", both_lead)]
