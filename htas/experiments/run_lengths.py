"""Run lengths learned from a trace: how far they are off, and what packing by them costs.

Errors: the tasks are walked through in time; each is estimated when it is created, and teaches only once it has ended.
Costs: the same work is played in the sandbox, its pods packed into time bins by their exact run lengths, by those
learned on the way, or by the default alone.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.cycle import CycleResult, Daemon
from htas.daemon.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy, RunLengths
from htas.model.record import Run
from htas.model.snapshot import ClusterSnapshot
from htas.profiler.run_lengths import LearnedRunLengths
from htas.sandbox.workload import Arrival, Task, Workload
from htas.sandbox.world import World

TAIL_S = 3600.0
"""How long after the last task could have ended a played trace goes on."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What a task was expected to take, and what it took, in seconds."""

    expected_s: float
    took_s: float


class Guesser:
    """Expects run lengths, and is taught by tasks that have ended."""

    def expect(self, arrival: Arrival) -> float:
        raise NotImplementedError

    def teach(self, arrival: Arrival) -> None:
        """A task has ended."""


class Always(Guesser):
    """Nothing is learned: every task is expected to take the same."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def expect(self, arrival: Arrival) -> float:
        return self._seconds


class SoFar(Guesser):
    """The mean or the median of all tasks that have ended, whatever they were; the default before the first."""

    def __init__(self, of_all: Callable[[Iterable[float]], float], default_s: float) -> None:
        self._of_all, self._default_s = of_all, default_s
        self._seconds: list[float] = []

    def expect(self, arrival: Arrival) -> float:
        return self._of_all(self._seconds) if self._seconds else self._default_s

    def teach(self, arrival: Arrival) -> None:
        self._seconds.append(arrival.task.runs_s or 0.0)


class Learned(Guesser):
    """What HTAS does; the default where it has learned too little."""

    def __init__(self, settings: RunLengths) -> None:
        self._settings = settings
        self._learned = LearnedRunLengths(settings)

    def expect(self, arrival: Arrival) -> float:
        found = self._learned.estimate(_pod(arrival))
        return found.seconds if found is not None else self._settings.default_s

    def teach(self, arrival: Arrival) -> None:
        self._learned.learn([run_of(arrival, arrival.at_s + (arrival.task.runs_s or 0.0))])


def walk(work: Workload, guesser: Guesser) -> list[Guess]:
    """Every task as it was expected when it was created. Those that the trace's end cut short are left out.

    A task is taken to begin at its creation, as it does in the sandbox but for the wait for a machine.
    """
    last = max(_ends(arrival) for arrival in work.arrivals)
    ending: list[tuple[float, int]] = []
    guesses = []
    for number, arrival in enumerate(work.arrivals):
        while ending and ending[0][0] <= arrival.at_s:
            guesser.teach(work.arrivals[heapq.heappop(ending)[1]])
        if _ends(arrival) < last:
            guesses.append(Guess(guesser.expect(arrival), arrival.task.runs_s or 0.0))
            heapq.heappush(ending, (_ends(arrival), number))
    return guesses


@dataclass(frozen=True, slots=True)
class Errors:
    """How far guesses were off: medians and means in seconds, the factor as a number of at least 1."""

    median_s: float
    mean_s: float
    median_factor: float
    within_twice: float


def errors(guesses: list[Guess]) -> Errors:
    """The errors of guesses; raises ValueError where there are none."""
    if not guesses:
        raise ValueError("no task has ended: there is nothing to compare")
    off = [abs(guess.expected_s - guess.took_s) for guess in guesses]
    factors = [_factor(guess) for guess in guesses]
    within = sum(factor <= 2.0 for factor in factors) / len(factors)
    return Errors(statistics.median(off), statistics.fmean(off), statistics.median(factors), within)


def _factor(guess: Guess) -> float:
    """How many times too long or too short; what took less than a second counts as one."""
    expected, took = max(1.0, guess.expected_s), max(1.0, guess.took_s)
    return max(expected / took, took / expected)


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
    daemon = LearningDaemon(ports, policy, world, arrivals)
    end = max(_ends(arrival) for arrival in arrivals) + TAIL_S
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


class LearningDaemon(Daemon):
    """A daemon that learns from the sandbox's own books: a task teaches its true length in the cycle after its end."""

    def __init__(self, ports: Ports, policy: Policy, world: World, arrivals: Iterable[Arrival]) -> None:
        super().__init__(ports, policy, keeps_history=False)
        self._world = world
        self._by_key = {f"{a.task.namespace}/{a.task.name}": a for a in arrivals}
        self._learned = LearnedRunLengths(policy.run_lengths)
        self._taught = 0
        self.listeners.append(self._teach)

    def observe(self) -> ClusterSnapshot:
        seen = super().observe()
        view = msgspec.structs.replace(seen.cluster, pods=self._learned.applied(seen.cluster.pods))
        return msgspec.structs.replace(seen, cluster=view)

    def _teach(self, result: CycleResult) -> None:
        ended = self._world.ledger.finished_tasks[self._taught :]
        self._taught += len(ended)
        self._learned.learn(run_of(self._by_key[key], result.snapshot.taken_at) for key in ended)


def run_of(arrival: Arrival, ended_at: float) -> Run:
    """The record of a task that ended well."""
    task = arrival.task
    return Run(
        namespace=task.namespace,
        pod=task.name,
        uid=task.name,
        node="",
        kind=WorkKind.BATCH,
        owner=task.made_of(arrival.controller),
        image=task.image,
        cpu_m=task.requests.cpu_m,
        memory_bytes=task.requests.memory_bytes,
        share_millionths=0,
        began_at=ended_at - (task.runs_s or 0.0),
        came_at=ended_at - (task.runs_s or 0.0),
        ended_at=ended_at,
        succeeded=True,
    )


def _pod(arrival: Arrival) -> Pod:
    task: Task = arrival.task
    template = task.made_of(arrival.controller)
    return Pod(task.namespace, task.name, task.requests, kind=task.kind, template=template, image=task.image)


def _ends(arrival: Arrival) -> float:
    return arrival.at_s + (arrival.task.runs_s or 0.0)


def _unstated(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    for arrival in arrivals:
        yield msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, stated_s=None))
