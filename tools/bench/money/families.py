"""Families of work, each drawn anew by a seed: what arrives, what machines cost, how long they take to come.

The paper's four patterns are what HTAS was first measured on; all others differ from them in one thing each, which is
named in their title. None was chosen by how HTAS does on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import msgspec

from htas.config.loader import load_catalogue
from htas.config.places import config_file
from htas.experiments.contenders import ACQUISITION_LAG_S
from htas.experiments.workloads import openb, patterns
from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.flavours import Billing, Catalogue, Flavour
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import WorkKind
from htas.model.resources import PODS, Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Arrival, ControllerKind, Rescale, Task, Workload
from tools.bench.money.everyday import EVERYDAY

GIB, HOUR_S, DAY_S = 2**30, 3600.0, 86_400.0


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


def _paper_prices() -> Catalogue:
    return load_catalogue(config_file("flavours/nectar.yaml"))


def _trace_prices() -> Catalogue:
    return load_catalogue(config_file("flavours/openb.yaml"))


def _billed(catalogue: Catalogue, granularity_s: int) -> Catalogue:
    return msgspec.structs.replace(catalogue, billing=Billing(granularity_s, granularity_s))


def _pattern(name: str) -> Callable[[int], Scene]:
    return lambda seed: Scene(patterns.workload(patterns.named(name), seed), _paper_prices())


def _job(name: str, cpu_m: int, gib: float, runs_s: float, *, states: bool = True) -> Task:
    stated = math.ceil(runs_s / 30) * 30.0 if states else None
    requests = Resources(cpu_m, int(gib * GIB), 0, 1)
    return Task(name, requests, kind=WorkKind.BATCH, runs_s=runs_s, stated_s=stated, labels={"job": name})


def _jobs(random: Random, rate_per_s: float, until_s: float, draw: Callable[[Random, str], Task]) -> list[Arrival]:
    """Jobs as a Poisson process, from the second minute on."""
    arrivals, at_s = list[Arrival](), 120.0
    while (at_s := at_s + random.expovariate(rate_per_s)) < until_s:
        arrivals.append(Arrival(at_s, draw(random, f"job-{len(arrivals) + 1:04d}")))
    return arrivals


def bounded_pareto(share: float, shortest_s: float, longest_s: float, alpha: float) -> float:
    """The run length below which a share of all jobs stay: P(X > x) falls with x to the power -alpha."""
    left = 1 - share * (1 - (shortest_s / longest_s) ** alpha)
    return float(shortest_s * left ** (-1 / alpha))


# Heavy tails, short and long jobs.


def _heavy_tailed(*, states: bool) -> Callable[[int], Scene]:
    def draw(seed: int) -> Scene:
        def job(random: Random, name: str) -> Task:
            runs_s = bounded_pareto(random.random(), 60.0, 8 * HOUR_S, 0.8)
            return _job(
                name, random.choice((100, 200, 500, 1000)), random.choice((0.3, 0.6, 1.5, 3.0)), runs_s, states=states
            )

        random = Random(f"heavy-tailed/{seed}")
        return Scene(Workload("heavy-tailed", tuple(_jobs(random, 3 / 60, 1.5 * HOUR_S, job))), _paper_prices())

    return draw


def _trickle(seed: int) -> Scene:
    def job(random: Random, name: str) -> Task:
        return _job(name, random.choice((100, 250, 500)), random.choice((0.5, 1.0, 2.0)), random.uniform(30, 180))

    random = Random(f"trickle/{seed}")
    return Scene(Workload("trickle", tuple(_jobs(random, 1 / 150, 4 * HOUR_S, job))), _paper_prices())


def _long(seed: int) -> Scene:
    def job(random: Random, name: str) -> Task:
        return _job(
            name, random.choice((500, 1000, 2000)), random.choice((2.0, 4.0, 8.0)), random.uniform(1, 6) * HOUR_S
        )

    random = Random(f"long/{seed}")
    return Scene(Workload("long", tuple(_jobs(random, 1 / 240, 4 * HOUR_S, job))), _paper_prices())


# What keeps pods apart, and what they ask for.


def _anti_affine(seed: int) -> Scene:
    """Jobs of eight teams, whose own do not share a node: licences, ports and caches are such cases."""

    def job(random: Random, name: str) -> Task:
        team = f"team-{random.randrange(8)}"
        task = _job(name, random.choice((100, 200, 400)), random.choice((0.3, 0.6, 1.2)), random.uniform(120, 900))
        same = LabelSelector((Requirement("team", Operator.IN, (team,)),))
        apart = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, same),))
        return msgspec.structs.replace(task, labels={**task.labels, "team": team}, constraints=apart)

    random = Random(f"anti-affine/{seed}")
    return Scene(Workload("anti-affine", tuple(_jobs(random, 2 / 60, HOUR_S, job))), _paper_prices())


def _memory_bound(seed: int) -> Scene:
    """The stable pattern, with eight times the memory a core."""

    def heavy(task: Task) -> Task:
        requests = msgspec.structs.replace(task.requests, memory_bytes=task.requests.memory_bytes * 8 // 3)
        return msgspec.structs.replace(task, requests=requests)

    work = patterns.workload(patterns.named("stable"), seed)
    return Scene(patterns.mapped(work, heavy), _paper_prices())


def _day_and_night(seed: int) -> Scene:
    """Four services that follow office hours, which have not opted in to be moved, and a night run of jobs."""
    random = Random(f"day-and-night/{seed}")
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(4):
        task = Task(f"web-{number}", Resources(250, GIB // 2, 0, 1), labels={"app": f"web-{number}"})
        arrivals.append(Arrival(10.0 * number, task, ControllerKind.REPLICA_SET, 2))
        most = random.randint(8, 16)
        for half_hour in range(1, 48):
            traffic = max(0.0, math.sin((half_hour / 2 - 7) / 14 * math.pi)) if 14 < half_hour < 42 else 0.0
            wanted = 2 + round((most - 2) * traffic)
            rescales.append(Rescale(half_hour * 1800 + random.uniform(0, 300), "default", task.name, wanted))

    def job(random: Random, name: str) -> Task:
        return _job(name, random.choice((500, 1000)), random.choice((1.0, 2.0, 4.0)), random.uniform(300, 3600))

    night = _jobs(random, 1 / 60, 2 * HOUR_S, job)
    arrivals += [msgspec.structs.replace(each, at_s=each.at_s + 21.5 * HOUR_S) for each in night]
    return Scene(Workload("day-and-night", tuple(arrivals), tuple(rescales)), _paper_prices())


def _autoscaled(*, drifts: bool) -> Callable[[int], Scene]:
    """Eight services of sizes of their own, scaled by their load for twenty hours; none has opted in to be moved.

    Replicas drift by two at most every 10 to 60 minutes with a trickle of jobs, or flap between least and four more
    every 5 to 30 minutes, and jobs come at the end alone.
    """

    def draw(seed: int) -> Scene:
        random = Random(f"{'drifting' if drifts else 'flapping'}/{seed}")
        arrivals, rescales = list[Arrival](), list[Rescale]()
        for number in range(8):
            asks = Resources(random.choice((100, 250, 500)), int(random.choice((0.3, 0.5, 1.0, 2.0)) * GIB), 0, 1)
            task = Task(f"web-{number}", asks, labels={"app": f"web-{number}"})
            wanted = least = random.randint(2, 6)
            arrivals.append(Arrival(10.0 * number, task, ControllerKind.REPLICA_SET, least))
            at = 600.0
            while (at := at + random.uniform(*((600, 3600) if drifts else (300, 1800)))) < 20 * HOUR_S:
                wanted = (
                    max(2, wanted + random.choice((-2, -1, -1, 0, 1, 1, 2))) if drifts else least + random.randint(0, 4)
                )
                rescales.append(Rescale(at, "default", task.name, wanted))

        def job(random: Random, name: str) -> Task:
            return _job(name, 500, 1.0, random.uniform(60, 600))

        jobs = _jobs(random, 1 / 600, 20 * HOUR_S, job) if drifts else _jobs(random, 1 / 60, HOUR_S / 2, job)
        since_s = 0.0 if drifts else 19.5 * HOUR_S
        arrivals += [msgspec.structs.replace(each, at_s=each.at_s + since_s) for each in jobs]
        return Scene(Workload("autoscaled services", tuple(arrivals), tuple(rescales)), _paper_prices())

    return draw


# Prices and clouds.


def _on_stable(change: Callable[[Scene, int], Scene]) -> Callable[[int], Scene]:
    return lambda seed: change(_pattern("stable")(seed), seed)


def _billing(granularity_s: int, pattern: str = "stable") -> Callable[[int], Scene]:
    def draw(seed: int) -> Scene:
        scene = _pattern(pattern)(seed)
        return replace(scene, catalogue=_billed(scene.catalogue, granularity_s))

    return draw


def forty_flavours(exponent: float) -> Catalogue:
    """Ten sizes in four ratios of memory; a core costs as cores^(exponent - 1): below 1 large machines are cheaper."""
    made = []
    for ratio in (1, 2, 4, 8):
        for cores in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32):
            price = round((0.02 + 0.004 * ratio) * cores**exponent * 10**9)
            capacity = Resources(cores * 1000, cores * ratio * GIB, 0, 110)
            made.append(Flavour(f"c{cores}m{cores * ratio}", capacity, price))
    return Catalogue(tuple(made))


def _scarce(scene: Scene, seed: int) -> Scene:
    """Two of five orders are refused for want of room in the cloud."""
    return replace(scene, chances=Chances(out_of_stock=0.4))


# Traces.

TRACE_TASKS = 120


def _slice_of(path: Path) -> Callable[[int], Scene]:
    """So many tasks of a trace in a row, from a place that the seed draws, on the trace's machine shapes."""

    def draw(seed: int) -> Scene:
        arrivals = openb.openb(path).arrivals
        first = Random(f"slice/{seed}").randrange(max(1, len(arrivals) - TRACE_TASKS))
        part = arrivals[first : first + TRACE_TASKS]
        moved = tuple(msgspec.structs.replace(each, at_s=each.at_s - part[0].at_s) for each in part)
        return Scene(Workload(f"tasks {first} to {first + len(part)}", moved), _trace_prices())

    return draw


_GPU_WORK = (
    ((1000, 1000, 2000, 4000), 0.5 * HOUR_S, 4 * HOUR_S),
    ((100, 250, 500), 60.0, 900.0),
    ((0,), 60.0, 1800.0),
)
"""Thousandths of a GPU to choose from, the shortest and the longest run: training, inference, neither."""


def _gpu_mix(seed: int) -> Scene:
    """Training of hours on whole GPUs, inference tests of minutes on shares of one, and work without any."""

    def job(random: Random, name: str) -> Task:
        gpus, shortest_s, longest_s = random.choices(_GPU_WORK, (1, 2, 3))[0]
        cpu_m = random.choice((2000, 4000, 8000))
        amounts = {"cpu": cpu_m, "memory": cpu_m // 1000 * 4 * GIB, PODS: 1, openb.GPU_MILLI: random.choice(gpus)}
        task = _job(name, cpu_m, 1.0, random.uniform(shortest_s, longest_s))
        return msgspec.structs.replace(task, requests=Resources.of(amounts))

    random = Random(f"gpu-mix/{seed}")
    return Scene(Workload("gpu-mix", tuple(_jobs(random, 1 / 90, 3 * HOUR_S, job))), _trace_prices())


def _everyday(draw: Callable[[int], tuple[Workload, Catalogue, float]]) -> Callable[[int], Scene]:
    return lambda seed: Scene(*draw(seed))


def families(trace: Path | None = None) -> Mapping[str, Family]:
    """All families by name; slices of a trace among them where one is given."""
    made = [
        *(Family(each.name, f"the paper's {each.name} pattern", _pattern(each.name)) for each in patterns.PAPER),
        Family("heavy-tailed", "jobs of 1 min to 8 h, stated", _heavy_tailed(states=True)),
        Family("heavy-unstated", "the same, unstated", _heavy_tailed(states=False)),
        Family("trickle", "a short job every 2.5 min", _trickle),
        Family("long", "jobs of 1 to 6 h", _long),
        Family("anti-affine", "jobs that keep their team's others away", _anti_affine),
        Family("memory-bound", "8/3 times the memory", _memory_bound),
        Family("day-and-night", "services by day, jobs by night", _day_and_night),
        Family("drifting", "eight services that drift, few jobs", _autoscaled(drifts=True)),
        Family("flapping", "eight services that flap", _autoscaled(drifts=False)),
        Family("hourly", "billed by the hour", _billing(3600)),
        Family("hourly-on-off", "on-off, billed by the hour", _billing(3600, "on-off")),
        Family("per-second", "billed by the second", _billing(1)),
        Family("start-30s", "machines come in 30 s", _on_stable(lambda scene, _: replace(scene, startup_s=30.0))),
        Family("start-300s", "machines come in 5 min", _on_stable(lambda scene, _: replace(scene, startup_s=300.0))),
        Family("concave", "40 flavours, large ones cheaper a core", _on_stable(_priced(0.9))),
        Family("convex", "40 flavours, small ones cheaper a core", _on_stable(_priced(1.1))),
        Family("scarce", "two of five orders refused", _on_stable(_scarce)),
        Family("gpu-mix", "training, inference and CPU work", _gpu_mix),
    ]
    made += [Family(name, title, _everyday(draw)) for name, (title, draw) in EVERYDAY.items()]
    if trace is not None:
        made.append(Family("slice", f"{TRACE_TASKS} tasks of {trace.name}", _slice_of(trace)))
    return {each.name: each for each in made}


def _priced(exponent: float) -> Callable[[Scene, int], Scene]:
    return lambda scene, _: replace(scene, catalogue=forty_flavours(exponent))
