"""Families of work, each drawn anew by a seed: what arrives, what machines cost, how long they take to come.

The paper's four patterns are what HTAS was first measured on; the others here differ from them in one thing each, which
is named in their title, and those of everyday.py are the work of clusters as people have them. None was chosen by how
HTAS does on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec

from htas.model.billing import Billing
from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Arrival, ControllerKind, Rescale, Task, Workload
from htas.sandbox.workloads import openb
from tools.bench.money.elsewhere import ELSEWHERE
from tools.bench.money.everyday import EVERYDAY
from tools.bench.money.farms import FARMS
from tools.bench.money.fleets import FLEETS
from tools.bench.money.gpus import GPUS
from tools.bench.money.scenes import (
    GIB,
    HOUR_S,
    Family,
    Scene,
    job,
    jobs,
    paper_prices,
    service,
    trace_prices,
    with_gpus,
)
from tools.bench.money.sites import SITES
from tools.lab.workloads import patterns


def _billed(catalogue: Catalogue, granularity_s: int) -> Catalogue:
    return msgspec.structs.replace(catalogue, billing=Billing(granularity_s, granularity_s))


def _pattern(name: str) -> Callable[[int], Scene]:
    return lambda seed: Scene(patterns.workload(patterns.named(name), seed), paper_prices())


def bounded_pareto(share: float, shortest_s: float, longest_s: float, alpha: float) -> float:
    """The run length below which a share of all jobs stay: P(X > x) falls with x to the power -alpha."""
    left = 1 - share * (1 - (shortest_s / longest_s) ** alpha)
    return float(shortest_s * left ** (-1 / alpha))


# Heavy tails, short and long jobs.


def _heavy_tailed(*, states: bool) -> Callable[[int], Scene]:
    def draw(seed: int) -> Scene:
        def drawn(random: Random, name: str) -> Task:
            runs_s = bounded_pareto(random.random(), 60.0, 8 * HOUR_S, 0.8)
            return job(
                name,
                random.choice((100, 200, 500, 1000)),
                random.choice((0.3, 0.6, 1.5, 3.0)),
                runs_s,
                states=1.0 if states else None,
            )

        random = Random(f"heavy-tailed/{seed}")
        return Scene(Workload("heavy-tailed", tuple(jobs(random, 3 / 60, 1.5 * HOUR_S, drawn))), paper_prices())

    return draw


def _trickle(seed: int) -> Scene:
    def drawn(random: Random, name: str) -> Task:
        return job(name, random.choice((100, 250, 500)), random.choice((0.5, 1.0, 2.0)), random.uniform(30, 180))

    random = Random(f"trickle/{seed}")
    return Scene(Workload("trickle", tuple(jobs(random, 1 / 150, 4 * HOUR_S, drawn))), paper_prices())


def _long(seed: int) -> Scene:
    def drawn(random: Random, name: str) -> Task:
        return job(
            name, random.choice((500, 1000, 2000)), random.choice((2.0, 4.0, 8.0)), random.uniform(1, 6) * HOUR_S
        )

    random = Random(f"long/{seed}")
    return Scene(Workload("long", tuple(jobs(random, 1 / 240, 4 * HOUR_S, drawn))), paper_prices())


# What keeps pods apart, and what they ask for.


def _anti_affine(seed: int) -> Scene:
    """Jobs of eight teams, whose own do not share a node: licences, ports and caches are such cases."""

    def drawn(random: Random, name: str) -> Task:
        team = f"team-{random.randrange(8)}"
        task = job(name, random.choice((100, 200, 400)), random.choice((0.3, 0.6, 1.2)), random.uniform(120, 900))
        same = LabelSelector((Requirement("team", Operator.IN, (team,)),))
        apart = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, same),))
        return msgspec.structs.replace(task, labels={**task.labels, "team": team}, constraints=apart)

    random = Random(f"anti-affine/{seed}")
    return Scene(Workload("anti-affine", tuple(jobs(random, 2 / 60, HOUR_S, drawn))), paper_prices())


def _memory_bound(seed: int) -> Scene:
    """The stable pattern, with eight times the memory a core."""

    def heavy(task: Task) -> Task:
        requests = msgspec.structs.replace(task.requests, memory_bytes=task.requests.memory_bytes * 8 // 3)
        return msgspec.structs.replace(task, requests=requests)

    work = patterns.workload(patterns.named("stable"), seed)
    return Scene(patterns.mapped(work, heavy), paper_prices())


def _day_and_night(seed: int) -> Scene:
    """Four services that follow office hours, which have not opted in to be moved, and a night run of jobs."""
    random = Random(f"day-and-night/{seed}")
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(4):
        task = service(f"web-{number}", 250, 0.5)
        arrivals.append(Arrival(10.0 * number, task, ControllerKind.REPLICA_SET, 2))
        most = random.randint(8, 16)
        for half_hour in range(1, 48):
            traffic = max(0.0, math.sin((half_hour / 2 - 7) / 14 * math.pi)) if 14 < half_hour < 42 else 0.0
            wanted = 2 + round((most - 2) * traffic)
            rescales.append(Rescale(half_hour * 1800 + random.uniform(0, 300), "default", task.name, wanted))

    def drawn(random: Random, name: str) -> Task:
        return job(name, random.choice((500, 1000)), random.choice((1.0, 2.0, 4.0)), random.uniform(300, 3600))

    night = jobs(random, 1 / 60, 2 * HOUR_S, drawn)
    arrivals += [msgspec.structs.replace(each, at_s=each.at_s + 21.5 * HOUR_S) for each in night]
    return Scene(Workload("day-and-night", tuple(arrivals), tuple(rescales)), paper_prices())


def _autoscaled(*, drifts: bool) -> Callable[[int], Scene]:
    """Eight services of sizes of their own, scaled by their load for twenty hours; none has opted in to be moved.

    Replicas drift by two at most every 10 to 60 minutes with a trickle of jobs, or flap between least and four more
    every 5 to 30 minutes, and jobs come at the end alone.
    """

    def draw(seed: int) -> Scene:
        random = Random(f"{'drifting' if drifts else 'flapping'}/{seed}")
        arrivals, rescales = list[Arrival](), list[Rescale]()
        for number in range(8):
            task = service(f"web-{number}", random.choice((100, 250, 500)), random.choice((0.3, 0.5, 1.0, 2.0)))
            wanted = least = random.randint(2, 6)
            arrivals.append(Arrival(10.0 * number, task, ControllerKind.REPLICA_SET, least))
            at = 600.0
            while (at := at + random.uniform(*((600, 3600) if drifts else (300, 1800)))) < 20 * HOUR_S:
                wanted = (
                    max(2, wanted + random.choice((-2, -1, -1, 0, 1, 1, 2))) if drifts else least + random.randint(0, 4)
                )
                rescales.append(Rescale(at, "default", task.name, wanted))

        def drawn(random: Random, name: str) -> Task:
            return job(name, 500, 1.0, random.uniform(60, 600))

        rate_per_s, until_s, since_s = (1 / 600, 20 * HOUR_S, 0.0) if drifts else (1 / 60, HOUR_S / 2, 19.5 * HOUR_S)
        came = jobs(random, rate_per_s, until_s, drawn)
        arrivals += [msgspec.structs.replace(each, at_s=each.at_s + since_s) for each in came]
        return Scene(Workload("autoscaled services", tuple(arrivals), tuple(rescales)), paper_prices())

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
        return Scene(Workload(f"tasks {first} to {first + len(part)}", moved), trace_prices())

    return draw


_GPU_WORK = (
    ((1000, 1000, 2000, 4000), 0.5 * HOUR_S, 4 * HOUR_S),
    ((100, 250, 500), 60.0, 900.0),
    ((0,), 60.0, 1800.0),
)
"""Thousandths of a GPU to choose from, the shortest and the longest run: training, inference, neither."""


def _gpu_mix(seed: int) -> Scene:
    """Training of hours on whole GPUs, inference tests of minutes on shares of one, and work without any."""

    def drawn(random: Random, name: str) -> Task:
        gpus, shortest_s, longest_s = random.choices(_GPU_WORK, (1, 2, 3))[0]
        cpu_m, thousandths = random.choice((2000, 4000, 8000)), random.choice(gpus)
        return with_gpus(job(name, cpu_m, cpu_m // 1000 * 4, random.uniform(shortest_s, longest_s)), thousandths)

    random = Random(f"gpu-mix/{seed}")
    return Scene(Workload("gpu-mix", tuple(jobs(random, 1 / 90, 3 * HOUR_S, drawn))), trace_prices())


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
        *EVERYDAY,
        *ELSEWHERE,
        *FLEETS,
        *FARMS,
        *SITES,
        *GPUS,
    ]
    if trace is not None:
        made.append(Family("slice", f"{TRACE_TASKS} tasks of {trace.name}", _slice_of(trace)))
    return {each.name: each for each in made}


def _priced(exponent: float) -> Callable[[Scene, int], Scene]:
    return lambda scene, _: replace(scene, catalogue=forty_flavours(exponent))
