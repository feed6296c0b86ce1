"""What families of work are drawn from: a scene, jobs and services, when they come, and what machines cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

import msgspec

from htas.config.loader import load_catalogue
from htas.config.places import config_file
from htas.model.constraints import UNCONSTRAINED, Constraints, PodAffinityTerm
from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import WorkKind
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Arrival, ControllerKind, Load, Rescale, Task, Workload
from htas.sandbox.workloads.openb import GPU_MILLI
from tools.lab.contenders import ACQUISITION_LAG_S

GIB, MINUTE_S, HOUR_S = 2**30, 60.0, 3600.0
DEPLOYED, STATEFUL = ControllerKind.REPLICA_SET, ControllerKind.STATEFUL_SET
Row = tuple[str, float, float, float]
"""Of a price list: name, cores, GiB, price an hour."""
_Event = TypeVar("_Event", Arrival, Rescale, Load)


@dataclass(frozen=True, slots=True)
class Scene:
    """One draw of a family: what every contender is given alike."""

    work: Workload
    catalogue: Catalogue
    startup_s: float = ACQUISITION_LAG_S
    chances: Chances | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of work by its name; `draw(seed)` gives the same scene for the same seed."""

    name: str
    title: str
    draw: Callable[[int], Scene]


def paper_prices() -> Catalogue:
    return load_catalogue(config_file("flavours/nectar.yaml"))


def trace_prices() -> Catalogue:
    return load_catalogue(config_file("flavours/openb.yaml"))


def flavours(
    rows: Iterable[Row],
    kept: tuple[int, float] = (0, 0.0),
    labels: Mapping[str, str] | None = None,
) -> tuple[Flavour, ...]:
    """Of a price list; `kept`: milli-cores and GiB for the system of each."""
    held = Resources(kept[0], int(kept[1] * GIB), 0, 0)
    return tuple(
        Flavour(
            name,
            Resources(int(cores * 1000), int(gib * GIB), 0, 110),
            round(price * 10**9),
            held,
            labels=labels or {},
        )
        for name, cores, gib, price in rows
    )


def with_cards(rows: Iterable[Row], cards: Mapping[str, int], kept: tuple[int, float]) -> tuple[Flavour, ...]:
    """Flavours of a price list that have so much of some extended resources each."""
    return tuple(
        msgspec.structs.replace(each, capacity=Resources.of({**each.capacity.amounts(), **cards}))
        for each in flavours(rows, kept)
    )


def job(
    name: str, cpu_m: int, gib: float, runs_s: float, *, states: float | None = 1.0, rounded_to_s: float = 30.0
) -> Task:
    """Batch work that states so many times what it runs, rounded up; with None it states nothing."""
    stated_s = None if states is None else math.ceil(runs_s * states / rounded_to_s) * rounded_to_s
    requests = Resources(cpu_m, int(gib * GIB), 0, 1)
    return Task(name, requests, kind=WorkKind.BATCH, runs_s=runs_s, stated_s=stated_s, labels={"job": name})


unstated = partial(job, states=None)


def service(name: str, cpu_m: int, gib: float, constraints: Constraints = UNCONSTRAINED) -> Task:
    """What runs for ever; none has opted in to be moved."""
    return Task(name, Resources(cpu_m, int(gib * GIB), 0, 1), labels={"app": name}, constraints=constraints)


def limited(task: Task, limit_s: float | None) -> Task:
    """The same, stating a limit for its run; None: nothing."""
    return msgspec.structs.replace(task, stated_s=limit_s)


def with_priority(task: Task, priority: int) -> Task:
    return msgspec.structs.replace(task, priority=priority)


def with_gpus(task: Task, thousandths: int) -> Task:
    """The same, asking also for so much of a GPU, as the GPU trace counts it."""
    requests = Resources.of({**task.requests.amounts(), GPU_MILLI: thousandths})
    return msgspec.structs.replace(task, requests=requests)


def poisson(random: Random, rate_at: Callable[[float], float], since_s: float, until_s: float) -> Iterator[float]:
    """Instants of a Poisson process with a rate a second that changes; the last is the first past `until_s`."""
    at_s = since_s
    while at_s < until_s:
        at_s += random.expovariate(rate_at(at_s))
        yield at_s


def jobs(random: Random, rate_per_s: float, until_s: float, draw: Callable[[Random, str], Task]) -> list[Arrival]:
    """Jobs as a Poisson process, from the second minute on."""
    instants = poisson(random, lambda _: rate_per_s, 120.0, until_s)
    return [Arrival(at_s, draw(random, f"job-{n:04d}")) for n, at_s in enumerate(instants, 1) if at_s < until_s]


def in_turn(events: Iterable[_Event]) -> tuple[_Event, ...]:
    return tuple(sorted(events, key=lambda each: each.at_s))


def of_app(name: str) -> LabelSelector:
    return LabelSelector((Requirement("app", Operator.IN, (name,)),))


def apart(name: str) -> Constraints:
    """No two pods of one application on one node."""
    return Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, of_app(name)),))


def closing(at_s: float) -> Arrival:
    """A short job in the end, so that what services do until then is billed with every contender alike."""
    return Arrival(at_s, job("closing", 100, 0.2, 60.0, states=None))
