"""Families of GPU training with CPU helpers: runs of hours, a lab by the hour, sweeps of trials, large memory, etl.

Jobs keep checkpoints, so that HTAS may move them; the baselines' operators pin them. GPU machines bear no taint:
whether CPU work is put on them is each scheduler's own decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Task, Workload
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
    limited,
    poisson,
    service,
    unstated,
    with_cards,
)

GPU = "nvidia.com/gpu"
KEPT = (150, 0.9)
GpuRow = tuple[str, int, int, int, float]
"""Name, cores, GiB, GPUs, price an hour."""


def _sold(gpus: list[GpuRow], plain: list[Row], billing: Billing, currency: str = "USD") -> Catalogue:
    cards = tuple(
        each
        for name, cores, gib, count, price in gpus
        for each in with_cards([(name, cores, gib, price)], {GPU: count}, KEPT)
    )
    return Catalogue(cards + flavours(plain, KEPT), currency, billing)


def _on_gpus(task: Task, count: int) -> Task:
    """The same, asking for whole GPUs as well."""
    return Task(
        task.name,
        Resources.of({**task.requests.amounts(), GPU: count}),
        kind=task.kind,
        runs_s=task.runs_s,
        stated_s=task.stated_s,
        labels=task.labels,
    )


def _helpers(random: Random, name: str, at_s: float, most: int) -> Iterator[Arrival]:
    """What prepares a run's data: a few CPU jobs of minutes, some of which state a limit."""
    for part in range(random.randint(1, most)):
        cpu_m, gib = random.choice(((1000, 3.0), (2000, 4.0), (4000, 12.0), (500, 1.0)))
        task = unstated(f"{name}x{part}", cpu_m, gib, random.uniform(4, 35) * MINUTE_S)
        yield Arrival(at_s + random.uniform(0, 300), limited(task, random.choice((None, None, HOUR_S))))


def _training(random: Random, name: str, gpus: int, hours: tuple[float, float]) -> Task:
    """A run that takes most of a small GPU machine for each GPU; two in three state how long, one twice as long."""
    states = random.choice((1.0, 2.0, None))
    asked = random.choice((2000, 4000, 6000)) * gpus, random.choice((8.0, 16.0, 24.0)) * gpus
    return _on_gpus(job(name, *asked, random.uniform(*hours) * HOUR_S, states=states), gpus)


def _gpu_runs(seed: int) -> Scene:
    """Twelve hours: three runs an hour of 20 min to 5 h on one GPU, some on two or four; helpers before each."""
    random, until_s = Random(f"gpu-runs/{seed}"), 12 * HOUR_S
    arrivals = [
        Arrival(0.0, service("tracker", 500, 2.0), DEPLOYED, 2),
        Arrival(4.0, service("artifacts", 1000, 4.0), STATEFUL, 1),
    ]
    for number, at_s in enumerate(poisson(random, lambda _: 3 / HOUR_S, 200.0, until_s - 2 * HOUR_S)):
        arrivals += _helpers(random, f"prep-{number}", at_s, 4)
        wanted = random.choice((1, 1, 1, 1, 2, 4))
        arrivals.append(Arrival(at_s + 600, _training(random, f"train-{number}", wanted, (0.33, 5.0))))
    arrivals.append(closing(until_s))
    gpus = [("g.1", 8, 32, 1, 0.95), ("g.2", 16, 64, 2, 1.90), ("g.4", 32, 128, 4, 3.75)]
    plain: list[Row] = [(f"c.{n}", n, 4 * n, 0.048 * n) for n in (2, 4, 8, 16)]
    return Scene(Workload("gpu-runs", in_turn(arrivals)), _sold(gpus, plain, Billing(60, 60)), startup_s=150.0)


def _gpu_lab(seed: int) -> Scene:
    """Fourteen hours of a lab, billed by the hour: a run every half hour; evaluations on a GPU of 5 to 20 min."""
    random, until_s = Random(f"gpu-lab/{seed}"), 14 * HOUR_S
    arrivals = [Arrival(0.0, service("hub", 500, 1.5), DEPLOYED, 2)]
    for number, at_s in enumerate(poisson(random, lambda _: 2 / HOUR_S, 200.0, until_s - 4 * HOUR_S)):
        arrivals += _helpers(random, f"prep-{number}", at_s, 3)
        arrivals.append(Arrival(at_s + 500, _training(random, f"train-{number}", random.choice((1, 1, 2)), (0.5, 4.0))))
        for part in range(random.randint(0, 2)):
            judged = _on_gpus(unstated(f"eval-{number}x{part}", 2000, 6.0, random.uniform(5, 20) * MINUTE_S), 1)
            arrivals.append(Arrival(at_s + random.uniform(0.5, 2) * HOUR_S, judged))
    arrivals.append(closing(until_s))
    gpus = [("a10.1", 12, 48, 1, 1.10), ("a10.2", 24, 96, 2, 2.20), ("a10.8", 96, 384, 8, 8.40)]
    plain: list[Row] = [(f"m.{n}", n, 4 * n, 0.045 * n) for n in (2, 4, 8, 16)]
    return Scene(Workload("gpu-lab", in_turn(arrivals)), _sold(gpus, plain, Billing(3600, 3600)), startup_s=180.0)


def _gpu_sweeps(seed: int) -> Scene:
    """Eight hours: sweeps of 6 to 20 trials of 8 to 50 min on a GPU each, at once, after their data; single runs."""
    random, until_s = Random(f"gpu-sweeps/{seed}"), 8 * HOUR_S
    arrivals = [Arrival(0.0, service("optuna", 500, 2.0), DEPLOYED, 1)]
    for number, at_s in enumerate(poisson(random, lambda _: 1 / HOUR_S, 300.0, until_s - 1.5 * HOUR_S)):
        arrivals += _helpers(random, f"prep-{number}", at_s, 6)
        usual_s, states = random.uniform(8, 30) * MINUTE_S, random.choice((1.5, None))
        for part in range(random.randint(6, 20)):
            runs_s = usual_s * random.uniform(0.6, 1.6)
            trial = _on_gpus(job(f"trial{number}x{part}", 3000, 10.0, runs_s, states=states), 1)
            arrivals.append(Arrival(at_s + 900 + 0.2 * part, trial))
    for number, at_s in enumerate(poisson(random, lambda _: 1 / HOUR_S, 900.0, until_s - 2 * HOUR_S)):
        arrivals.append(Arrival(at_s, _training(random, f"train-{number}", random.choice((1, 2)), (0.5, 3.0))))
    arrivals.append(closing(until_s))
    gpus = [("l4.1", 4, 16, 1, 0.71), ("l4.1x", 8, 32, 1, 0.85), ("l4.4", 48, 192, 4, 4.00)]
    plain: list[Row] = [(f"e.{n}", n, 4 * n, 0.034 * n) for n in (2, 4, 8, 16)]
    return Scene(Workload("gpu-sweeps", in_turn(arrivals)), _sold(gpus, plain, Billing(60, 60)), startup_s=120.0)


def _gpu_large(seed: int) -> Scene:
    """Twelve hours: runs of 30 min to 6 h with 60 GiB for each of 1, 2 or 8 GPUs; helpers of 4 to 16 cores."""
    random, until_s = Random(f"gpu-large/{seed}"), 12 * HOUR_S
    arrivals = [Arrival(0.0, service("tracker", 500, 2.0), DEPLOYED, 2)]
    for number, at_s in enumerate(poisson(random, lambda _: 2.5 / HOUR_S, 200.0, until_s - 3 * HOUR_S)):
        for part in range(random.randint(1, 3)):
            cores = random.choice((4, 8, 16))
            task = unstated(f"prep-{number}x{part}", 1000 * cores, 4.0 * cores, random.uniform(10, 60) * MINUTE_S)
            arrivals.append(Arrival(at_s + random.uniform(0, 300), task))
        gpus, states = random.choice((1, 1, 1, 2, 2, 8)), random.choice((1.0, 2.0, None))
        task = job(f"train-{number}", 8000 * gpus, 60.0 * gpus, random.uniform(0.5, 6.0) * HOUR_S, states=states)
        arrivals.append(Arrival(at_s + 600, _on_gpus(task, gpus)))
    arrivals.append(closing(until_s))
    gpus_sold = [("a.1", 12, 85, 1, 3.67), ("a.2", 24, 170, 2, 7.35), ("a.8", 96, 680, 8, 29.4)]
    plain: list[Row] = [(f"n.{n}", n, 4 * n, 0.0485 * n) for n in (4, 8, 16, 32)]
    return Scene(Workload("gpu-large", in_turn(arrivals)), _sold(gpus_sold, plain, Billing(1, 60)), startup_s=120.0)


def _gpu_etl(seed: int) -> Scene:
    """Ten hours: much CPU work of 20 min to 3 h that states nothing, and few GPU runs; GPU machines of two sizes."""
    random, until_s = Random(f"gpu-etl/{seed}"), 10 * HOUR_S
    arrivals = [Arrival(0.0, service("api", 300, 1.0), DEPLOYED, 2)]
    for number, at_s in enumerate(poisson(random, lambda _: 9 / HOUR_S, 100.0, until_s - HOUR_S)):
        cpu_m, gib = random.choice(((1000, 3.0), (2000, 6.0), (4000, 8.0), (2000, 12.0)))
        arrivals.append(Arrival(at_s, unstated(f"etl-{number}", cpu_m, gib, random.uniform(20, 180) * MINUTE_S)))
    for number, at_s in enumerate(poisson(random, lambda _: 2 / HOUR_S, 400.0, until_s - 2 * HOUR_S)):
        task = _training(random, f"train-{number}", random.choice((1, 1, 1, 2)), (0.3, 2.5))
        arrivals.append(Arrival(at_s, task))
    arrivals.append(closing(until_s))
    gpus = [("t.1", 8, 32, 1, 0.75), ("t.4", 48, 192, 4, 3.91)]
    plain: list[Row] = [(f"c.{n}", n, 4 * n, 0.048 * n) for n in (2, 4, 8, 16)]
    return Scene(Workload("gpu-etl", in_turn(arrivals)), _sold(gpus, plain, Billing(60, 60)), startup_s=150.0)


GPUS = (
    Family("gpu-large", "training with 60 GiB a GPU, CPU helpers; by the second, 120 s", _gpu_large),
    Family("gpu-etl", "CPU work of hours beside few GPU runs; by the minute, 150 s", _gpu_etl),
    Family("gpu-runs", "training of hours with CPU helpers; by the minute, 150 s", _gpu_runs),
    Family("gpu-lab", "training, evaluations, CPU helpers; whole hours, 180 s", _gpu_lab),
    Family("gpu-sweeps", "sweeps of GPU trials, CPU helpers; by the minute, 120 s", _gpu_sweeps),
)
