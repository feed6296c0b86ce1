"""Five families of a platform team: uploads, queries, arrays of a university, shops on two coasts, robots by priority.

Price lists as remembered (IONOS, Vultr, a university's OpenStack, Linode, AWS Graviton with T4G), with their rules of
rental. They were written and played by somebody who had seen no rule of HTAS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import msgspec

from htas.model.billing import Billing
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

# Uploads: short jobs, 25 s, by the minute.


def ionos_like() -> Catalogue:
    """Cores and GiB priced apart, and three cubes at a flat price; by the minute."""
    rows: list[Row] = [
        (f"v{cores}-{cores * ratio}", cores, cores * ratio, 0.021 * cores + 0.0048 * cores * ratio)
        for cores in (1, 2, 4, 8, 16)
        for ratio in (2, 4, 8)
    ]
    rows += [("cube-s", 1, 2, 0.0139), ("cube-m", 2, 4, 0.0278), ("cube-l", 4, 8, 0.0556)]
    return Catalogue(flavours(rows, (120, 0.6)), "EUR", Billing(60, 60))


def _uploads(seed: int) -> Scene:
    """Seven hours of a photo and video site around its evening: thumbnails of seconds, scans, transcodes of minutes.

    Scans all state a minute; transcodes state what they take, half of it, or nothing; thumbnails nothing.
    """
    random, until_s = Random(f"uploads/{seed}"), 7 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    arrivals.append(Arrival(0.0, service("queue", 500, 1.5, apart("queue")), STATEFUL, 3))
    for number, (name, cpu_m, gib) in enumerate((("front", 300, 0.5), ("upload-api", 500, 0.8), ("feed", 400, 1.2))):
        arrivals.append(Arrival(3.0 + number, service(name, cpu_m, gib), DEPLOYED, 2))
        for tick in range(1, 28):
            day = math.sin(tick / 28 * math.pi) ** 2 * random.uniform(0.85, 1.15)
            rescales.append(Rescale(tick * 900 + random.uniform(0, 300), "default", name, 2 + round(6 * day)))

    def rate(at_s: float) -> float:
        return (0.6 + 3.4 * max(0.0, math.sin(at_s / until_s * math.pi)) ** 2) / MINUTE_S

    for number, at_s in enumerate(poisson(random, rate, 120.0, until_s - 900)):
        arrivals.append(Arrival(at_s, limited(unstated(f"scan-{number}", 500, 1.0, random.uniform(8, 50)), 60.0)))
        kind = random.random()
        if kind < 0.45:
            arrivals.append(Arrival(at_s + 1, unstated(f"thumb-{number}", 250, 0.4, random.uniform(4, 25))))
        elif kind < 0.65:
            runs_s = min(900.0, random.lognormvariate(math.log(150), 0.7))
            states = random.choice((1.0, 1.0, 0.5, None))
            arrivals.append(Arrival(at_s + 2, job(f"transcode-{number}", 2000, 3.0, runs_s, states=states)))
    arrivals.append(closing(until_s))
    return Scene(Workload("uploads", in_turn(arrivals), in_turn(rescales)), ionos_like(), startup_s=25.0)


# Queries: short jobs in volleys, 45 s, by the hour.


def vultr_like() -> Catalogue:
    """Regular, high-frequency and optimised instances; any part of an hour is an hour."""
    rows: list[Row] = [
        ("vc2-1-2", 1, 2, 0.015),
        ("vc2-2-4", 2, 4, 0.030),
        ("vc2-4-8", 4, 8, 0.060),
        ("vc2-6-16", 6, 16, 0.119),
        ("vc2-8-32", 8, 32, 0.238),
        ("vc2-16-64", 16, 64, 0.476),
        ("vhf-2-4", 2, 4, 0.036),
        ("vhf-3-8", 3, 8, 0.071),
        ("vhf-4-16", 4, 16, 0.143),
        ("voc-c-4", 4, 8, 0.119),
        ("voc-g-4", 4, 16, 0.179),
        ("voc-g-8", 8, 32, 0.357),
        ("voc-m-4", 4, 32, 0.238),
        ("voc-m-8", 8, 64, 0.476),
    ]
    return Catalogue(flavours(rows, (80, 0.7)), billing=Billing(3600, 3600))


def _queries(seed: int) -> Scene:
    """Eight working hours of analysts: volleys of 3 to 24 fragments of 8 to 150 s, limits of ten minutes or none.

    Dashboards are refreshed each quarter of an hour by a dozen fragments; twice a load of an hour on 6 to 12 workers.
    """
    random, until_s = Random(f"queries/{seed}"), 8 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    arrivals.append(Arrival(0.0, service("coordinator", 1500, 5.0), DEPLOYED, 1))
    arrivals.append(Arrival(1.0, service("metastore", 500, 2.0, apart("metastore")), STATEFUL, 2))
    arrivals.append(Arrival(2.0, service("bi", 300, 1.0), DEPLOYED, 2))
    for tick in range(1, 16):
        day = math.sin(tick / 16 * math.pi)
        rescales.append(Rescale(tick * 1800 + random.uniform(0, 400), "default", "bi", 2 + round(4 * day)))
    lunch = 4 * HOUR_S
    for number, at_s in enumerate(
        poisson(random, lambda at: (4 if abs(at - lunch) < 1800 else 13) / HOUR_S, 200.0, until_s - 1200)
    ):
        cpu_m, gib = random.choice(((500, 1.5), (1000, 2.0), (1000, 5.0), (2000, 4.0)))
        usual_s, limit_s = random.uniform(10, 110), random.choice((600.0, None))
        for part in range(random.randint(3, 16)):
            runs_s = usual_s * random.uniform(0.7, 1.35)
            task = limited(unstated(f"q{number}f-{part}", cpu_m, gib, runs_s), limit_s)
            arrivals.append(Arrival(at_s + 0.03 * part, task))
    for refresh in range(1, 31):
        for part in range(8):
            task = unstated(f"dash{refresh}-{part}", 500, 1.0, random.uniform(15, 45))
            arrivals.append(Arrival(refresh * 900 + part * 0.5, task))
    for load in range(2):
        at_s = (1.5 + 4 * load + random.uniform(0, 0.8)) * HOUR_S
        for part in range(random.randint(6, 12)):
            task = job(f"load{load}-{part}", 2000, 6.0, random.uniform(45, 70) * MINUTE_S, states=1.0)
            arrivals.append(Arrival(at_s + part, task))
    arrivals.append(closing(until_s))
    return Scene(Workload("queries", in_turn(arrivals), in_turn(rescales)), vultr_like(), startup_s=45.0)


# Arrays of identical jobs.


def university() -> Catalogue:
    """Linear in cores, memory-rich ones by memory, a share for the root disk; whole hours."""
    rows: list[Row] = [(f"m3.{n}c", n, 4 * n, 0.022 * n + 0.004) for n in (1, 2, 4, 8, 16, 32)]
    rows += [(f"c3.{n}c", n, 2 * n, 0.019 * n + 0.004) for n in (2, 4, 8, 16, 32)]
    rows += [(f"r3.{n}c", n, 8 * n, 0.034 * n + 0.004) for n in (2, 4, 8, 16)]
    return Catalogue(flavours(rows, (100, 0.6)), "SU", Billing(3600, 3600))


def _sweep_arrays(seed: int) -> Scene:
    """Ten hours of a department: six arrays of 80 to 240 identical jobs that come at once, 6 to 55 min each.

    An array states what it takes, thrice that, half of it, or nothing. A hub with its database; some single jobs.
    """
    random, until_s = Random(f"sweep-arrays/{seed}"), 10 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    arrivals.append(Arrival(0.0, service("hub-db", 1000, 4.0), STATEFUL, 1))
    arrivals.append(Arrival(1.0, service("hub", 500, 1.0), DEPLOYED, 2))
    for hour in range(1, 10):
        wanted = 2 + round(4 * math.sin(hour / 10 * math.pi))
        rescales.append(Rescale(hour * HOUR_S + random.uniform(0, 600), "default", "hub", wanted))
    for array, states in enumerate(random.sample((1.0, 1.0, 3.0, 0.5, None, None), 6)):
        at_s = (0.3 + 1.45 * array + random.uniform(0, 0.9)) * HOUR_S
        cpu_m, gib = random.choice(((1000, 1.5), (1000, 3.5), (2000, 3.0), (2000, 14.0), (4000, 7.0)))
        length_s = random.uniform(6, 55) * MINUTE_S
        limit_s = None if states is None else math.ceil(length_s * 1.03 * states / 60) * 60.0
        for part in range(random.choice((80, 120, 160, 240))):
            task = unstated(f"mc{chr(97 + array)}-{part}", cpu_m, gib, length_s * random.uniform(0.97, 1.03))
            arrivals.append(Arrival(at_s, limited(task, limit_s)))
    for number, at_s in enumerate(poisson(random, lambda _: 5 / HOUR_S, 300.0, until_s - HOUR_S)):
        cpu_m, gib = random.choice(((1000, 4.0), (4000, 8.0), (8000, 30.0)))
        states = random.choice((1.5, None))
        arrivals.append(Arrival(at_s, job(f"single-{number}", cpu_m, gib, random.uniform(5, 60) * 60, states=states)))
    arrivals.append(closing(until_s))
    return Scene(Workload("sweep-arrays", in_turn(arrivals), in_turn(rescales)), university(), startup_s=200.0)


# Services on two coasts.


def linode_like() -> Catalogue:
    """Shared, dedicated and high-memory plans; any part of an hour is an hour."""
    rows: list[Row] = [
        ("g6-standard-1", 1, 2, 0.018),
        ("g6-standard-2", 2, 4, 0.036),
        ("g6-standard-4", 4, 8, 0.072),
        ("g6-standard-6", 6, 16, 0.144),
        ("g6-standard-8", 8, 32, 0.288),
        ("g6-standard-16", 16, 64, 0.576),
        ("g6-dedicated-2", 2, 4, 0.054),
        ("g6-dedicated-4", 4, 8, 0.108),
        ("g6-dedicated-8", 8, 16, 0.216),
        ("g6-dedicated-16", 16, 32, 0.432),
        ("g7-highmem-1", 2, 24, 0.090),
        ("g7-highmem-2", 2, 48, 0.180),
        ("g7-highmem-4", 4, 90, 0.360),
    ]
    return Catalogue(flavours(rows, (60, 0.5)), billing=Billing(3600, 3600))


def _two_coasts(seed: int) -> Scene:
    """Twenty hours of sixteen services, half of them three hours behind: six under scalers by load, ten by the clock.

    Three stores apart by node under budgets; backups of 10 to 40 min in the night, stated, and caches warmed at six.
    """
    random, until_s = Random(f"two-coasts/{seed}"), 20 * HOUR_S
    arrivals, rescales, budgets = list[Arrival](), list[Rescale](), list[Budget]()
    scalers, loads = list[HorizontalScaler](), list[Load]()
    for number in range(3):
        name = f"store-{chr(97 + number)}"
        arrivals.append(Arrival(number, service(name, 800, random.choice((3.0, 6.0, 9.0)), apart(name)), STATEFUL, 3))
        budgets.append(Budget("default", name, of_app(name), 2))
    for number in range(16):
        name, behind_h = f"app-{chr(97 + number)}", 3.0 * (number % 2)
        least, swing = random.choice((1, 2, 2)), random.randint(3, 10)
        task = service(name, random.choice((150, 250, 400, 700)), random.choice((0.3, 0.6, 1.0, 2.0)))
        arrivals.append(Arrival(10.0 + number, task, DEPLOYED, least + 1))
        if least > 1:
            budgets.append(Budget("default", name, of_app(name), least - 1))

        def day(at_s: float, behind_h: float = behind_h) -> float:
            clock = at_s / HOUR_S - behind_h
            return max(0.0, math.sin((clock - 1) / 14 * math.pi)) if 1 < clock < 15 else 0.0

        if number < 6:
            scalers.append(HorizontalScaler("default", name, 25.0, 0.7, least, least + swing))
            at_s = 60.0
            while at_s < until_s:
                share = (0.08 + 0.92 * day(at_s)) * random.uniform(0.85, 1.1)
                loads.append(Load(at_s, "default", name, (least + swing) * 25 * 0.7 * share))
                at_s += random.uniform(400, 700)
        else:
            for tick in range(1, 40):
                wanted = least + round(swing * day(tick * 1800) * random.uniform(0.9, 1.1))
                rescales.append(Rescale(tick * 1800 + random.uniform(0, 900), "default", name, wanted))
    for number in range(12):
        task = job(f"backup-{number}", 500, 1.5, random.uniform(10, 40) * MINUTE_S)
        arrivals.append(Arrival(17.5 * HOUR_S + 30 * number, task))
    for number in range(40):
        task = unstated(f"cron-{number}", 250, 0.5, random.uniform(20, 200))
        arrivals.append(Arrival(number * 1800 + 60.0, task))
    arrivals.append(closing(until_s))
    work = Workload(
        "two-coasts",
        in_turn(arrivals),
        in_turn(rescales),
        budgets=tuple(budgets),
        scalers=tuple(scalers),
        loads=in_turn(loads),
    )
    return Scene(work, linode_like(), startup_s=110.0)


# Robots by priority.


def graviton() -> Catalogue:
    """c7g, m7g, r7g, and g5g with T4G, of which few are there; by the second from a minute on."""
    kept = (110, 0.9)
    gpu_rows = (
        ("g5g.xlarge", 4, 8, 1, 0.42, 5),
        ("g5g.2xlarge", 8, 16, 1, 0.556, 5),
        ("g5g.4xlarge", 16, 32, 1, 0.828, 3),
        ("g5g.16xlarge", 64, 128, 2, 2.744, 2),
    )
    cards = tuple(
        msgspec.structs.replace(each, stock=stock)
        for name, cores, gib, gpus, price, stock in gpu_rows
        for each in with_cards([(name, cores, gib, price)], {GPU_MILLI: gpus * 1000}, kept)
    )
    plain: list[Row] = [
        (f"{kind}.{cores}", cores, cores * ratio, price * cores)
        for kind, ratio, price in (("c7g", 2, 0.0363), ("m7g", 4, 0.0408), ("r7g", 8, 0.0536))
        for cores in (2, 4, 8, 16)
    ]
    return Catalogue(cards + flavours(plain, kept), billing=Billing(1, 60))


def _sweep(random: Random, number: int, at_s: float) -> Iterator[Arrival]:
    cpu_m, gib = random.choice(((1000, 1.5), (2000, 3.0), (2000, 7.0)))
    usual_s, states = random.uniform(3, 20) * MINUTE_S, random.choice((1.2, 4.0, None))
    limit_s = None if states is None else math.ceil(usual_s * states / 60) * 60.0
    for part in range(random.randint(10, 36)):
        task = unstated(f"sim{number}x-{part}", cpu_m, gib, usual_s * random.uniform(0.6, 1.4))
        yield Arrival(at_s + 0.1 * part, with_priority(limited(task, limit_s), 0))


def _robots(seed: int) -> Scene:
    """Twelve hours of a robotics firm: perception on shares of GPUs (500), shells (300), training (100), sweeps (0).

    Fourteen GPUs at most can be had; training states what it takes, two fifths of that, or nothing.
    """
    random, until_s = Random(f"robots/{seed}"), 12 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    arrivals.append(Arrival(0.0, with_priority(service("telemetry", 1000, 4.0, apart("telemetry")), 1000), STATEFUL, 3))
    for number, (gpu, cpu_m, gib) in enumerate(((250, 800, 1.5), (500, 1500, 3.0), (250, 500, 1.0))):
        name = f"perceive-{chr(97 + number)}"
        task = with_gpus(service(name, cpu_m, gib), gpu)
        arrivals.append(Arrival(5.0 + number, with_priority(task, 500), DEPLOYED, 1))
        for tick in range(1, 36):
            day = max(0.0, math.sin((tick / 3 - 1) / 10 * math.pi)) * random.uniform(0.8, 1.2)
            rescales.append(Rescale(tick * 1200 + random.uniform(0, 500), "default", name, 1 + round(5 * day)))
    for number in range(5):
        name = f"portal-{chr(97 + number)}"
        arrivals.append(Arrival(20.0 + number, with_priority(service(name, 300, 0.8), 500), DEPLOYED, 2))
        for hour in range(1, 12):
            wanted = 2 + round(3 * math.sin(hour / 12 * math.pi) * random.uniform(0.7, 1.2))
            rescales.append(Rescale(hour * HOUR_S + random.uniform(0, 900), "default", name, wanted))
    for number in range(14):
        task = unstated(f"shell-{number}", 2000, 6.0, random.uniform(40, 180) * MINUTE_S)
        arrivals.append(Arrival(random.uniform(0.5, 8) * HOUR_S, with_priority(task, 300)))
    for number in range(18):
        runs_s, states = random.uniform(20, 140) * MINUTE_S, random.choice((1.0, 0.4, None))
        task = with_gpus(job(f"train-{number}", 3500, 6.5, runs_s, states=states), 1000)
        arrivals.append(Arrival(random.uniform(0.5, 9.5) * HOUR_S, with_priority(task, 100)))
    for number, at_s in enumerate(poisson(random, lambda _: 1.8 / HOUR_S, 600.0, 10.5 * HOUR_S)):
        arrivals += _sweep(random, number, at_s)
    arrivals.append(closing(until_s))
    return Scene(Workload("robots", in_turn(arrivals), in_turn(rescales)), graviton(), startup_s=240.0)


SITES = (
    Family("uploads", "thumbnails, scans, transcodes in an evening; IONOS-like, by the minute, 25 s", _uploads),
    Family("queries", "volleys of fragments of seconds; Vultr-like, whole hours, 45 s", _queries),
    Family("sweep-arrays", "arrays of identical jobs at once; a university, whole hours, 200 s", _sweep_arrays),
    Family("two-coasts", "sixteen services by load and clock; Linode-like, whole hours, 110 s", _two_coasts),
    Family("robots", "GPUs by priority, shells, sweeps; Graviton, by the second, 240 s", _robots),
)
