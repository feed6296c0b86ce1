"""A world and the daemon that serves it, on virtual time, with room for an attacker between the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.disruptions import drains_of
from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.profiler.accounts import nano_seconds
from htas.sandbox.ledger import Ledger
from htas.sandbox.workload import Arrival, Task, Workload
from htas.sandbox.world import World

GIB = 2**30
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@cache
def shipped_policy() -> Policy:
    """The policy of the configuration that comes with HTAS."""
    return load_configuration(config_file("htas.yaml")).policy


def jobs(count: int, *, every_s: float = 120.0, runs_s: float = 600.0, cpu_m: int = 900) -> list[Arrival]:
    """Jobs that state how long they run: about one for each of the cheapest machines."""
    return [
        Arrival(
            number * every_s,
            Task(
                f"job-{number:05d}",
                Resources(cpu_m, GIB // 2, 0, 1),
                kind=WorkKind.BATCH,
                runs_s=runs_s,
                stated_s=runs_s,
            ),
        )
        for number in range(count)
    ]


class Scene:
    """A daemon over a sandbox. `between` stands between the two: ports by field name of `Ports`."""

    def __init__(
        self,
        arrivals: Iterable[Arrival],
        *,
        policy: Policy | None = None,
        store: Any = None,
        between: dict[str, Any] | None = None,
        **world: Any,
    ) -> None:
        self.policy = policy if policy is not None else shipped_policy()
        self.world = World(**world)
        arrivals = tuple(arrivals)
        self._arrivals = sum(arrival.replicas for arrival in arrivals)
        self.world.load(Workload("attacked", arrivals))
        self.start = self.world.clock.now()
        self.store: Any = store if store is not None else SqliteStore(":memory:")
        self.between: dict[str, Any] = between if between is not None else {}
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.most_machines = 0
        self.begin()

    def begin(self) -> None:
        """Start a daemon, in place of the one that was there: it knows only what store, cluster and cloud tell."""
        world = self.world
        real: dict[str, Any] = {
            "clock": world.clock,
            "cluster": world.cluster,
            "provider": world.cloud,
            "migration": world.migration,
            "store": self.store,
            "announcer": world.announcer,
        }
        self.daemon = Daemon(Ports(**(real | self.between)), self.policy)
        self.daemon.listeners.append(self._note)
        self.driver = VirtualDriver(world, self.daemon)

    def _note(self, result: CycleResult) -> None:
        self.outcomes.update((outcome.action, outcome.status.value) for outcome in result.outcomes)
        self.most_machines = max(self.most_machines, self.world.ledger.running_machines())

    def play(self, until_s: float) -> Scene:
        """Let time pass to so many seconds after the start."""
        self.driver.run_until(self.start + until_s)
        return self

    def play_to_its_end(self, until_s: float) -> Scene:
        """Let time pass until all is over, and at most to `until_s`."""
        at_s = self.world.clock.now() - self.start
        while at_s < until_s and self.unfinished():
            at_s += HOUR_S
            self.play(at_s)
        return self

    @property
    def at_s(self) -> float:
        return self.world.clock.now() - self.start

    def unfinished(self) -> dict[str, bool]:
        """What is not over yet, in words: those that are true."""
        return unfinished(self.world.ledger, self._arrivals, self.world, self.store)

    def broken(self) -> dict[str, bool]:
        """What must never be, in words: those that are true."""
        return broken(self.world.ledger)

    def bills_off_by(self) -> float:
        """By what share our bills differ from the cloud's invoice: 0.1 is ten per cent too much."""
        billing, now = self.policy.catalogue.billing, self.world.clock.now()
        ours = sum(nano_seconds(bill, billing, now) for bill in self.store.bills())
        return ours / max(1, self.world.ledger.nano_seconds(billing, now)) - 1

    def told(self) -> str:
        """What happened, for the table."""
        ledger = self.world.ledger
        return (
            f"{ledger.finished}/{ledger.arrived} tasks in {self.at_s / HOUR_S:.0f} h, {len(ledger.rentals)} machines, "
            f"bills {self.bills_off_by():+.1%}"
        )


def unfinished(ledger: Ledger, arrivals: int, world: Any, store: Any) -> dict[str, bool]:
    """What is not over yet of a world, within this process or remote, of which `arrivals` tasks are expected."""
    left = {
        f"{arrivals - ledger.finished} of {arrivals} tasks did not end": ledger.finished != arrivals,
        f"{ledger.running_machines()} machines are billed without work": ledger.running_machines() > 0,
        "machines are left in the cloud": len(world.cloud.instances()) > 0,
        "nodes are left": len(world.cluster.observe().nodes) > 0,
        "claims are left in the journal": len(store.claims()) > 0,
        "drains are left in the journal": len(drains_of(store.disruptions())) > 0,
    }
    return {words: True for words, is_left in left.items() if is_left}


def broken(ledger: Ledger) -> dict[str, bool]:
    """What must never be, whatever was attacked."""
    wrong = {
        f"{ledger.lost} tasks were lost": ledger.lost > 0,
        f"{ledger.overcommitted} pods were bound without room": ledger.overcommitted > 0,
        f"{ledger.killed_by_release} pods were killed by a release": ledger.killed_by_release > 0,
        "a task ended twice": len(set(ledger.finished_tasks)) != len(ledger.finished_tasks),
    }
    return {words: True for words, is_so in wrong.items() if is_so}
