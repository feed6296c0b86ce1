"""The four workload patterns of the HTAS paper (Figure 2), of the tasks of its Table 4; and patterns of one's own.

A pattern says how many tasks arrive a minute at each moment. Tasks come at random at that rate (a Poisson process), and
each is drawn from a mix: batch jobs of three sizes that sleep for 1–4, 4–8 and 9–12 minutes, and nginx servers that run
on until the experiment ends, one in a Deployment each.

Figure 2 shows shapes without numbers that survived print, and of Figure 5 only what the text says of it could be read:
two m1.medium workers at the start (Table 5); a stable load is served after three rounds of one machine each, that is by
five of them; a growing one outruns a machine every five minutes for as long as it lasts. The default rates are chosen
for that. A mean job takes 200m for 6.3 minutes, so that 5 a minute hold 6.5 cores: with the servers and the backlog of
the start, five machines of 2 cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from random import Random

import msgspec

from htas.model.nodes import DO_NOT_DISRUPT
from htas.model.pods import MAY_MIGRATE, WorkKind
from htas.model.resources import Resources
from htas.ports import GivenError
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload

GIB = 2**30
MOST_TASKS = 1_000_000
"""Drawn in ten seconds; nobody plays as many."""


class PatternError(GivenError):
    """A pattern that cannot be played."""


class Shape(StrEnum):
    STABLE = "stable"
    GROWING = "growing"
    CYCLE = "cycle"
    ON_OFF = "on-off"


class Kind(msgspec.Struct, frozen=True):
    """Tasks of one kind: `weight` is their part of the mix; without a longest run they are services."""

    name: str
    cpu_m: int
    memory_bytes: int
    weight: float
    shortest_s: float = 0.0
    longest_s: float = 0.0

    @property
    def is_batch(self) -> bool:
        return self.longest_s > 0


def _gib(amount: float) -> int:
    return int(amount * GIB)


TABLE_4 = (
    Kind("batch-small", 100, _gib(0.3), 1.0, 60, 240),
    Kind("batch-med", 200, _gib(0.6), 1.0, 240, 480),
    Kind("batch-large", 300, _gib(0.9), 1.0, 540, 720),
    Kind("nginx", 100, _gib(0.4), 0.15),
)
"""HTAS paper Table 4. Its parts are not printed: jobs of each size alike, and one task in 21 a server."""


class Pattern(msgspec.Struct, frozen=True):
    """A shape and its rates: tasks a minute between `low` and `high`, for `length_s`.

    stable: always `high`. growing: from `low` to `high`, faster and faster (with the square of time). cycle: a wave of
    `period_s` from `low` to `high` and back. on-off: `high` for the first `on_share` of each period, else `low`.
    """

    name: str
    shape: Shape
    high: float
    low: float = 0.0
    length_s: float = 3600.0
    period_s: float = 1800.0
    on_share: float = 0.5
    begins_s: float = 120.0
    """When the first task may come: by then the workers a cluster starts with are up."""
    kinds: tuple[Kind, ...] = TABLE_4

    def rate(self, at_s: float) -> float:
        """Tasks a minute, `at_s` seconds after the pattern has begun."""
        match self.shape:
            case Shape.STABLE:
                return self.high
            case Shape.GROWING:
                return self.low + (self.high - self.low) * (at_s / self.length_s) ** 2
            case Shape.CYCLE:
                wave = (1 - math.cos(2 * math.pi * at_s / self.period_s)) / 2
                return self.low + (self.high - self.low) * wave
            case Shape.ON_OFF:
                return self.high if at_s % self.period_s < self.on_share * self.period_s else self.low


PAPER = (
    Pattern("stable", Shape.STABLE, high=5.0),
    Pattern("growing", Shape.GROWING, high=24.0, low=1.0),
    Pattern("cycle", Shape.CYCLE, high=10.0, low=1.0, length_s=5400.0),
    Pattern("on-off", Shape.ON_OFF, high=8.0, low=0.0, length_s=5400.0),
)
"""Figure 2, left to right."""


def named(name: str) -> Pattern:
    """One of the paper's patterns; raises PatternError with their names."""
    for pattern in PAPER:
        if pattern.name == name:
            return pattern
    raise PatternError(f"no pattern {name!r}; there are {', '.join(pattern.name for pattern in PAPER)}")


def workload(pattern: Pattern, seed: int) -> Workload:
    """The tasks of a pattern. The same pattern and seed give the same tasks; raises PatternError where there are none.

    Jobs state their run length rounded up to half a minute, as users do who know their jobs.
    """
    _check(pattern)
    random = Random(f"{pattern.name}/{seed}")
    arrivals = tuple(
        _arrival(random, pattern, at_s, number) for number, at_s in enumerate(_instants(random, pattern), 1)
    )
    if not arrivals:
        raise PatternError(f"pattern {pattern.name}: no task arrives; raise its rate or its length")
    return Workload(f"{pattern.name} (seed {seed})", arrivals)


def _check(pattern: Pattern) -> None:
    numbers = {
        "high": pattern.high,
        "low": pattern.low,
        "length": pattern.length_s,
        "period": pattern.period_s,
        "on share": pattern.on_share,
        "begins": pattern.begins_s,
    }
    for what, number in numbers.items():
        if not math.isfinite(number):  # arrivals at an infinite rate, or until no end, would never be all drawn
            raise PatternError(f"pattern {pattern.name}: its {what} is {number}; write a finite number")
    wrong = {
        "high": pattern.high < pattern.low or pattern.low < 0 or pattern.high <= 0,
        "length": pattern.length_s <= 0,
        "period": pattern.period_s <= 0,
        "on share": not 0 <= pattern.on_share <= 1,
        "begins": pattern.begins_s < 0,
        "kinds": not pattern.kinds or any(k.weight <= 0 or k.longest_s < k.shortest_s for k in pattern.kinds),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise PatternError(f"pattern {pattern.name}: its {what} makes no sense")
    if (most := pattern.high / 60 * pattern.length_s) > MOST_TASKS:
        raise PatternError(
            f"pattern {pattern.name}: up to {most:.3g} tasks, of {MOST_TASKS:,} at most; lower its rate or its length"
        )


def _instants(random: Random, pattern: Pattern) -> list[float]:
    """Arrivals by thinning: candidates at the highest rate, each kept with the share of it that holds at its time."""
    instants, at_s = list[float](), 0.0
    while True:
        at_s += random.expovariate(pattern.high / 60)
        if at_s >= pattern.length_s:
            return instants
        if random.random() * pattern.high < pattern.rate(at_s):
            instants.append(pattern.begins_s + at_s)


def _arrival(random: Random, pattern: Pattern, at_s: float, number: int) -> Arrival:
    kind = random.choices(pattern.kinds, [kind.weight for kind in pattern.kinds])[0]
    name = f"{kind.name}-{number:05d}"
    requests = Resources(kind.cpu_m, kind.memory_bytes, 0, 1)
    if not kind.is_batch:
        return Arrival(at_s, Task(name, requests, labels={"app": kind.name}), ControllerKind.REPLICA_SET)
    runs_s = random.uniform(kind.shortest_s, kind.longest_s)
    stated_s = math.ceil(runs_s / 30) * 30.0
    task = Task(
        name, requests, kind=WorkKind.BATCH, runs_s=runs_s, stated_s=stated_s, labels={"app": kind.name, "job": name}
    )
    return Arrival(at_s, task, ControllerKind.JOB)


def mapped(work: Workload, change: Callable[[Task], Task]) -> Workload:
    """A workload with every task changed."""
    arrivals = tuple(msgspec.structs.replace(each, task=change(each.task)) for each in work.arrivals)
    return msgspec.structs.replace(work, arrivals=arrivals)


def with_movable_services(work: Workload) -> Workload:
    """The same work for autoscalers that evict services as any other pod; HTAS moves those that opted in alone."""

    def change(task: Task) -> Task:
        if task.kind is not WorkKind.SERVICE:
            return task
        return msgspec.structs.replace(task, disruption={**task.disruption, MAY_MIGRATE: "true"})

    return mapped(work, change)


def with_pinned_jobs(work: Workload) -> Workload:
    """The same work for operators who would not have a running job evicted: it would start again."""

    def change(task: Task) -> Task:
        if task.kind is not WorkKind.BATCH:
            return task
        return msgspec.structs.replace(task, disruption={**task.disruption, DO_NOT_DISRUPT: "true"})

    return mapped(work, change)
