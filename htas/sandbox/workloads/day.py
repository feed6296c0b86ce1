"""A day of mixed work: the HTAS paper's task shapes (Table 4), arriving as a company's day has them.

Services follow office hours; batch jobs come steadily, in a burst each hour of the afternoon, and as a night run.
"""

from __future__ import annotations

import math
from random import Random

from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import WorkKind
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.workload import Arrival, Budget, ControllerKind, Rescale, Task, Workload

DAY_S = 86_400.0
SHAPES = (
    ("small", 100, 0.3, 60, 240),
    ("med", 200, 0.6, 240, 480),
    ("large", 300, 0.9, 540, 720),
)
"""Table 4: name, millicores, GiB, shortest and longest run in seconds."""
SERVICES = 8
NIGHT_REPLICAS, NOON_REPLICAS = 2, 10


def day(seed: int = 1, density: float = 1.0, length_s: float = DAY_S) -> Workload:
    """A seeded day (or part of one) of work; `density` scales how much of it comes."""
    random = Random(seed)
    arrivals = [*_services(), *_jobs(random, density, length_s)]
    return Workload(
        name=f"day (seed {seed})",
        arrivals=tuple(sorted(arrivals, key=lambda arrival: (arrival.at_s, arrival.task.name))),
        rescales=tuple(rescale for rescale in _office_hours(random) if rescale.at_s < length_s),
        daemons=(Task("node-agent", Resources(50, 64 * 2**20, 0, 1), namespace="kube-system"),),
        budgets=tuple(Budget("default", f"web-{i}", _app(f"web-{i}"), 1) for i in range(SERVICES)),
    )


def _app(name: str) -> LabelSelector:
    return LabelSelector((Requirement("app", Operator.IN, (name,)),))


def _services() -> list[Arrival]:
    """nginx services; some keep their replicas on different nodes, some spread them."""
    arrivals = []
    for i in range(SERVICES):
        name = f"web-{i}"
        constraints = Constraints()
        if i % 4 == 1:
            constraints = Constraints(spread=(SpreadConstraint(HOSTNAME_LABEL, 3, _app(name)),))
        if i == 2:
            constraints = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, _app(name)),))
        task = Task(
            name,
            Resources(100, _gib(0.4), 0, 1),
            labels={"app": name},
            constraints=constraints,
            priority=100,
            disruption={"htas.io/migrate": "true"} if i % 2 else {},
        )
        arrivals.append(Arrival(5.0 * i, task, ControllerKind.REPLICA_SET, NIGHT_REPLICAS))
    return arrivals


def _office_hours(random: Random) -> list[Rescale]:
    """Replicas follow a day's traffic, with its peak at two in the afternoon; checked every half hour."""
    rescales = []
    for i in range(SERVICES):
        for half_hour in range(1, 48):
            hour = half_hour / 2
            traffic = max(0.0, math.sin((hour - 7) / 14 * math.pi)) if 7 < hour < 21 else 0.0
            limit = 4 if i == 2 else NOON_REPLICAS
            wanted = NIGHT_REPLICAS + round((limit - NIGHT_REPLICAS) * traffic)
            rescales.append(Rescale(half_hour * 1800 + random.uniform(0, 120), "default", f"web-{i}", wanted))
    return rescales


def _jobs(random: Random, density: float, length_s: float) -> list[Arrival]:
    arrivals: list[Arrival] = []
    at, number = 0.0, 0
    while True:
        at += random.expovariate(_rate_per_s(at) * density)
        if at >= length_s:
            return arrivals
        number += 1
        arrivals.append(_job(random, at, number))


def _rate_per_s(at_s: float) -> float:
    """Jobs a second: 1.2 a minute; 40 a minute in the first three minutes of each afternoon hour; 6 by night."""
    hour, minute = at_s / 3600 % 24, at_s / 60 % 60
    if 13 <= hour < 18 and minute < 3:
        return 40 / 60
    if 2 <= hour < 4:
        return 6 / 60
    return 1.2 / 60


def _job(random: Random, at_s: float, number: int) -> Arrival:
    name, cpu_m, gib, shortest, longest = random.choice(SHAPES)
    runs_s = random.uniform(shortest, longest)
    task = Task(
        f"{name}-{number:05d}",
        Resources(cpu_m, _gib(gib), 0, 1),
        kind=WorkKind.BATCH,
        runs_s=runs_s,
        stated_s=math.ceil(runs_s / 30) * 30.0,
        labels={"app": name, "job": f"{name}-{number:05d}"},
    )
    return Arrival(at_s, task, ControllerKind.JOB)


def _gib(amount: float) -> int:
    return int(amount * 2**30)
