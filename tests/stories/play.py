"""Stories: a daemon and a sandbox on virtual time, told in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.optimizer import Optimizer
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.disruptions import drains_of
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload
from htas.sandbox.world import World
from tests.builders import batch_group, make_policy

GIB = 2**30


def no_search_failed(result: CycleResult) -> None:
    """The daemon does without a search that raises, and without a step: a story would not notice."""
    assert result.plan.failures == ()
    assert result.defects == ()


class Story:
    """One world and the daemon that serves it; `crash` replaces the daemon by a new one on the same store."""

    optimizer: Optimizer | None = None
    """None: the daemon's own."""

    def __init__(self, policy: Policy | None = None, *arrivals: Arrival, **world: Any) -> None:
        self.policy = policy or make_policy([batch_group()])
        self.world = World(**world)
        self.world.load(Workload("story", arrivals))
        self.store = SqliteStore(":memory:")
        self.start = self.world.clock.now()
        self.seen: list[CycleResult] = []
        self.crash()

    def crash(self) -> None:
        world = self.world
        self.ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self.store, world.announcer)
        self.daemon = Daemon(self.ports, self.policy, optimizer=self.optimizer)
        self.daemon.listeners += [self.seen.append, no_search_failed]
        self.driver = VirtualDriver(world, self.daemon)

    def play(self, until_s: float) -> Story:
        self.driver.run_until(self.start + until_s)
        return self

    @property
    def verbs(self) -> Counter[tuple[str, str]]:
        return Counter((o.action, o.status.value) for result in self.seen for o in result.outcomes)

    @property
    def messages(self) -> list[str]:
        return [f"{o.action} {o.subject}: {o.message}" for result in self.seen for o in result.outcomes]

    @property
    def nodes(self) -> list[str]:
        return [node.name for node in self.world.cluster.observe().nodes]

    def assert_whole(self) -> None:
        """What must hold in every story: nothing over-committed, nothing killed by a release, nothing lost."""
        ledger = self.world.ledger
        assert (ledger.overcommitted, ledger.killed_by_release, ledger.lost) == (0, 0, 0)

    def assert_over(self, tasks: int) -> None:
        """All work has ended once, and no machine is left."""
        self.assert_whole()
        ledger = self.world.ledger
        assert ledger.finished == tasks
        assert len(set(ledger.finished_tasks)) == len(ledger.finished_tasks)
        assert ledger.running_machines() == 0
        assert not self.world.cloud.instances()
        assert not self.nodes
        assert not self.store.claims()
        assert not drains_of(self.store.disruptions())


def job(
    name: str, at_s: float = 0.0, runs_s: float = 120.0, cpu_m: int = 500, gib: float = 1.0, **task: Any
) -> Arrival:
    fields = {"stated_s": runs_s, **task}
    return Arrival(at_s, Task(name, Resources(cpu_m, int(gib * GIB), 0, 1), runs_s=runs_s, **batch(fields)))


def batch(fields: dict[str, Any]) -> dict[str, Any]:
    from htas.model.pods import WorkKind

    return {"kind": WorkKind.BATCH, **fields}


def service(name: str, replicas: int, at_s: float = 0.0, **task: Any) -> Arrival:
    fields = {"requests": Resources(500, GIB, 0, 1), "labels": {"app": name}, **task}
    return Arrival(at_s, Task(name, **fields), ControllerKind.REPLICA_SET, replicas)


def jobs(count: int, every_s: float = 5.0, **fields: Any) -> Iterable[Arrival]:
    return [job(f"job-{i:03d}", i * every_s, **fields) for i in range(count)]
