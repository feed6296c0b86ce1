"""Families of work as found in everyday clusters: CI, nightly chains, scaled web services, notebooks, deploys, crons.

None was chosen by how any contender does on it.
"""

from __future__ import annotations

import math
from random import Random

import msgspec

from htas.config.loader import load_catalogue
from htas.config.places import config_file
from htas.experiments.workloads import openb
from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.flavours import Billing, Catalogue, Flavour
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import WorkKind
from htas.model.resources import PODS, Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.sandbox.workload import Arrival, Budget, ControllerKind, HorizontalScaler, Load, Rescale, Task, Workload

GIB, HOUR_S, MINUTE_S = 2**30, 3600.0, 60.0


def _nectar() -> Catalogue:
    return load_catalogue(config_file("flavours/nectar.yaml"))


def _job(name: str, cpu_m: int, gib: float, runs_s: float, stated_s: float | None = None) -> Task:
    return Task(
        name,
        Resources(cpu_m, int(gib * GIB), 0, 1),
        kind=WorkKind.BATCH,
        runs_s=runs_s,
        stated_s=stated_s,
        labels={"job": name},
    )


def _web(name: str, cpu_m: int, gib: float, constraints: Constraints = Constraints()) -> Task:
    return Task(name, Resources(cpu_m, int(gib * GIB), 0, 1), labels={"app": name}, constraints=constraints)


def _of_app(name: str) -> LabelSelector:
    return LabelSelector((Requirement("app", Operator.IN, (name,)),))


def _closing(at_s: float) -> Arrival:
    """A short job in the end: a run ends with its last job, and what services do until then is billed."""
    return Arrival(at_s, _job("closing", 100, 0.2, 60.0))


def ci_bursts(seed: int):
    """Nine office hours: each push starts 3 to 14 jobs at once; nothing states how long it runs; one small controller."""
    random = Random(f"ci-bursts/{seed}")
    arrivals = [Arrival(0.0, _web("ci-controller", 200, 0.5), ControllerKind.REPLICA_SET, 2)]
    stages = (
        ("lint", 500, 1.0, 40, 120),
        ("unit", 1000, 2.0, 120, 420),
        ("build", 2000, 4.0, 180, 600),
        ("integration", 1000, 3.0, 300, 1200),
        ("e2e", 2000, 6.0, 600, 1800),
    )
    at = 300.0
    number = 0
    while at < 9 * HOUR_S:
        hour = at / HOUR_S
        pushes_per_hour = 1.5 + 7.0 * max(0.0, math.sin(hour / 9 * math.pi)) * (0.35 if 4 <= hour < 5 else 1.0)
        at += random.expovariate(pushes_per_hour / HOUR_S)
        when = at
        for name, cpu, gib, least, most in stages:
            for _ in range(random.choice((1, 1, 2, 3)) if name in ("unit", "integration") else 1):
                if name == "e2e" and random.random() < 0.6:
                    continue
                number += 1
                runs = random.uniform(least, most)
                arrivals.append(Arrival(when, _job(f"ci-{name}-{number}", cpu, gib, runs)))
            if name in ("lint", "build"):
                when += 150
    arrivals.append(_closing(max(each.at_s for each in arrivals) + 4 * HOUR_S))
    return Workload("ci-bursts", tuple(sorted(arrivals, key=lambda each: each.at_s))), _nectar(), 90.0


def etl_night(seed: int):
    """Three dashboards all night, and a chain: ingest, clean, three Spark-like jobs of a driver and executors, reports."""
    random = Random(f"etl-night/{seed}")
    arrivals = [
        Arrival(10.0 * number, _web(f"dash-{number}", 300, 0.8), ControllerKind.REPLICA_SET, 2) for number in range(3)
    ]
    start = 1 * HOUR_S
    for number in range(40):
        arrivals.append(
            Arrival(start + random.uniform(0, 600), _job(f"ingest-{number}", 250, 0.5, random.uniform(120, 600)))
        )
    start += 25 * MINUTE_S
    for number in range(24):
        arrivals.append(
            Arrival(start + random.uniform(0, 120), _job(f"clean-{number}", 1000, 3.0, random.uniform(300, 1200)))
        )
    start += 25 * MINUTE_S
    for job in range(3):
        begins = start + job * 12 * MINUTE_S + random.uniform(0, 240)
        length = random.uniform(30, 75) * MINUTE_S
        arrivals.append(Arrival(begins, _job(f"spark-driver-{job}", 1000, 3.0, length)))
        for executor in range(random.randint(8, 16)):
            runs = length - 90 - random.uniform(0, 0.2) * length
            arrivals.append(Arrival(begins + 60, _job(f"spark-executor-{job}{executor:02d}", 3500, 12.0, runs)))
    start += 120 * MINUTE_S
    for number in range(30):
        arrivals.append(
            Arrival(start + random.uniform(0, 60), _job(f"aggregate-{number}", 500, 2.0, random.uniform(200, 900)))
        )
    start += 25 * MINUTE_S
    for number in range(12):
        arrivals.append(
            Arrival(start + random.uniform(0, 60), _job(f"report-{number}", 200, 0.7, random.uniform(30, 180)))
        )
    arrivals.append(_closing(start + 2 * HOUR_S))
    return Workload("etl-night", tuple(sorted(arrivals, key=lambda each: each.at_s))), _nectar(), 120.0


def web_hpa(seed: int):
    """Six services under HorizontalPodAutoscalers, loads that change every two minutes, budgets of n - 1; few crons."""
    random = Random(f"web-hpa/{seed}")
    arrivals, scalers, loads, budgets = [], [], [], []
    until = 6 * HOUR_S
    for number in range(6):
        name = f"shop-{number}"
        least = random.randint(2, 3)
        task = _web(name, random.choice((200, 300, 500)), random.choice((0.4, 0.8, 1.5)))
        arrivals.append(Arrival(5.0 * number, task, ControllerKind.REPLICA_SET, least))
        scalers.append(HorizontalScaler("default", name, 100.0, 0.7, least, 14, is_saturating=True))
        budgets.append(Budget("default", name, _of_app(name), least - 1))
        base, swing, phase = random.uniform(150, 350), random.uniform(100, 400), random.uniform(0, 6.28)
        at = 60.0
        while at < until:
            wave = base + swing * (1 + math.sin(phase + at / HOUR_S * 2.1)) / 2
            spike = random.uniform(1.6, 2.4) if random.random() < 0.03 else 1.0
            loads.append(Load(at, "default", name, wave * spike * random.uniform(0.8, 1.2)))
            at += random.uniform(90, 180)
    for tick in range(24):
        arrivals.append(Arrival(900.0 * tick + 30, _job(f"cron-{tick}", 300, 0.5, random.uniform(30, 240))))
    arrivals.append(_closing(until))
    loads.sort(key=lambda each: each.at_s)
    arrivals.sort(key=lambda each: each.at_s)
    work = Workload(
        "web-hpa", tuple(arrivals), budgets=tuple(budgets), scalers=tuple(scalers), loads=tuple(loads)
    )
    return work, _nectar(), 120.0


def ml_notebooks(seed: int):
    """Training of 6 to 20 h on whole GPUs, unstated; notebooks of an office day as StatefulSets, a few on GPU shares."""
    random = Random(f"ml-notebooks/{seed}")
    catalogue = load_catalogue(config_file("flavours/openb.yaml"))
    arrivals, rescales = [], []
    for number in range(14):
        gpus = random.choice((1, 1, 1, 2, 4))
        cores = 6 * gpus
        amounts = {"cpu": cores * 1000, "memory": cores * 4 * GIB, PODS: 1, openb.GPU_MILLI: gpus * 1000}
        task = _job(f"train-{number}", cores * 1000, 1.0, random.uniform(6, 20) * HOUR_S)
        task = msgspec.structs.replace(task, requests=Resources.of(amounts))
        arrivals.append(Arrival(random.uniform(0, 12) * HOUR_S, task))
    for number in range(40):
        kind = random.random()
        cpu, gib, gpu = random.choice(((1000, 4, 0), (2000, 8, 0), (4000, 16, 0)))
        if kind < 0.25:
            cpu, gib, gpu = 2000, 8, random.choice((250, 500))
        amounts = {"cpu": cpu, "memory": gib * GIB, PODS: 1, **({openb.GPU_MILLI: gpu} if gpu else {})}
        task = msgspec.structs.replace(_web(f"notebook-{number}", cpu, gib), requests=Resources.of(amounts))
        comes = random.gauss(2.0, 1.2) * HOUR_S
        arrivals.append(Arrival(max(30.0, comes), task, ControllerKind.STATEFUL_SET, 1))
        stays = random.choice((random.uniform(0.5, 3), random.uniform(4, 10)))
        rescales.append(Rescale(max(30.0, comes) + stays * HOUR_S, "default", task.name, 0))
    arrivals.sort(key=lambda each: each.at_s)
    rescales.sort(key=lambda each: each.at_s)
    return Workload("ml-notebooks", tuple(arrivals), tuple(rescales)), catalogue, 180.0


def rolling_deploys(seed: int):
    """Fourteen services of five teams; each is deployed anew every hour or two: surge of a third, old pods go as new come."""
    random = Random(f"rolling-deploys/{seed}")
    arrivals, rescales, budgets = [], [], []
    until = 6 * HOUR_S
    for number in range(14):
        cpu, gib, replicas = random.choice((100, 250, 500, 1000)), random.choice((0.3, 0.7, 1.5, 3.0)), random.randint(2, 8)
        app = f"svc-{number}"
        version, at, old = 0, random.uniform(0, 120), None
        budgets.append(Budget("default", app, _of_app(app), max(1, replicas - max(1, replicas // 4))))
        while at < until:
            task = msgspec.structs.replace(_web(f"{app}-v{version}", cpu, gib), labels={"app": app, "version": str(version)})
            if old is None:
                arrivals.append(Arrival(at, task, ControllerKind.REPLICA_SET, replicas))
            else:
                step = max(1, round(replicas / 3))
                arrivals.append(Arrival(at, task, ControllerKind.REPLICA_SET, step))
                done, when = step, at
                while done < replicas:
                    when += random.uniform(60, 150)
                    rescales.append(Rescale(when, "default", old, replicas - done))
                    done = min(replicas, done + step)
                    rescales.append(Rescale(when + 1, "default", task.name, done))
                rescales.append(Rescale(when + random.uniform(60, 150), "default", old, 0))
                if random.random() < 0.25:
                    cpu = max(100, round(cpu * random.choice((0.5, 1.5)) / 50) * 50)
            old, version = task.name, version + 1
            at += random.uniform(0.8, 2.5) * HOUR_S
    arrivals.append(_closing(until + 600))
    arrivals.sort(key=lambda each: each.at_s)
    rescales.sort(key=lambda each: each.at_s)
    return Workload("rolling-deploys", tuple(arrivals), tuple(rescales), budgets=tuple(budgets)), _nectar(), 120.0


def odd_price_list() -> Catalogue:
    """Memory-optimised is cheaper than general, 4 cores are the dearest a core, a huge one is a bargain; half hours at least."""
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
    flavours = (Flavour(name, Resources(cores * 1000, gib * GIB, 0, 110), round(price * 10**9)) for name, cores, gib, price in table)
    return Catalogue(tuple(flavours), billing=Billing(60, 1800))


def odd_prices(seed: int):
    """Five services that breathe, jobs of 3 to 50 min stated, in waves; the odd list; machines take 4 min."""
    random = Random(f"odd-prices/{seed}")
    arrivals, rescales = [], []
    for number in range(5):
        task = _web(f"api-{number}", random.choice((250, 500, 1000)), random.choice((1.0, 3.0)))
        arrivals.append(Arrival(10.0 * number, task, ControllerKind.REPLICA_SET, 3))
        for quarter in range(1, 20):
            rescales.append(Rescale(quarter * 900 + random.uniform(0, 500), "default", task.name, random.randint(2, 7)))
    at, number = 600.0, 0
    while at < 5 * HOUR_S:
        busy = 1.0 + 2.5 * (math.sin(at / HOUR_S * 2.5) > 0.3)
        at += random.expovariate(busy / 75)
        number += 1
        runs = random.uniform(180, 3000)
        task = _job(f"job-{number}", random.choice((500, 1000, 2000)), random.choice((1.0, 2.0, 6.0)), runs, math.ceil(runs / 60) * 60.0)
        arrivals.append(Arrival(at, task))
    rescales.sort(key=lambda each: each.at_s)
    return Workload("odd-prices", tuple(sorted(arrivals, key=lambda each: each.at_s)), tuple(rescales)), odd_price_list(), 240.0


def spread_ha(seed: int):
    """Four databases of three that keep apart by node, six services spread with skew 1, small jobs between; some scaling."""
    random = Random(f"spread-ha/{seed}")
    arrivals, rescales = [], []
    for number in range(4):
        name = f"db-{number}"
        apart = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, _of_app(name)),))
        task = _web(name, random.choice((500, 1000)), random.choice((2.0, 4.0)), apart)
        arrivals.append(Arrival(5.0 * number, task, ControllerKind.STATEFUL_SET, 3))
    for number in range(6):
        name = f"web-{number}"
        spread = Constraints(spread=(SpreadConstraint(HOSTNAME_LABEL, 1, _of_app(name)),))
        task = _web(name, random.choice((100, 250, 500)), random.choice((0.3, 0.8, 1.5)), spread)
        least = random.randint(2, 5)
        arrivals.append(Arrival(30.0 + 5 * number, task, ControllerKind.REPLICA_SET, least))
        at = 900.0
        while (at := at + random.uniform(900, 3600)) < 7 * HOUR_S:
            rescales.append(Rescale(at, "default", name, least + random.randint(-1, 4)))
    at, number = 600.0, 0
    while at < 7 * HOUR_S:
        at += random.expovariate(1 / 180)
        number += 1
        arrivals.append(Arrival(at, _job(f"task-{number}", random.choice((200, 500, 1000)), random.choice((0.5, 1.0, 2.0)), random.uniform(60, 1500))))
    rescales.sort(key=lambda each: each.at_s)
    return Workload("spread-ha", tuple(sorted(arrivals, key=lambda each: each.at_s)), tuple(rescales)), _nectar(), 120.0


def cron_minutes(seed: int):
    """Crons of 10 to 60 s on every minute, larger ones at the quarters, beside five steady services."""
    random = Random(f"cron-minutes/{seed}")
    arrivals = [
        Arrival(5.0 * number, _web(f"base-{number}", random.choice((200, 400)), random.choice((0.5, 1.0))), ControllerKind.REPLICA_SET, 2)
        for number in range(5)
    ]
    crons = [(random.choice((100, 200, 300)), random.choice((0.2, 0.4)), random.uniform(10, 50), random.choice((1, 1, 2, 5))) for _ in range(5)]
    for minute in range(10, 190):
        for which, (cpu, gib, runs, every) in enumerate(crons):
            if minute % every == 0:
                arrivals.append(Arrival(minute * 60.0 + random.uniform(0, 3), _job(f"cron{'abcde'[which]}-{minute}", cpu, gib, runs * random.uniform(0.8, 1.25))))
        if minute % 15 == 0:
            for part in range(6):
                arrivals.append(Arrival(minute * 60.0 + random.uniform(0, 3), _job(f"quarter-{minute}{part}", 500, 1.0, random.uniform(60, 200))))
    return Workload("cron-minutes", tuple(sorted(arrivals, key=lambda each: each.at_s))), _nectar(), 120.0


def misstated(seed: int):
    """Jobs of 4 min to 3 h that state a third or three times of it, from 30 templates' worth of teams."""
    random = Random(f"misstated/{seed}")
    arrivals, at, number = [], 60.0, 0
    while at < 4 * HOUR_S:
        at += random.expovariate(1 / 60)
        number += 1
        runs = 240 * (45 ** (random.random() ** 1.6))
        stated = math.ceil(runs * random.choice((1 / 3, 1 / 3, 3.0)) / 30) * 30.0
        arrivals.append(Arrival(at, _job(f"sim-{number}", random.choice((250, 500, 1000, 2000)), random.choice((0.5, 1.0, 3.0, 6.0)), runs, stated)))
    return Workload("misstated", tuple(arrivals)), _nectar(), 120.0


EVERYDAY = {
    "ci-bursts": ("pushes in office hours, jobs at once, unstated", ci_bursts),
    "etl-night": ("a nightly chain with Spark-like jobs", etl_night),
    "web-hpa": ("six services under HPAs with budgets", web_hpa),
    "ml-notebooks": ("training of 6 to 20 h, notebooks by day", ml_notebooks),
    "rolling-deploys": ("fourteen services deployed anew all day", rolling_deploys),
    "odd-prices": ("odd price list, half an hour at least, 4 min start", odd_prices),
    "spread-ha": ("databases apart, services spread, small jobs", spread_ha),
    "cron-minutes": ("crons of seconds every minute beside services", cron_minutes),
    "misstated": ("run lengths stated wrong by three", misstated),
}
