"""Five families with price lists of clouds: streams, arrays, DAGs, services over a week-end, priorities by day.

Who wrote them had not seen the code, and wrote clusters as he knows them. Prices are public list prices as remembered
(AWS us-east-1, Hetzner Cloud, OVHcloud, Azure), with the rules of rental that these have or had; what the system keeps
of a machine is `reserved` where the provider does so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import msgspec

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.sandbox.workload import Arrival, Budget, Rescale, Workload
from tools.bench.money.scenes import (
    DEPLOYED,
    HOUR_S,
    MINUTE_S,
    STATEFUL,
    Family,
    Scene,
    apart,
    closing,
    flavours,
    in_turn,
    job,
    limited,
    of_app,
    poisson,
    service,
    with_priority,
)


def aws_like() -> Catalogue:
    """c6i, m6i and r6i, linear in size, by the second from a minute on; 100m and 0.6 GiB are the system's."""
    sizes = (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32))
    rows = [
        (f"{kind}.{size}", cores, cores * ratio, cores / 2 * price)
        for kind, ratio, price in (("c6i", 2, 0.085), ("m6i", 4, 0.096), ("r6i", 8, 0.126))
        for size, cores in sizes
    ]
    return Catalogue(flavours(rows, (100, 0.6)), billing=Billing(1, 60))


def hetzner_like() -> Catalogue:
    """Shared and dedicated cores; any part of an hour is an hour."""
    return Catalogue(
        flavours(
            (
                ("cx22", 2, 4, 0.0060),
                ("cx32", 4, 8, 0.0113),
                ("cx42", 8, 16, 0.0273),
                ("cx52", 16, 32, 0.0540),
                ("ccx13", 2, 8, 0.0200),
                ("ccx23", 4, 16, 0.0392),
                ("ccx33", 8, 32, 0.0769),
                ("ccx43", 16, 64, 0.1538),
                ("ccx53", 32, 128, 0.3077),
            ),
            (0, 0.4),
        ),
        currency="EUR",
        billing=Billing(3600, 3600),
    )


def ovh_like() -> Catalogue:
    """b2, c2 and r2: an hour at least, then by the minute."""
    return Catalogue(
        flavours(
            (
                ("b2-7", 2, 7, 0.0681),
                ("b2-15", 4, 15, 0.1290),
                ("b2-30", 8, 30, 0.2601),
                ("b2-60", 16, 60, 0.5132),
                ("c2-7", 2, 7, 0.0990),
                ("c2-15", 4, 15, 0.1970),
                ("r2-15", 2, 15, 0.0999),
                ("r2-30", 2, 30, 0.1088),
                ("r2-60", 4, 60, 0.2188),
                ("r2-120", 8, 120, 0.4368),
                ("r2-240", 16, 240, 0.8736),
            ),
            (0, 0.5),
        ),
        currency="EUR",
        billing=Billing(60, 3600),
    )


def bargain_like() -> Catalogue:
    """A private cloud's list whose old 48-core blades are sold off at 40 % of what their size would cost."""
    return Catalogue(
        flavours(
            (
                ("s.2", 2, 4, 0.070),
                ("s.4", 4, 8, 0.136),
                ("b.4", 4, 16, 0.168),
                ("b.8", 8, 32, 0.330),
                ("b.16", 16, 64, 0.655),
                ("m.8", 8, 64, 0.450),
                ("m.16", 16, 128, 0.890),
                ("xl.32", 32, 128, 1.290),
                ("blade.48", 48, 192, 0.790),
            ),
            (200, 1.0),
        ),
        billing=Billing(60, 60),
    )


def azure_like() -> Catalogue:
    """D, E and F of generation 5 and small burstable ones, by the minute; AKS keeps cores and much of a small node."""
    rows = (
        ("B2s", 2, 4, 0.0416, 100, 1.2),
        ("B2ms", 2, 8, 0.0832, 100, 1.8),
        ("D2s", 2, 8, 0.0960, 100, 1.8),
        ("D4s", 4, 16, 0.1920, 140, 2.6),
        ("D8s", 8, 32, 0.3840, 180, 3.6),
        ("D16s", 16, 64, 0.7680, 260, 5.5),
        ("E2s", 2, 16, 0.1260, 100, 2.6),
        ("E4s", 4, 32, 0.2520, 140, 3.6),
        ("E8s", 8, 64, 0.5040, 180, 5.5),
        ("F2s", 2, 4, 0.0846, 100, 1.2),
        ("F4s", 4, 8, 0.1690, 140, 1.8),
        ("F8s", 8, 16, 0.3380, 180, 2.6),
        ("F16s", 16, 32, 0.6770, 260, 3.6),
    )
    sold = tuple(
        flavour
        for name, cores, gib, price, kept_m, kept_gib in rows
        for flavour in flavours([(name, cores, gib, price)], (kept_m, kept_gib))
    )
    return Catalogue(sold, billing=Billing(60, 60))


# HPC arrays.


def _stated(random: Random) -> float | None:
    """How people fill in a wall time: generous, the queue's default (far too long), too short, not at all."""
    return random.choices((1.3, 4.0, 0.4, None), (5, 2, 1, 2))[0]


def _hpc_arrays(seed: int) -> Scene:
    """A simulation group, 10 h: five arrays of 60 to 200 equal jobs at once, of 20 to 90 min; a few users' jobs beside.

    All jobs of an array have one statement, as one sbatch line has it; they differ by 15 % among each other.
    """
    random = Random(f"hpc-arrays/{seed}")
    arrivals = list[Arrival]()
    for array in range(5):
        at_s = array * 2 * HOUR_S + random.uniform(0, 1.2) * HOUR_S
        cpu_m, gib = random.choice(((1000, 2.0), (2000, 3.5), (2000, 7.0), (4000, 7.0), (1000, 7.0)))
        length_s, states = random.uniform(20, 90) * MINUTE_S, _stated(random)
        walltime_s = None if states is None else math.ceil(length_s * states / 300) * 300.0
        for part in range(random.choice((60, 100, 200))):
            task = job(f"cfd{chr(97 + array)}-{part}", cpu_m, gib, length_s * random.uniform(0.85, 1.15), states=None)
            arrivals.append(Arrival(at_s + part * 0.05, limited(task, walltime_s)))
    for number, at_s in enumerate(poisson(random, lambda _: 1 / 600, 60.0, 10 * HOUR_S)):
        cpu_m, gib = random.choice((1000, 4000, 8000)), random.choice((2.0, 8.0, 30.0))
        task = job(f"user-{number}", cpu_m, gib, random.uniform(5, 120) * MINUTE_S, states=_stated(random))
        arrivals.append(Arrival(at_s, task))
    return Scene(Workload("hpc-arrays", in_turn(arrivals)), aws_like(), startup_s=90.0)


# Airflow.


def _tree(random: Random, dag: str, at_s: float, depth: int, path: str = "") -> Iterator[Arrival]:
    """A task, and its children, which come when it would have ended had it begun 20 s after it came."""
    cpu_m, gib = random.choice(((250, 0.5), (500, 1.0), (500, 2.0), (1000, 3.0), (2000, 6.0)))
    runs_s = min(HOUR_S, random.lognormvariate(math.log(240), 0.9))
    yield Arrival(at_s, job(f"{dag}-{path or 'root'}", cpu_m, gib, runs_s, states=None))
    if depth:
        for child in range(random.choice((1, 1, 2, 3, 4))):
            yield from _tree(random, dag, at_s + runs_s + 20, depth - 1, f"{path}{child}")


def _airflow_trees(seed: int) -> Scene:
    """Airflow with KubernetesPodOperators, 8 h: ten DAGs by the hour, two by the quarter; its own Deployments beside.

    A run is a tree of tasks, children come as parents end; the same DAG has the same tree each time, other lengths.
    """
    random = Random(f"airflow-trees/{seed}")
    arrivals = [
        Arrival(0.0, service("airflow-scheduler", 500, 1.5), DEPLOYED, 2),
        Arrival(5.0, service("airflow-web", 250, 1.0), DEPLOYED, 2),
        Arrival(10.0, service("airflow-db", 1000, 4.0), STATEFUL, 1),
        Arrival(15.0, service("statsd", 100, 0.2), DEPLOYED, 1),
    ]
    for dag in range(12):
        every_s = 15 * MINUTE_S if dag < 2 else random.choice((1, 1, 2, 4)) * HOUR_S
        depth = 1 if dag < 2 else random.choice((2, 3, 3))
        shape = random.random()
        at_s = 120.0 + random.choice((0.0, 0.0, 300.0, 1800.0))
        while at_s < 8 * HOUR_S:
            tree = list(_tree(Random(f"{seed}/{dag}/{shape}"), f"dag{chr(97 + dag)}", at_s, depth))
            arrivals += [_lengthened(random, each, int(at_s)) for each in tree]
            at_s += every_s
    arrivals.append(closing(9 * HOUR_S))
    return Scene(Workload("airflow-trees", in_turn(arrivals)), hetzner_like(), startup_s=45.0)


def _lengthened(random: Random, each: Arrival, run: int) -> Arrival:
    """The same step in another run of its DAG: its name ends in the run, as Airflow has it."""
    name = f"{each.task.name}-run{run}"
    task = msgspec.structs.replace(
        each.task, name=name, labels={"job": name}, runs_s=(each.task.runs_s or 0.0) * random.uniform(0.7, 1.0)
    )
    return msgspec.structs.replace(each, task=task, at_s=each.at_s + random.uniform(0, 8))


# Microservices by the week.


class _Stage(NamedTuple):
    """A job that a push starts, and its shortest and longest run."""

    name: str
    cpu_m: int
    gib: float
    shortest_s: float
    longest_s: float


_STAGES = (
    _Stage("cix", 500, 1.0, 60, 180),
    _Stage("ciy", 2000, 4.0, 180, 700),
    _Stage("ciz", 1500, 3.0, 240, 1100),
)


def _store(random: Random, number: int) -> tuple[Arrival, Budget]:
    """Four caches, and then databases; no two pods of one on one node."""
    is_cache = number < 4
    name = f"{'redis' if is_cache else 'pg'}-{chr(97 + number)}"
    gib = random.choice((6.0, 12.0, 24.0)) if is_cache else random.choice((4.0, 8.0))
    task = service(name, 500 if is_cache else 1500, gib, apart(name))
    arrival = Arrival(number, task, STATEFUL, 3 if is_cache else 2)
    return arrival, Budget("default", name, of_app(name), 2 if is_cache else 1)


def _traffic(half_hour: int) -> float:
    """So many half hours after ten o'clock on Friday, as a share of the most: none by night, half on Saturday."""
    hour, is_saturday = (10 + half_hour / 2) % 24, half_hour >= 28
    traffic = max(0.0, math.sin((hour - 6) / 17 * math.pi)) if 6 < hour < 23 else 0.0
    return traffic * (0.5 if is_saturday else 1.0)


def _rescaled(random: Random, name: str, least: int, most: int) -> Iterator[Rescale]:
    """By the traffic, to within 15 %; told where the number changes alone."""
    wanted = least
    for half_hour in range(1, 64):
        now = least + round((most - least) * _traffic(half_hour) * random.uniform(0.85, 1.15))
        if now != wanted:
            yield Rescale(half_hour * 1800 + random.uniform(0, 400), "default", name, now)
            wanted = now


def _pushes_per_s(at_s: float) -> float:
    return (8 if at_s < 8 * HOUR_S else 0.6) / HOUR_S


def _pushed(random: Random) -> Iterator[Arrival]:
    """Jobs of CI: the first stage always, each other one four times in five."""
    for number, at_s in enumerate(poisson(random, _pushes_per_s, 600.0, 31 * HOUR_S)):
        for turn, stage in enumerate(_STAGES):
            if turn == 0 or random.random() < 0.8:
                runs_s = random.uniform(stage.shortest_s, stage.longest_s)
                task = job(f"{stage.name}-{number}", stage.cpu_m, stage.gib, runs_s, states=None)
                yield Arrival(at_s + turn * 150, task)


def _weekly_micro(seed: int) -> Scene:
    """Friday from ten o'clock to Saturday evening in a shop, 32 h: ten services by the hour, half as many on Saturday.

    Four caches of 6 to 24 GiB and two databases are StatefulSets apart by node, under budgets, and there is CI in
    Friday's working hours.
    """
    random, until_s = Random(f"weekly-micro/{seed}"), 32 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    for number in range(6):
        arrival, budget = _store(random, number)
        arrivals.append(arrival)
        budgets.append(budget)
    for number in range(10):
        name, least = f"svc-{chr(97 + number)}", random.choice((2, 2, 3))
        most = least + random.randint(2, 9)
        task = service(name, random.choice((100, 250, 500)), random.choice((0.3, 0.75, 1.5)))
        arrivals.append(Arrival(60.0 + number, task, DEPLOYED, least))
        budgets.append(Budget("default", name, of_app(name), least - 1))
        rescales += _rescaled(random, name, least, most)
    arrivals += _pushed(random)
    arrivals.append(closing(until_s))
    work = Workload("weekly-micro", in_turn(arrivals), in_turn(rescales), budgets=tuple(budgets))
    return Scene(work, ovh_like(), startup_s=150.0)


# Streams and a few huge jobs.


def _streams_and_huge(seed: int) -> Scene:
    """Flink and Kafka beside a few huge jobs, 16 h: eight streams as StatefulSets whose parallelism changes at times.

    Three Spark streams are Jobs that run until the end; five to eight jobs have 8 to 40 cores for 40 min to 3 h. None
    is stated.
    """
    random, until_s = Random(f"streams-and-huge/{seed}"), 16 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    arrivals.append(Arrival(0.0, service("kafka", 1000, 6.0, apart("kafka")), STATEFUL, 3))
    budgets.append(Budget("default", "kafka", of_app("kafka"), 2))
    for number in range(8):
        name, least = f"flink-{chr(97 + number)}", random.randint(1, 4)
        stream = service(name, random.choice((500, 1000, 2000)), random.choice((2.0, 4.0, 8.0)))
        arrivals.append(Arrival(30.0 + number, stream, STATEFUL, least))
        at_s = 1800.0
        while (at_s := at_s + random.uniform(1, 4) * HOUR_S) < until_s:
            rescales.append(Rescale(at_s, "default", name, max(1, least + random.randint(-1, 2))))
    for number in range(3):
        arrivals.append(Arrival(300.0 + number, job(f"sparkstream-{number}", 1500, 5.0, until_s - 300, states=None)))
    for number in range(random.randint(5, 8)):
        cpu_m = random.choice((8000, 12000, 16000, 24000, 40000))
        gib = cpu_m / 1000 * random.choice((2.0, 3.5, 3.5))
        task = job(f"huge-{number}", cpu_m, gib, random.uniform(40, 180) * MINUTE_S, states=None)
        arrivals.append(Arrival(random.uniform(0.5, 13) * HOUR_S, task))
    for number, at_s in enumerate(poisson(random, lambda _: 1 / 1200, 600.0, until_s)):
        arrivals.append(Arrival(at_s, job(f"compact-{number}", 500, 2.0, random.uniform(60, 900), states=None)))
    arrivals.append(closing(until_s))
    work = Workload("streams-and-huge", in_turn(arrivals), in_turn(rescales), budgets=tuple(budgets))
    return Scene(work, bargain_like(), startup_s=400.0)


# A mixture as Borg's and Azure's traces have it.


def _by_day(random: Random, name: str, least: int) -> Iterator[Rescale]:
    """Each 20 min, along a wave of a day whose height and beginning are the service's own."""
    swing, phase = random.randint(1, 7), random.uniform(-1, 1)
    for tick in range(1, 36):
        day = (1 + math.sin((tick / 3 + phase) / 12 * 2 * math.pi)) / 2
        yield Rescale(tick * 1200 + random.uniform(0, 600), "default", name, least + round(swing * day))


def _batch(random: Random, number: int, at_s: float, free_share: float) -> Iterator[Arrival]:
    """A job of one task, mostly, or of up to 20, alike in size and about in length; it is free or mid-tier."""
    is_free = random.random() < free_share
    cpu_m = min(8000, max(50, round(random.lognormvariate(math.log(400), 1.0) / 50) * 50))
    gib = min(24.0, max(0.1, cpu_m / 1000 * random.lognormvariate(math.log(2.5), 0.7)))
    length_s = min(6 * HOUR_S, max(15.0, random.lognormvariate(math.log(420), 1.3)))
    states = random.uniform(1 / 1.5, 1.5) if random.random() < 1 / 3 else None
    for part in range(min(20, int(random.paretovariate(1.2)))):
        name = f"{'free' if is_free else 'mid'}{number}x-{part}"
        task = job(name, cpu_m, gib, length_s * random.uniform(0.9, 1.1), states=states)
        yield Arrival(at_s + part * 0.2, with_priority(task, 0 if is_free else 100))


def _borg_mix(seed: int) -> Scene:
    """12 h as the traces of Google and Azure: many small jobs, few that take most; heavy tails in tasks and length.

    Production services (priority 200) follow the day; mid-tier jobs (100) too; free ones (0) come rather by night. A
    third states its length, to within a factor of 1.5.
    """
    random, until_s = Random(f"borg-mix/{seed}"), 12 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(7):
        name, least = f"prod-{chr(97 + number)}", random.randint(1, 4)
        task = service(name, random.choice((150, 300, 700, 1500)), random.choice((0.4, 1.0, 2.5, 6.0)))
        arrivals.append(Arrival(5.0 * number, with_priority(task, 200), DEPLOYED, least))
        rescales += _by_day(random, name, least)

    def batches_per_s(at_s: float) -> float:
        return (1 + math.sin(at_s / until_s * 2 * math.pi) * 0.6) / 260

    for number, at_s in enumerate(poisson(random, batches_per_s, 300.0, 11 * HOUR_S)):
        arrivals += _batch(random, number, at_s, 0.3 if at_s < until_s / 2 else 0.7)
    arrivals.append(closing(until_s))
    return Scene(Workload("borg-mix", in_turn(arrivals), in_turn(rescales)), azure_like(), startup_s=200.0)


ELSEWHERE = (
    Family("hpc-arrays", "arrays of equal jobs, walltimes guessed; AWS-like, by the second, 90 s", _hpc_arrays),
    Family("airflow-trees", "DAG trees by the hour; Hetzner-like, whole hours, 45 s", _airflow_trees),
    Family("weekly-micro", "services by the weekday, caches, CI; OVH-like, an hour at least, 150 s", _weekly_micro),
    Family("streams-and-huge", "streams and few huge jobs; a discounted blade, 400 s", _streams_and_huge),
    Family("borg-mix", "heavy tails and priorities by the day; Azure-like, by the minute, 200 s", _borg_mix),
)
