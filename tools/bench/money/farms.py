"""Five families of farms: frames, genomes, sixty small services, tiers under a quota, models by day and night.

Who wrote them had not seen the code. Price lists are as remembered (Scaleway, DigitalOcean, AWS), or as academic clouds
account: by whichever of cores and memory is the greater, of some flavours only so many being there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import msgspec

from htas.model.billing import Billing
from htas.model.constraints import Constraints
from htas.model.flavours import Catalogue
from htas.sandbox.workload import Arrival, Budget, HorizontalScaler, Load, Rescale, Workload
from htas.sandbox.workloads.openb import GPU_MILLI
from tools.bench.money.scenes import (
    DEPLOYED,
    HOUR_S,
    MINUTE_S,
    STATEFUL,
    Family,
    Row,
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
    unstated,
    with_cards,
    with_gpus,
    with_priority,
)

# A render farm.


def scaleway_like() -> Catalogue:
    """GP1, PLAY2, POP2 with much and with little memory, by the minute; 150m and 0.9 GiB are the system's."""
    rows: list[Row] = [
        ("play2-nano", 2, 4, 0.027),
        ("play2-micro", 4, 8, 0.054),
        ("gp1-xs", 4, 16, 0.091),
        ("gp1-s", 8, 32, 0.187),
        ("gp1-m", 16, 64, 0.376),
        ("gp1-l", 32, 128, 0.759),
        ("gp1-xl", 48, 256, 1.641),
        *((f"pop2-hc-{cores}", cores, cores * 2, 0.0266 * cores) for cores in (2, 4, 8, 16, 32)),
        *((f"pop2-hm-{cores}", cores, cores * 8, 0.0515 * cores) for cores in (2, 4, 8, 16)),
    ]
    return Catalogue(flavours(rows, (150, 0.9)), "EUR", Billing(60, 60))


def _shot(random: Random, shot: int, at_s: float) -> Iterator[Arrival]:
    """200 frames at once, a heavy stretch in the middle; then eight composites, each when its frames would be done.

    One shot in three states a limit, twice what its slowest frames take.
    """
    cpu_m, gib = random.choice(((2000, 3.5), (4000, 7.0), (4000, 12.0), (2000, 10.0)))
    usual_s, states = random.uniform(4, 14) * MINUTE_S, random.random() < 1 / 3
    limit_s = math.ceil(usual_s * 4 / 300) * 300.0 if states else None
    for frame in range(200):
        heavy = 1.7 if 80 <= frame < 120 else 1.0
        task = unstated(f"shot{shot}-frame{frame}", cpu_m, gib, usual_s * heavy * random.uniform(0.8, 1.2))
        yield Arrival(at_s + 0.05 * frame, limited(task, limit_s))
    for part in range(8):
        comp = unstated(f"shot{shot}-comp{part}", 4000, 14.0, random.uniform(3, 8) * MINUTE_S)
        yield Arrival(at_s + usual_s * 1.8 + 180 + 15 * part, comp)


def _render_farm(seed: int) -> Scene:
    """Nine hours before a deadline: a shot of 200 frames in the morning, then more and more often; dailies in between.

    A licence server, an asset cache and a review site run beside.
    """
    random, until_s = Random(f"render-farm/{seed}"), 9 * HOUR_S
    arrivals = [
        Arrival(0.0, service("licences", 200, 0.5), STATEFUL, 1),
        Arrival(2.0, service("asset-cache", 1000, 12.0, apart("asset-cache")), STATEFUL, 2),
        Arrival(4.0, service("review", 300, 0.7), DEPLOYED, 3),
    ]
    for shot, hour in enumerate((0.3, 2.6, 4.4, 5.6, 6.4)):
        arrivals += _shot(random, shot, (hour + random.uniform(0, 0.6)) * HOUR_S)
    for number, at_s in enumerate(poisson(random, lambda _: 4 / HOUR_S, 400.0, 8 * HOUR_S)):
        for part in range(random.randint(3, 12)):
            daily = unstated(f"daily{number}-{part}", 2000, 4.0, random.uniform(1, 5) * MINUTE_S)
            arrivals.append(Arrival(at_s + 0.1 * part, daily))
    arrivals.append(closing(until_s))
    return Scene(Workload("render-farm", in_turn(arrivals)), scaleway_like(), startup_s=100.0)


# Genomes.


def academic() -> Catalogue:
    """Accounted by cores or memory, whichever is more, by ten minutes; six each of those with much memory."""
    plain = [(f"std.{cores}", cores, cores * 4.0) for cores in (1, 2, 4, 8, 16)]
    much = [(f"mem.{cores}", cores, cores * 16.0) for cores in (4, 8, 16)]
    priced = [(name, cores, gib, round(max(0.018 * cores, 0.0042 * gib), 4)) for name, cores, gib in (*plain, *much)]
    hpc: list[Row] = [(f"hpc.{cores}", cores, cores * 3, 0.016 * cores) for cores in (16, 32)]
    sold = flavours((*priced, *hpc), (100, 0.7))
    few = {name for name, *_ in much}
    return Catalogue(
        tuple(msgspec.structs.replace(each, stock=6) if each.name in few else each for each in sold),
        billing=Billing(600, 600),
    )


def _sample(random: Random, batch: int, sample: int, at_s: float) -> tuple[list[Arrival], float]:
    """A sample's steps, each when what goes before would have ended, had it begun a minute late; and the end."""
    size, found = random.lognormvariate(0.0, 0.3), list[Arrival]()

    def step(name: str, cpu_m: int, gib: float, minutes: tuple[float, float], since_s: float) -> float:
        runs_s = min(90.0, random.uniform(*minutes) * size) * MINUTE_S
        found.append(Arrival(since_s, unstated(f"nf-{name}-{batch}x{sample}", cpu_m, gib, runs_s)))
        return since_s + runs_s + 60

    step("fastqc", 1000, 2.0, (8, 15), at_s)
    aligned_s = step("align", 8000, 28.0, (30, 70), at_s + 1)
    marked_s = step("markdup", 2000, 30.0, (15, 40), aligned_s)
    ends_s = marked_s
    for part in range(6):
        ends_s = max(ends_s, step(f"call{part}", 2000, 8.0, (10, 35), marked_s + 0.2 * part))
    return found, step("merge", 1000, 12.0, (8, 15), ends_s)


def _genomics(seed: int) -> Scene:
    """A sequencing core's day, 11 h: three runs of 6 to 12 samples through a pipeline; what ends a run has 60 GiB.

    A portal and its database are all that stays. Nothing is stated.
    """
    random = Random(f"genomics/{seed}")
    arrivals = [
        Arrival(0.0, service("portal", 500, 2.0), DEPLOYED, 2),
        Arrival(5.0, service("lims-db", 1000, 8.0), STATEFUL, 1),
    ]
    for batch in range(3):
        at_s, ends_s = (0.2 + 2.5 * batch + random.uniform(0, 0.8)) * HOUR_S, 0.0
        for sample in range(random.randint(6, 12)):
            steps, done_s = _sample(random, batch, sample, at_s + random.uniform(0, 40))
            arrivals, ends_s = arrivals + steps, max(ends_s, done_s)
        joint = unstated(f"nf-joint-{batch}", 4000, 60.0, random.uniform(40, 90) * MINUTE_S)
        arrivals.append(Arrival(ends_s, joint))
    arrivals.append(closing(11 * HOUR_S))
    return Scene(Workload("genomics", in_turn(arrivals)), academic(), startup_s=240.0)


# Sixty small services.


def digitalocean_like() -> Catalogue:
    """Basic, general, CPU- and memory-optimised Droplets; any part of an hour is an hour."""
    rows: list[Row] = [
        ("s-1-2", 1, 2, 0.01786),
        ("s-2-4", 2, 4, 0.03571),
        ("s-4-8", 4, 8, 0.07143),
        ("s-8-16", 8, 16, 0.14286),
        *((f"g-{cores}", cores, cores * 4, 0.046875 * cores) for cores in (2, 4, 8, 16)),
        *((f"c-{cores}", cores, cores * 2, 0.03125 * cores) for cores in (2, 4, 8, 16)),
        *((f"m-{cores}", cores, cores * 8, 0.0625 * cores) for cores in (2, 4, 8)),
    ]
    return Catalogue(flavours(rows, (100, 0.5)), billing=Billing(3600, 3600))


def _saas_reports(seed: int) -> Scene:
    """From four in the afternoon to eight in the morning: sixty Deployments of 1 to 4 pods, a third of them by traffic.

    Three databases; reports of eighty tenants from one o'clock on, and dumps of 20 to 50 min at half past two.
    """
    random, until_s = Random(f"saas-reports/{seed}"), 16 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    for number in range(3):
        name = f"pg-{'abc'[number]}"
        arrivals.append(Arrival(number, service(name, 1000, random.choice((4.0, 6.0)), apart(name)), STATEFUL, 2))
        budgets.append(Budget("default", name, of_app(name), 1))
    for number in range(60):
        name, least = f"svc-{chr(97 + number // 26)}{chr(97 + number % 26)}", random.choice((1, 1, 2, 2, 3))
        cpu_m, gib = random.choice((50, 100, 100, 200, 400)), random.choice((0.13, 0.25, 0.5, 0.5, 1.0, 2.0))
        follows = number % 3 == 0
        most = least + random.randint(1, 4) if follows else least
        arrivals.append(Arrival(10.0 + number, service(name, cpu_m, gib), DEPLOYED, most))
        if least > 1 and random.random() < 0.6:
            budgets.append(Budget("default", name, of_app(name), least - 1))
        wanted = most
        for half_hour in range(1, 32 if follows else 0):
            clock = (16 + half_hour / 2) % 24
            traffic = 1.0 if clock >= 16 and clock < 18 else max(0.0, (23 - clock) / 5) if clock >= 18 else 0.0
            traffic = max(traffic, (clock - 5) / 3) if 5 <= clock < 8 else traffic
            now = least + round((most - least) * traffic)
            if now != wanted:
                rescales.append(Rescale(half_hour * 1800 + random.uniform(0, 500), "default", name, now))
                wanted = now
    for tenant in range(80):
        cpu_m, gib = random.choice((250, 500, 500, 1000)), random.choice((0.5, 1.0, 2.0, 3.0))
        runs_s = min(40.0, random.lognormvariate(math.log(6), 0.7)) * MINUTE_S
        report = unstated(f"report-{tenant}", cpu_m, gib, runs_s)
        arrivals.append(Arrival(9 * HOUR_S + random.choice((0.0, 600.0, 1800.0)) + random.uniform(0, 20), report))
    for number in range(10):
        dump = unstated(f"pgdump-{number}", 500, 1.5, random.uniform(20, 50) * MINUTE_S)
        arrivals.append(Arrival(10.5 * HOUR_S + number, dump))
    arrivals.append(closing(until_s))
    work = Workload("saas-reports", in_turn(arrivals), in_turn(rescales), budgets=tuple(budgets))
    return Scene(work, digitalocean_like(), startup_s=75.0)


# Tiers under a quota.


def _few_of_each() -> Catalogue:
    """A private OpenStack: of each flavour so many are there, some hundred cores altogether; ten minutes at least."""
    rows = (
        ("c.4", 4, 8, 0.110, 4),
        ("c.8", 8, 16, 0.215, 4),
        ("g.4", 4, 16, 0.150, 3),
        ("g.8", 8, 32, 0.290, 3),
        ("g.16", 16, 64, 0.560, 2),
        ("r.8", 8, 64, 0.400, 1),
    )
    return Catalogue(
        tuple(
            msgspec.structs.replace(each, stock=stock)
            for name, cores, gib, price, stock in rows
            for each in flavours([(name, cores, gib, price)], (200, 1.0))
        ),
        billing=Billing(60, 600),
    )


def _spark(random: Random, run: int, at_s: float) -> Iterator[Arrival]:
    """A driver, and executors in three waves as dynamic allocation asks for them; each ends when its part is done."""
    runs_s = random.uniform(25, 60) * MINUTE_S
    yield Arrival(at_s, with_priority(unstated(f"sparkdriver-{run}", 1000, 3.0, runs_s + 120), 100))
    at_s, executor = at_s + 45, 0
    for wave, most in enumerate((2, 5, 9)):
        for _ in range(random.randint(most // 2 + 1, most)):
            left_s = max(120.0, (runs_s - 90 * wave) * random.uniform(0.5, 1.0))
            task = unstated(f"sparkexec-{run}x{executor}", 2000, 7.0, left_s)
            yield Arrival(at_s + 90 * wave + 0.1 * executor, with_priority(task, 100))
            executor += 1


def _tiers_quota(seed: int) -> Scene:
    """Twelve hours of a company's data platform: Kafka, two databases, APIs, Spark, and what analysts try, each a tier.

    When Spark runs meet, not all has room; what is tried has priority 0, Spark 100, APIs 500, stores 1000.
    """
    random, until_s = Random(f"tiers-quota/{seed}"), 12 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    for turn, (name, cpu_m, gib) in enumerate((("kafka", 1500, 7.0), ("pg-main", 1000, 6.0), ("pg-dwh", 2000, 12.0))):
        replicas = 3 if name == "kafka" else 2
        arrivals.append(Arrival(turn, with_priority(service(name, cpu_m, gib, apart(name)), 1000), STATEFUL, replicas))
        budgets.append(Budget("default", name, of_app(name), replicas - 1))
    for number in range(6):
        name, least = f"api-{chr(97 + number)}", random.randint(1, 3)
        task = service(name, random.choice((250, 500, 1000)), random.choice((0.5, 1.0, 2.0)))
        arrivals.append(Arrival(20.0 + number, with_priority(task, 500), DEPLOYED, least))
        for hour in range(1, 12):
            wanted = least + round(3 * max(0.0, math.sin(hour / 12 * math.pi)) * random.uniform(0.6, 1.2))
            rescales.append(Rescale(hour * HOUR_S + random.uniform(0, 900), "default", name, wanted))
    for run in range(9):
        arrivals += _spark(random, run, random.uniform(0.3, 10.3) * HOUR_S)
    for number, at_s in enumerate(poisson(random, lambda _: 6 / HOUR_S, 300.0, 10.5 * HOUR_S)):
        cpu_m, ratio = random.choice((1000, 2000, 4000)), random.choice((2.0, 3.5))
        task = job(f"try-{number}", cpu_m, cpu_m / 1000 * ratio, random.uniform(8, 70) * MINUTE_S, states=None)
        arrivals.append(Arrival(at_s, with_priority(task, 0)))
    arrivals.append(closing(until_s))
    work = Workload("tiers-quota", in_turn(arrivals), in_turn(rescales), budgets=tuple(budgets))
    return Scene(work, _few_of_each(), startup_s=180.0)


# Inference by day, training by night.

_CARD = "example.com/card"


def aws_gpus() -> Catalogue:
    """g4dn and g5 with one and four GPUs, c6i and m6i without, by the second from a minute on."""
    kept = (100, 0.8)
    rows = (
        ("g4dn.xlarge", 4, 16, 1, "t4", 0.526),
        ("g4dn.2xlarge", 8, 32, 1, "t4", 0.752),
        ("g4dn.12xlarge", 48, 192, 4, "t4", 3.912),
        ("g5.xlarge", 4, 16, 1, "a10g", 1.006),
        ("g5.2xlarge", 8, 32, 1, "a10g", 1.212),
        ("g5.4xlarge", 16, 64, 1, "a10g", 1.624),
        ("g5.12xlarge", 48, 192, 4, "a10g", 5.672),
    )
    dear = tuple(
        msgspec.structs.replace(each, labels={_CARD: card})
        for name, cores, gib, gpus, card, price in rows
        for each in with_cards([(name, cores, gib, price)], {GPU_MILLI: gpus * 1000}, kept)
    )
    plain: list[Row] = [(f"c6i.{cores}", cores, cores * 2, 0.0425 * cores) for cores in (2, 4, 8, 16)]
    plain += [(f"m6i.{cores}", cores, cores * 4, 0.048 * cores) for cores in (2, 4, 8, 16)]
    return Catalogue(dear + flavours(plain, kept), billing=Billing(1, 60))


_MODELS = ((250, 700, 3.0), (250, 700, 3.0), (500, 1500, 6.0), (500, 1000, 5.0), (1000, 3000, 11.0))
"""Thousandths of a GPU, thousandths of a core, GiB of a replica."""


def _inference_night(seed: int) -> Scene:
    """From noon to four in the morning: five models on shares of GPUs and a gateway, by requests; a feature store.

    From nine in the evening on a dozen trainings of 40 min to 3 h on one A10G or four, after their data are prepared.
    """
    random, until_s = Random(f"inference-night/{seed}"), 16 * HOUR_S
    arrivals, scalers, loads, budgets = list[Arrival](), list[HorizontalScaler](), list[Load](), list[Budget]()
    arrivals.append(Arrival(0.0, service("features", 1000, 6.0, apart("features")), STATEFUL, 2))
    budgets.append(Budget("default", "features", of_app("features"), 1))
    asks = [with_gpus(service(f"model-{chr(97 + n)}", cpu_m, gib), gpu) for n, (gpu, cpu_m, gib) in enumerate(_MODELS)]
    for number, task in enumerate((service("gateway", 500, 0.8), *asks)):
        most = 8 if number < 4 else 4
        arrivals.append(Arrival(5.0 + number, task, DEPLOYED, 2 if number < 3 else 1))
        scalers.append(HorizontalScaler("default", task.name, 20.0, 0.75, 2 if number < 3 else 1, most))
        budgets.append(Budget("default", task.name, of_app(task.name), 1))
        peak, at_s = most * 20 * 0.75 * random.uniform(0.5, 0.95), 60.0
        while at_s < until_s:
            day = 0.1 + 0.9 * max(0.0, math.cos((at_s / HOUR_S - 5) / 20 * 2 * math.pi)) ** 1.5
            loads.append(Load(at_s, "default", task.name, peak * day * random.uniform(0.85, 1.15)))
            at_s += random.uniform(240, 480)
    for number in range(12):
        at_s = (9 + random.uniform(0, 3.5)) * HOUR_S
        for part in range(random.randint(2, 5)):
            prepared = unstated(f"prep-{number}x{part}", 2000, 6.0, random.uniform(4, 14) * MINUTE_S)
            arrivals.append(Arrival(at_s + part, prepared))
        gpus = random.choice((1, 1, 1, 4))
        training = job(f"train-{number}", 3500 * gpus, 13.0 * gpus, random.uniform(40, 180) * MINUTE_S, states=None)
        on_a10g = Constraints(node_selector=((_CARD, "a10g"),))
        training = msgspec.structs.replace(with_gpus(training, 1000 * gpus), constraints=on_a10g)
        arrivals.append(Arrival(at_s + 15 * MINUTE_S, training))
    arrivals.append(closing(until_s))
    work = Workload(
        "inference-night", in_turn(arrivals), budgets=tuple(budgets), scalers=tuple(scalers), loads=in_turn(loads)
    )
    return Scene(work, aws_gpus(), startup_s=150.0)


FARMS = (
    Family("render-farm", "bursts of 200 frames before a deadline; Scaleway-like, by the minute, 100 s", _render_farm),
    Family("genomics", "a pipeline's steps of 2 to 60 GiB; academic, ten minutes, 240 s", _genomics),
    Family("saas-reports", "sixty small services, reports by night; DigitalOcean-like, whole hours", _saas_reports),
    Family("tiers-quota", "stores, APIs, Spark and tries by priority; few of each flavour, 180 s", _tiers_quota),
    Family("inference-night", "models by traffic, training by night; AWS GPUs, by the second, 150 s", _inference_night),
)
