"""Four families of fleets: game servers, CI for two architectures, Spark beside scaled services, a hub with one batch.

Who wrote them had not seen the code, and wanted what the others are not: services that end one by one, work that is for
half of the flavours, gangs that come and end at once, and price lists in which sizes of the middle are the bargain.
"""

from __future__ import annotations

import math
from random import Random

import msgspec

from htas.model.billing import Billing
from htas.model.constraints import Constraints
from htas.model.flavours import Catalogue
from htas.sandbox.workload import Arrival, Budget, HorizontalScaler, Load, Rescale, Task, Workload
from tools.bench.money.scenes import (
    DEPLOYED,
    HOUR_S,
    MINUTE_S,
    STATEFUL,
    Family,
    Row,
    Scene,
    closing,
    flavours,
    in_turn,
    job,
    of_app,
    poisson,
    service,
    unstated,
)

ARCH = "kubernetes.io/arch"
_KEPT = (150, 1.0)
"""Of each machine the system keeps 150m and a GiB."""


# Game servers.


def _per_second() -> Catalogue:
    """As Google Cloud has it: billed by the second, a minute at least."""
    sizes = (2, 4, 8, 16)
    rows: list[Row] = [(f"e2-{cores}", cores, cores * 4, 0.0335 * cores) for cores in sizes]
    rows += [(f"hc-{cores}", cores, cores, 0.02475 * cores) for cores in sizes[1:]]
    rows += [("hm-4", 4, 32, 0.181), ("hm-8", 8, 64, 0.362)]
    return Catalogue(flavours(rows, _KEPT), billing=Billing(1, 60))


def _games(seed: int) -> Scene:
    """Ten hours of an evening: three lobbies, and some 180 game servers, a StatefulSet each, of 20 min to 3 h.

    One in four has opted in to be moved; the others say safe-to-evict=false.
    """
    random, until_s = Random(f"games/{seed}"), 10 * HOUR_S
    arrivals, rescales = list[Arrival](), list[Rescale]()
    for number in range(3):
        name = f"lobby-{chr(97 + number)}"
        arrivals.append(Arrival(5.0 * number, service(name, 250, 0.7), DEPLOYED, 2))
        for half_hour in range(1, 20):
            wanted = 2 + round(4 * max(0.0, math.sin(half_hour / 20 * math.pi)))
            rescales.append(Rescale(half_hour * 1800 + random.uniform(0, 300), "default", name, wanted))

    def rate(at_s: float) -> float:
        return (8 + 24 * max(0.0, math.sin(at_s / until_s * math.pi))) / HOUR_S

    for number, at_s in enumerate(poisson(random, rate, 300.0, 9 * HOUR_S)):
        cpu_m, gib = random.choice(((500, 1.0), (1000, 2.0), (1000, 2.0), (2000, 4.0)))
        may_move = random.random() < 0.25
        says = {"htas.io/migrate": "true"} if may_move else {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        match = msgspec.structs.replace(service(f"match-{number}", cpu_m, gib), disruption=says)
        arrivals.append(Arrival(at_s, match, STATEFUL, 1))
        stays_s = random.choice((random.uniform(20, 50), random.uniform(60, 180))) * MINUTE_S
        rescales.append(Rescale(min(until_s, at_s + stays_s), "default", match.name, 0))
    arrivals.append(closing(until_s))
    return Scene(Workload("games", in_turn(arrivals), in_turn(rescales)), _per_second(), startup_s=60.0)


# CI for two architectures.


def _two_architectures() -> Catalogue:
    """Whole hours; Arm costs three quarters."""
    sizes = (2, 4, 8, 16)
    amd = flavours([(f"x{cores}", cores, cores * 4, 0.05 * cores) for cores in sizes], _KEPT, {ARCH: "amd64"})
    arm = flavours([(f"a{cores}", cores, cores * 4, 0.0385 * cores) for cores in sizes], _KEPT, {ARCH: "arm64"})
    return Catalogue(amd + arm, billing=Billing(3600, 3600))


_CI_JOBS = ((1000, 2.0, 3, 8), (2000, 4.0, 5, 15), (2000, 7.0, 10, 25), (4000, 8.0, 12, 40))
"""Thousandths of a core, GiB, the shortest and the longest run in minutes."""


def _ci_arch(seed: int) -> Scene:
    """Eight hours of merges, each of which starts three to six jobs for amd64, and two of three as many for arm64."""
    random, arrivals = Random(f"ci-arch/{seed}"), list[Arrival]()

    def rate(at_s: float) -> float:
        return (3 + 4 * (at_s % (4 * HOUR_S) < 2.5 * HOUR_S)) / HOUR_S

    for number, at_s in enumerate(poisson(random, rate, 200.0, 8 * HOUR_S)):
        for arch in ("amd64", "arm64")[: 1 if random.random() < 0.33 else 2]:
            on = Constraints(node_selector=((ARCH, arch),))
            for part in range(random.randint(3, 6)):
                cpu_m, gib, least, most = random.choice(_CI_JOBS)
                runs_s = random.uniform(least, most) * MINUTE_S
                task: Task = unstated(f"{arch}x-{number}{part:02d}", cpu_m, gib, runs_s)
                arrivals.append(Arrival(at_s + 20 * part, msgspec.structs.replace(task, constraints=on)))
    arrivals.append(closing(10 * HOUR_S))
    return Scene(Workload("ci-arch", in_turn(arrivals)), _two_architectures(), startup_s=120.0)


# Spark beside scaled services.


def _eight_cores_cheap() -> Catalogue:
    """By the minute; a machine of eight cores costs less a core than any other."""
    rows: list[Row] = [
        ("m.2", 2, 8, 0.12),
        ("m.4", 4, 16, 0.22),
        ("m.8", 8, 32, 0.34),
        ("m.16", 16, 64, 0.80),
        ("m.32", 32, 128, 1.70),
        ("c.4", 4, 8, 0.18),
        ("r.4", 4, 32, 0.27),
        ("r.8", 8, 64, 0.50),
    ]
    return Catalogue(flavours(rows, _KEPT), billing=Billing(60, 60))


def _spark_web(seed: int) -> Scene:
    """Twelve hours: four services under HorizontalPodAutoscalers, quiet by night, and six Spark runs.

    A run's 10 to 30 executors come at once, and end together after 25 to 80 min.
    """
    random, until_s = Random(f"spark-web/{seed}"), 12 * HOUR_S
    arrivals, scalers, loads, budgets = list[Arrival](), list[HorizontalScaler](), list[Load](), list[Budget]()
    for number in range(4):
        name = f"web-{chr(97 + number)}"
        web = service(name, random.choice((500, 1000)), random.choice((1.0, 2.0)))
        arrivals.append(Arrival(5.0 * number, web, DEPLOYED, 2))
        scalers.append(HorizontalScaler("default", name, 100.0, 0.7, 2, 12))
        budgets.append(Budget("default", name, of_app(name), 1))
        most, at_s = random.uniform(300, 700), 60.0
        while at_s < until_s:
            day = (1 + math.cos(at_s / until_s * 2 * math.pi)) / 2
            loads.append(Load(at_s, "default", name, 60 + most * day * random.uniform(0.85, 1.15)))
            at_s += random.uniform(200, 400)
    for number in range(6):
        at_s, runs_s = (1.5 + 1.5 * number + random.uniform(0, 0.8)) * HOUR_S, random.uniform(25, 80) * MINUTE_S
        arrivals.append(Arrival(at_s, unstated(f"driver-{number}", 1000, 4.0, runs_s + 60)))
        cpu_m, gib = random.choice(((2000, 8.0), (4000, 14.0), (3000, 11.0)))
        for part in range(random.randint(10, 30)):
            executor = unstated(f"exec{chr(97 + number)}-{part}", cpu_m, gib, runs_s * random.uniform(0.93, 1.0))
            arrivals.append(Arrival(at_s + 40 + 0.1 * part, executor))
    arrivals.append(closing(until_s))
    work = Workload(
        "spark-web", in_turn(arrivals), budgets=tuple(budgets), scalers=tuple(scalers), loads=in_turn(loads)
    )
    return Scene(work, _eight_cores_cheap(), startup_s=120.0)


# A hub with one batch.


def _near_linear() -> Catalogue:
    """As an OpenStack has it: by core and GiB, by the minute, ten minutes at least."""
    rows: list[Row] = [
        (f"{kind}{cores}", cores, cores * ratio, round(0.018 * cores + 0.004 * cores * ratio + 0.004, 4))
        for kind, ratio in (("c", 2), ("g", 4), ("r", 8))
        for cores in (2, 4, 8, 16, 32)
    ]
    return Catalogue(flavours(rows, _KEPT), billing=Billing(60, 600))


def _hub_batch(seed: int) -> Scene:
    """Thirteen hours: sixty notebooks that come in the morning and leave unevenly; then 240 jobs of 5 to 30 min."""
    random, rescales = Random(f"hub-batch/{seed}"), list[Rescale]()
    hub, proxy = service("hub", 500, 1.0), service("proxy", 200, 0.5)
    arrivals = [Arrival(0.0, hub, DEPLOYED, 1), Arrival(1.0, proxy, DEPLOYED, 2)]
    for number in range(60):
        cpu_m, gib = random.choice(((500, 2.0), (1000, 4.0), (1000, 8.0), (2000, 16.0)))
        at_s = max(30.0, random.gauss(2.0, 1.3) * HOUR_S)
        arrivals.append(Arrival(at_s, service(f"nb-{number}", cpu_m, gib), STATEFUL, 1))
        stays_s = random.choice((random.uniform(0.5, 2), random.uniform(3, 8))) * HOUR_S
        rescales.append(Rescale(min(10.5 * HOUR_S, at_s + stays_s), "default", f"nb-{number}", 0))
    for number in range(240):
        gib, runs_s = random.choice((2.0, 4.0)), random.uniform(5, 30) * MINUTE_S
        task = job(f"batch-{number}", 1000, gib, runs_s, states=1.3)
        arrivals.append(Arrival(11 * HOUR_S + 0.05 * number, task))
    arrivals.append(closing(13 * HOUR_S))
    return Scene(Workload("hub-batch", in_turn(arrivals), in_turn(rescales)), _near_linear(), startup_s=180.0)


FLEETS = (
    Family("games", "game servers of 20 min to 3 h beside lobbies; by the second, 60 s", _games),
    Family("ci-arch", "CI for amd64 and arm64; whole hours", _ci_arch),
    Family("spark-web", "gangs of executors beside scaled services; 8 cores are the bargain", _spark_web),
    Family("hub-batch", "notebooks that leave all day, one batch of 240; ten minutes at least, 180 s", _hub_batch),
)
