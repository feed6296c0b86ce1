"""Families of work as everyday clusters have it: CI, nightly chains, scaled services, notebooks, deploys, crons.

Each is told by where such work is met. None was chosen by how any contender does on it. Jobs state how long they run
in two of them alone, and in one of these wrongly: few people's jobs state it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import msgspec

from htas.model.billing import Billing
from htas.model.constraints import Constraints, SpreadConstraint
from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Budget, ControllerKind, HorizontalScaler, Load, Rescale, Workload
from tools.bench.money.scenes import (
    DEPLOYED,
    GIB,
    HOUR_S,
    MINUTE_S,
    Family,
    Scene,
    apart,
    closing,
    in_turn,
    job,
    of_app,
    paper_prices,
    poisson,
    service,
    trace_prices,
    unstated,
    with_gpus,
)

START_S = 120.0


# CI.


class _Stage(NamedTuple):
    """What a push starts: how many jobs at once (one, where none are told), how often it is left out, what follows."""

    name: str
    cpu_m: int
    gib: float
    shortest_s: float
    longest_s: float
    jobs: tuple[int, ...] = ()
    left_out: float = 0.0
    next_after_s: float = 0.0


_STAGES = (
    _Stage("lint", 500, 1.0, 40, 120, next_after_s=150.0),
    _Stage("unit", 1000, 2.0, 120, 420, jobs=(1, 1, 2, 3)),
    _Stage("build", 2000, 4.0, 180, 600, next_after_s=150.0),
    _Stage("integration", 1000, 3.0, 300, 1200, jobs=(1, 1, 2, 3)),
    _Stage("e2e", 2000, 6.0, 600, 1800, left_out=0.6),
)


def _pushes_per_s(at_s: float) -> float:
    """Most in the middle of the day, but for the hour at lunch."""
    hour = at_s / HOUR_S
    return (1.5 + 7.0 * max(0.0, math.sin(hour / 9 * math.pi)) * (0.35 if 4 <= hour < 5 else 1.0)) / HOUR_S


def _ci_bursts(seed: int) -> Scene:
    """The runners of a team's GitLab or Tekton, nine office hours: a push starts 4 to 9 jobs in three waves.

    Nothing states how long it runs. A small controller runs beside, and a last job comes four hours after the others.
    """
    random = Random(f"ci-bursts/{seed}")
    arrivals = [Arrival(0.0, service("ci-controller", 200, 0.5), DEPLOYED, 2)]
    number = 0
    for at_s in poisson(random, _pushes_per_s, 300.0, 9 * HOUR_S):
        when = at_s
        for stage in _STAGES:
            for _ in range(random.choice(stage.jobs) if stage.jobs else 1):
                if stage.left_out and random.random() < stage.left_out:
                    continue
                number += 1
                runs_s = random.uniform(stage.shortest_s, stage.longest_s)
                task = unstated(f"ci-{stage.name}-{number}", stage.cpu_m, stage.gib, runs_s)
                arrivals.append(Arrival(when, task))
            when += stage.next_after_s
    arrivals.append(closing(max(each.at_s for each in arrivals) + 4 * HOUR_S))
    return Scene(Workload("ci-bursts", in_turn(arrivals)), paper_prices(), startup_s=90.0)


# Data by night.


class _Step(NamedTuple):
    """A step of a chain: so many jobs of one size within so many seconds, and their shortest and longest run."""

    name: str
    jobs: int
    within_s: float
    cpu_m: int
    gib: float
    shortest_s: float
    longest_s: float


def _step(random: Random, since_s: float, step: _Step) -> Iterator[Arrival]:
    for number in range(step.jobs):
        at_s = since_s + random.uniform(0, step.within_s)
        runs_s = random.uniform(step.shortest_s, step.longest_s)
        yield Arrival(at_s, unstated(f"{step.name}-{number}", step.cpu_m, step.gib, runs_s))


def _spark(random: Random, number: int, since_s: float) -> Iterator[Arrival]:
    """A driver, and 8 to 16 executors that come a minute later and end before it."""
    begins_s = since_s + random.uniform(0, 240)
    length_s = random.uniform(30, 75) * MINUTE_S
    yield Arrival(begins_s, unstated(f"spark-driver-{number}", 1000, 3.0, length_s))
    for executor in range(random.randint(8, 16)):
        runs_s = length_s - 90 - random.uniform(0, 0.2) * length_s
        yield Arrival(begins_s + 60, unstated(f"spark-executor-{number}{executor:02d}", 3500, 12.0, runs_s))


def _etl_night(seed: int) -> Scene:
    """A warehouse filled by Airflow at night: a chain of ingest, clean, three Spark jobs, aggregates and reports.

    Steps begin by the clock, as schedules have them. Three dashboards run all night.
    """
    random = Random(f"etl-night/{seed}")
    arrivals = [Arrival(10.0 * number, service(f"dash-{number}", 300, 0.8), DEPLOYED, 2) for number in range(3)]
    at_s = HOUR_S
    arrivals += _step(random, at_s, _Step("ingest", 40, 600, 250, 0.5, 120, 600))
    at_s += 25 * MINUTE_S
    arrivals += _step(random, at_s, _Step("clean", 24, 120, 1000, 3.0, 300, 1200))
    at_s += 25 * MINUTE_S
    for number in range(3):
        arrivals += _spark(random, number, at_s + number * 12 * MINUTE_S)
    at_s += 120 * MINUTE_S
    arrivals += _step(random, at_s, _Step("aggregate", 30, 60, 500, 2.0, 200, 900))
    at_s += 25 * MINUTE_S
    arrivals += _step(random, at_s, _Step("report", 12, 60, 200, 0.7, 30, 180))
    arrivals.append(closing(at_s + 2 * HOUR_S))
    return Scene(Workload("etl-night", in_turn(arrivals)), paper_prices(), startup_s=START_S)


# Services.


def _traffic(random: Random, name: str, until_s: float) -> Iterator[Load]:
    """A wave of some three hours, noise, and now and then twice as much for two minutes."""
    base, swing, phase = random.uniform(150, 350), random.uniform(100, 400), random.uniform(0, 6.28)
    at_s = MINUTE_S
    while at_s < until_s:
        wave = base + swing * (1 + math.sin(phase + at_s / HOUR_S * 2.1)) / 2
        spike = random.uniform(1.6, 2.4) if random.random() < 0.03 else 1.0
        yield Load(at_s, "default", name, wave * spike * random.uniform(0.8, 1.2))
        at_s += random.uniform(90, 180)


def _web_hpa(seed: int) -> Scene:
    """A shop's backend, six hours: six services under HorizontalPodAutoscalers on CPU whose load changes every 2 min.

    Disruption budgets leave one replica of the least to go at a time. A small cron runs every quarter of an hour.
    """
    random, until_s = Random(f"web-hpa/{seed}"), 6 * HOUR_S
    arrivals, scalers, loads, budgets = list[Arrival](), list[HorizontalScaler](), list[Load](), list[Budget]()
    for number in range(6):
        name, least = f"shop-{number}", random.randint(2, 3)
        task = service(name, random.choice((200, 300, 500)), random.choice((0.4, 0.8, 1.5)))
        arrivals.append(Arrival(5.0 * number, task, DEPLOYED, least))
        scalers.append(HorizontalScaler("default", name, 100.0, 0.7, least, 14, is_saturating=True))
        budgets.append(Budget("default", name, of_app(name), least - 1))
        loads += _traffic(random, name, until_s)
    for tick in range(24):
        arrivals.append(Arrival(900.0 * tick + 30, unstated(f"cron-{tick}", 300, 0.5, random.uniform(30, 240))))
    arrivals.append(closing(until_s))
    work = Workload("web-hpa", in_turn(arrivals), budgets=tuple(budgets), scalers=tuple(scalers), loads=in_turn(loads))
    return Scene(work, paper_prices(), startup_s=START_S)


def _rolled(random: Random, old: str, new: str, replicas: int, since_s: float) -> Iterator[Rescale]:
    """A third of the pods at a time: some old ones go 1 to 2.5 min after as many new ones have come."""
    step = max(1, round(replicas / 3))
    done, at_s = step, since_s
    while done < replicas:
        at_s += random.uniform(60, 150)
        yield Rescale(at_s, "default", old, replicas - done)
        done = min(replicas, done + step)
        yield Rescale(at_s + 1, "default", new, done)
    yield Rescale(at_s + random.uniform(60, 150), "default", old, 0)


def _rolling_deploys(seed: int) -> Scene:
    """Five teams that deliver all day, six hours: each of fourteen services is deployed anew every hour or two.

    A ReplicaSet a version with a surge of a third; one deploy in four changes what a pod asks for.
    """
    random, until_s = Random(f"rolling-deploys/{seed}"), 6 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    for number in range(14):
        app, cpu_m, gib = f"svc-{number}", random.choice((100, 250, 500, 1000)), random.choice((0.3, 0.7, 1.5, 3.0))
        replicas = random.randint(2, 8)
        budgets.append(Budget("default", app, of_app(app), max(1, replicas - max(1, replicas // 4))))
        version, at_s, old = 0, random.uniform(0, 120), ""
        while at_s < until_s:
            labels = {"app": app, "version": str(version)}
            task = msgspec.structs.replace(service(f"{app}-v{version}", cpu_m, gib), labels=labels)
            arrivals.append(Arrival(at_s, task, DEPLOYED, max(1, round(replicas / 3)) if old else replicas))
            if old:
                rescales += _rolled(random, old, task.name, replicas, at_s)
                if random.random() < 0.25:
                    cpu_m = max(100, round(cpu_m * random.choice((0.5, 1.5)) / 50) * 50)
            old, version = task.name, version + 1
            at_s += random.uniform(0.8, 2.5) * HOUR_S
    arrivals.append(closing(until_s + 600))
    work = Workload("rolling-deploys", in_turn(arrivals), in_turn(rescales), budgets=tuple(budgets))
    return Scene(work, paper_prices(), startup_s=START_S)


def _spread_ha(seed: int) -> Scene:
    """A platform that must survive a node, seven hours: databases whose three pods keep apart, services spread evenly.

    Four StatefulSets apart by node, six Deployments spread with a skew of 1 and scaled now and then; small jobs.
    """
    random, until_s = Random(f"spread-ha/{seed}"), 7 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(4):
        name = f"db-{number}"
        task = service(name, random.choice((500, 1000)), random.choice((2.0, 4.0)), apart(name))
        arrivals.append(Arrival(5.0 * number, task, ControllerKind.STATEFUL_SET, 3))
    for number in range(6):
        name = f"web-{number}"
        spread = Constraints(spread=(SpreadConstraint(HOSTNAME_LABEL, 1, of_app(name)),))
        task = service(name, random.choice((100, 250, 500)), random.choice((0.3, 0.8, 1.5)), spread)
        least = random.randint(2, 5)
        arrivals.append(Arrival(30.0 + 5 * number, task, DEPLOYED, least))
        at_s = 900.0
        while (at_s := at_s + random.uniform(900, 3600)) < until_s:
            rescales.append(Rescale(at_s, "default", name, least + random.randint(-1, 4)))
    for number, at_s in enumerate(poisson(random, lambda _: 1 / 180, 600.0, until_s), 1):
        cpu_m, gib = random.choice((200, 500, 1000)), random.choice((0.5, 1.0, 2.0))
        arrivals.append(Arrival(at_s, unstated(f"task-{number}", cpu_m, gib, random.uniform(60, 1500))))
    return Scene(Workload("spread-ha", in_turn(arrivals), in_turn(rescales)), paper_prices(), startup_s=START_S)


# GPUs.


def _ml_notebooks(seed: int) -> Scene:
    """A research group's JupyterHub with a training queue: 14 trainings of 6 to 20 h on 1 to 4 GPUs, none stated.

    Forty notebooks of an office day, StatefulSets that are scaled to nothing when their user goes; one in four has a
    share of a GPU. The GPU trace's machines, which take three minutes.
    """
    random = Random(f"ml-notebooks/{seed}")
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(14):
        gpus = random.choice((1, 1, 1, 2, 4))
        task = unstated(f"train-{number}", gpus * 6000, gpus * 24, random.uniform(6, 20) * HOUR_S)
        arrivals.append(Arrival(random.uniform(0, 12) * HOUR_S, with_gpus(task, gpus * 1000)))
    for number in range(40):
        has_gpu = random.random() < 0.25
        cpu_m, gib = random.choice(((1000, 4), (2000, 8), (4000, 16)))
        notebook = service(f"notebook-{number}", cpu_m, gib)
        if has_gpu:
            notebook = with_gpus(service(f"notebook-{number}", 2000, 8), random.choice((250, 500)))
        comes_s = max(30.0, random.gauss(2.0, 1.2) * HOUR_S)
        arrivals.append(Arrival(comes_s, notebook, ControllerKind.STATEFUL_SET))
        stays_h = random.choice((random.uniform(0.5, 3), random.uniform(4, 10)))
        rescales.append(Rescale(comes_s + stays_h * HOUR_S, "default", notebook.name, 0))
    return Scene(Workload("ml-notebooks", in_turn(arrivals), in_turn(rescales)), trace_prices(), startup_s=180.0)


# Prices, crons, and what is stated wrongly.


def odd_price_list() -> Catalogue:
    """Memory is cheaper than balance, 4 cores are dearest a core, the huge one is a bargain; half an hour at least."""
    table = (
        ("g.2", 2, 8, 0.110),
        ("g.4", 4, 16, 0.260),
        ("g.8", 8, 32, 0.400),
        ("r.2", 2, 16, 0.095),
        ("r.8", 8, 64, 0.420),
        ("c.4", 4, 6, 0.150),
        ("c.16", 16, 24, 0.640),
        ("huge.32", 32, 128, 1.150),
        ("tiny.1", 1, 1, 0.060),
    )
    flavours = (
        Flavour(name, Resources(cores * 1000, gib * GIB, 0, 110), round(price * 10**9))
        for name, cores, gib, price in table
    )
    return Catalogue(tuple(flavours), billing=Billing(60, 1800))


def _odd_prices(seed: int) -> Scene:
    """A small provider's historical price list, machines that take 4 min: five services that breathe, jobs in waves.

    Jobs of 3 to 50 min, stated to the next minute.
    """
    random = Random(f"odd-prices/{seed}")
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(5):
        task = service(f"api-{number}", random.choice((250, 500, 1000)), random.choice((1.0, 3.0)))
        arrivals.append(Arrival(10.0 * number, task, DEPLOYED, 3))
        for quarter in range(1, 20):
            at_s = quarter * 900 + random.uniform(0, 500)
            rescales.append(Rescale(at_s, "default", task.name, random.randint(2, 7)))

    def rate(at_s: float) -> float:
        return (1.0 + 2.5 * (math.sin(at_s / HOUR_S * 2.5) > 0.3)) / 75

    for number, at_s in enumerate(poisson(random, rate, 600.0, 5 * HOUR_S), 1):
        runs_s, cpu_m, gib = random.uniform(180, 3000), random.choice((500, 1000, 2000)), random.choice((1.0, 2.0, 6.0))
        arrivals.append(Arrival(at_s, job(f"job-{number}", cpu_m, gib, runs_s, rounded_to_s=60.0)))
    return Scene(Workload("odd-prices", in_turn(arrivals), in_turn(rescales)), odd_price_list(), startup_s=240.0)


def _cron_minutes(seed: int) -> Scene:
    """Probes, mail and syncs as CronJobs, three hours: jobs of 10 to 60 s on the minute, six larger ones each quarter.

    All within three seconds of the minute, beside five steady services.
    """
    random = Random(f"cron-minutes/{seed}")
    arrivals = list[Arrival]()
    for number in range(5):
        task = service(f"base-{number}", random.choice((200, 400)), random.choice((0.5, 1.0)))
        arrivals.append(Arrival(5.0 * number, task, DEPLOYED, 2))
    crons = [
        (
            name,
            random.choice((100, 200, 300)),
            random.choice((0.2, 0.4)),
            random.uniform(10, 50),
            random.choice((1, 1, 2, 5)),
        )
        for name in "abcde"
    ]
    for minute in range(10, 190):
        for name, cpu_m, gib, runs_s, every in crons:
            if minute % every == 0:
                at_s = minute * MINUTE_S + random.uniform(0, 3)
                task = unstated(f"cron{name}-{minute}", cpu_m, gib, runs_s * random.uniform(0.8, 1.25))
                arrivals.append(Arrival(at_s, task))
        for part in range(6) if minute % 15 == 0 else ():
            at_s = minute * MINUTE_S + random.uniform(0, 3)
            arrivals.append(Arrival(at_s, unstated(f"quarter-{minute}{part}", 500, 1.0, random.uniform(60, 200))))
    return Scene(Workload("cron-minutes", in_turn(arrivals)), paper_prices(), startup_s=START_S)


def _misstated(seed: int) -> Scene:
    """A simulation group whose people guess: jobs of 4 min to 3 h that state a third of it, or three times."""
    random = Random(f"misstated/{seed}")
    arrivals = list[Arrival]()
    for number, at_s in enumerate(poisson(random, lambda _: 1 / 60, 60.0, 4 * HOUR_S), 1):
        runs_s, states = 240 * (45 ** (random.random() ** 1.6)), random.choice((1 / 3, 1 / 3, 3.0))
        cpu_m, gib = random.choice((250, 500, 1000, 2000)), random.choice((0.5, 1.0, 3.0, 6.0))
        arrivals.append(Arrival(at_s, job(f"sim-{number}", cpu_m, gib, runs_s, states=states)))
    return Scene(Workload("misstated", tuple(arrivals)), paper_prices(), startup_s=START_S)


EVERYDAY = (
    Family("ci-bursts", "pushes in office hours, jobs at once, unstated", _ci_bursts),
    Family("etl-night", "a nightly chain with Spark-like jobs", _etl_night),
    Family("web-hpa", "six services under HPAs with budgets", _web_hpa),
    Family("ml-notebooks", "training of 6 to 20 h, notebooks by day", _ml_notebooks),
    Family("rolling-deploys", "fourteen services deployed anew all day", _rolling_deploys),
    Family("odd-prices", "odd price list, half an hour at least, 4 min start", _odd_prices),
    Family("spread-ha", "databases apart, services spread, small jobs", _spread_ha),
    Family("cron-minutes", "crons of seconds every minute beside services", _cron_minutes),
    Family("misstated", "run lengths stated wrong by three", _misstated),
)
