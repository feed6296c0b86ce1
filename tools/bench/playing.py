"""Playing a workload in the sandbox with pods whose run lengths are stated, learned on the way, or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.policy import Policy
from htas.sandbox.workload import Arrival, Workload
from htas.sandbox.world import World
from tools.bench.estimating import ends_at

TAIL_S = 3600.0
"""How long after the last task could have ended the play goes on."""


@dataclass(frozen=True, slots=True)
class Played:
    """What playing a workload came to. Money in units of the currency, times in seconds."""

    cost: float
    machines: int
    machine_hours: float
    moved: int
    mean_wait_s: float
    wait_p99_s: float
    finished: int
    lost: int


def play(work: Workload, policy: Policy, *, states: bool, seed: int = 1) -> Played:
    """Play a workload to its end. `states`: its pods state exact run lengths; else `policy.run_lengths` counts."""
    arrivals = work.arrivals if states else tuple(_unstated(work.arrivals))
    world = World(start=0.0, seed=seed)
    world.load(msgspec.structs.replace(work, arrivals=arrivals))
    store = SqliteStore(":memory:")
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    daemon = Daemon(ports, policy, keeps_history=False)
    end = max(ends_at(arrival) for arrival in arrivals) + TAIL_S
    VirtualDriver(world, daemon).run_until(end)
    store.close()
    ledger = world.ledger
    billed = ledger.nano_seconds(policy.catalogue.billing, end)
    return Played(
        cost=billed / 3600 / 10**9,
        machines=len(ledger.rentals),
        machine_hours=ledger.machine_hours(end),
        moved=ledger.migrations,
        mean_wait_s=ledger.mean_wait_s(),
        wait_p99_s=ledger.wait_percentile_s(0.99),
        finished=ledger.finished,
        lost=ledger.lost,
    )


def _unstated(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    for arrival in arrivals:
        yield msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, stated_s=None))
