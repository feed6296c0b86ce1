"""A trial of what is recommended: the savings that HTAS tells while others schedule, and those that it then makes.

The same work twice. First kube-scheduler runs it on a fixed set of nodes, watched by HTAS, which only recommends. Then
HTAS is in charge of it, beginning with the same nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.recommend.in_charge import policy_in_charge, taken_over
from htas.daemon.recommend.recommender import Recommender
from htas.daemon.recommend.watching import WatchingPorts
from htas.execution.ports import Ports
from htas.model.claims import Instance, InstanceState
from htas.model.modes import Charge
from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.savings import Savings
from htas.model.stages import Stage
from htas.planning.planner import Planner, plan
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Workload
from htas.sandbox.world import World
from tools.lab.baselines import fixed_set

LOOK_S = 10.0
"""Between two looks of HTAS that recommends: pods that come and go in between are not seen at all."""
PLACING = frozenset({Stage.SCHEDULING})
GIVE_UP_S = 4 * 3600.0


@dataclass(frozen=True, slots=True)
class Case:
    """The work, the nodes that are there, and what HTAS knows; machines come in `startup_s`."""

    work: Workload
    nodes: tuple[Node, ...]
    policy: Policy
    startup_s: float
    seed: int = 1
    chances: Chances | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """Price × billed seconds from the first arrival until `until_s`, when the last work had ended either way."""

    real: int
    told: Savings
    made: int
    until_s: float
    real_wait_s: float
    made_wait_s: float

    @property
    def told_saving(self) -> int:
        return self.told.saved_nano_seconds

    @property
    def made_saving(self) -> int:
        return self.real - self.made

    @property
    def off(self) -> float:
        """By how much the savings told differ from those made, as a share of those made."""
        return (self.told_saving - self.made_saving) / self.made_saving if self.made_saving else 0.0


def compared(case: Case) -> Compared:
    """Play both, to the same instant."""
    until_s = max(_length(case, in_charge=False), _length(case, in_charge=True))
    told, real_wait_s = _watched(case, until_s)
    made, made_wait_s = _in_charge(case, until_s)
    return Compared(told.real.nano_seconds, told, made, until_s, real_wait_s, made_wait_s)


def _length(case: Case, *, in_charge: bool) -> float:
    """When the last of the work has ended, in minutes rounded up."""
    world, driver = _driven(case, in_charge=in_charge)
    last = case.work.could_end_s
    tasks = sum(each.replicas for each in case.work.arrivals if each.task.runs_s is not None)
    until_s = 60.0 * -(-last // 60)
    while until_s < last + GIVE_UP_S:
        driver.run_until(until_s)
        if world.ledger.finished + world.ledger.lost >= tasks:
            break
        until_s += 60.0
    return until_s


def _driven(case: Case, *, in_charge: bool) -> tuple[World, VirtualDriver]:
    """A world with the work, and who schedules it: HTAS, or kube-scheduler on the nodes that are there."""
    world = World(start=0.0, seed=case.seed, startup_s=case.startup_s, chances=case.chances if in_charge else None)
    store = SqliteStore(":memory:")
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    planner: Planner
    if in_charge:
        policy, planner = policy_in_charge(case.policy, case.nodes), plan
        for node in case.nodes:
            _rent(world, policy, taken_over(node, policy))
    else:
        policy, planner = case.policy, fixed_set.plan
        world.add_nodes(case.nodes)
    world.load(case.work)
    daemon = Daemon(ports, policy, keeps_history=False, planner=planner)
    return world, VirtualDriver(world, daemon)


def _rent(world: World, policy: Policy, node: Node) -> None:
    flavour = policy.catalogue.named(node.flavour)
    assert flavour is not None, "the nodes that are there are of flavours that have a price"
    machine = Instance(
        f"real-{node.name}",
        node.name,
        flavour.name,
        InstanceState.ACTIVE,
        world.clock.now(),
        cluster=policy.cluster,
        claim=node.claim,
        group=node.group,
    )
    world.cloud.add_rented(machine, flavour, node)


def _watched(case: Case, until_s: float) -> tuple[Savings, float]:
    world, driver = _driven(case, in_charge=False)
    store = SqliteStore(":memory:")
    ports = WatchingPorts(world.clock, world.cluster, store, world.announcer)
    charge = Charge(startup_s=case.startup_s)
    recommender = Recommender(ports, case.policy, charge)
    recommender.run_cycle(PLACING)
    while world.clock.now() < until_s:
        driver.run_until(min(until_s, world.clock.now() + LOOK_S))
        recommender.run_cycle(PLACING)
    savings = recommender.savings()
    assert savings is not None
    recommender.close()
    return savings, world.ledger.mean_wait_s()


def _in_charge(case: Case, until_s: float) -> tuple[int, float]:
    world, driver = _driven(case, in_charge=True)
    driver.run_until(until_s)
    return world.ledger.nano_seconds(case.policy.catalogue.billing, until_s), world.ledger.mean_wait_s()
