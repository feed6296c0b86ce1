"""How near its lower bound the cheapest mix buys, and how long it takes, beside three other ways to choose machines.

Random instances of 10 to 2,000 pods: of the paper's Table 4 by the hour (services) and by expected rental (batch
with its run lengths), and of the shapes of the Alibaba trace "openb" (cpu and memory); on the six flavours of
Table 7, and on a catalogue of forty whose prices are not linear. The other ways, each held against the same bound:

* greedy: HTAS's own default, the score nc ÷ p with simulated placement and trimming;
* one flavour: first fit decreasing on each flavour alone, the cheapest of them (Cluster Autoscaler's way);
* one claim: pods first fit decreasing into claims that may become any flavour, each as cheap as it can be in the end
  (Karpenter's way).

    python -m tools.bench.mix [--pods 10,20,100,500,2000] [--seeds 1-3] [--workloads openb] [--trace PODS.csv]
                              [--budget 2.5] [--csv FILE]

A mix is "proved" by its own bound, "proved apart" where a model that shares nothing with it agrees.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import mean
from time import perf_counter, process_time

import numpy as np
from ortools.sat.python import cp_model
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from htas.planning.solvers.cheapest_mix.finish import Counts
from htas.planning.solvers.cheapest_mix.instance import Effort, MixProblem, pattern_of
from htas.planning.solvers.cheapest_mix.mix import cheapest
from htas.sandbox.workloads.openb import SAMPLE, openb
from tools.bench.mix_greedy import greedy_cost
from tools.bench.numbers import numbers

GIB = 2**30
HOUR_S = 3600
PROOF = 0.5
"""CP-SAT's own measure of work for one proof by the assignment model: some seconds."""
STARTUP_S, GRANULARITY_S = 60, 60
TABLE_7 = [(1, 1, 198), (1, 2, 344), (2, 4, 686), (2, 8, 1371), (4, 16, 2746), (8, 32, 5479)]
"""(cores, GiB, ten-thousandths an hour)."""
TABLE_4 = [(100, 0.3, 60, 240), (200, 0.6, 240, 480), (300, 0.9, 540, 720)]
"""(millicores, GiB, shortest run, longest run in seconds): batch_small, batch_med, batch_large."""
SERVICE = (100, 0.4)

Flavours = Sequence[tuple[int, int, int]]
"""(millicores, bytes, billionths an hour)."""
Pods = list[tuple[int, int, int]]
"""(millicores, bytes, run length in seconds; 0: a service)."""


def table_7() -> Flavours:
    return [(cores * 1000, gib * GIB, price * 10**5) for cores, gib, price in TABLE_7]


def forty() -> Flavours:
    """Five ratios of memory to cpu in eight sizes: larger ones are cheaper by the core, and prices keep to no rule."""
    random = Random(40)
    made = []
    for ratio in (1, 2, 4, 8, 16):
        for cores in (1, 2, 4, 8, 16, 32, 48, 64):
            price = cores * (0.021 + ratio * 0.0028) * cores**-0.06 * random.uniform(0.9, 1.12)
            made.append((cores * 1000, cores * ratio * GIB, round(price, 4) * 10**9))
    return [(cpu, memory, round(price)) for cpu, memory, price in made]


def of_table_4(random: Random, count: int) -> Pods:
    """Table 4's four tasks in equal parts, all by the hour."""
    shapes = [(cpu, gib) for cpu, gib, *_ in TABLE_4] + [SERVICE]
    return [(cpu, -int(-gib * GIB // 1), 0) for cpu, gib in (random.choice(shapes) for _ in range(count))]


def of_table_4_batch(random: Random, count: int) -> Pods:
    """Table 4's three jobs in equal parts, with their run lengths."""
    chosen = [random.choice(TABLE_4) for _ in range(count)]
    return [(cpu, -int(-gib * GIB // 1), random.randint(least, most)) for cpu, gib, least, most in chosen]


def instance_of(pods: Pods, flavours: Flavours) -> MixProblem:
    """Alike pods are one item; a batch pod's level is the billed time of its startup and run."""
    is_by_hour = all(not length for *_, length in pods)
    billed = {length: -(-(STARTUP_S + length) // GRANULARITY_S) * GRANULARITY_S for *_, length in pods}
    holds = (1,) if is_by_hour else tuple(sorted(set(billed.values())))
    items = Counter((cpu, memory, 0 if is_by_hour else holds.index(billed[length])) for cpu, memory, length in pods)
    keys = sorted(items)
    return MixProblem(
        requests=np.array([(cpu, memory, 1) for cpu, memory, _ in keys], dtype=np.int64),
        counts=np.array([items[key] for key in keys], dtype=np.int64),
        levels=np.array([level for *_, level in keys], dtype=np.int64),
        free=np.array([(cpu, memory, 110) for cpu, memory, _ in flavours], dtype=np.int64),
        prices=np.array([price for *_, price in flavours], dtype=np.int64),
        takes=np.ones((len(flavours), len(keys)), dtype=np.bool_),
        holds=holds,
    )


def decreasing(work: MixProblem) -> list[int]:
    """Items pod by pod: longest first, then the largest, memory before cpu."""
    order = sorted(range(len(work.counts)), key=lambda i: (-work.levels[i], -work.requests[i, 1], -work.requests[i, 0]))
    return [i for i in order for _ in range(int(work.counts[i]))]


def one_flavour(work: MixProblem) -> int:
    """First fit decreasing on each flavour by itself; the cheapest that holds every pod."""
    able = [kind for kind in range(len(work.prices)) if (work.most[kind] > 0).all()]
    costs = (sum(pattern_of(work, kind, held).cost for held in first_fit(work, work.free[[kind]])) for kind in able)
    return min(costs, default=0)


def one_claim(work: MixProblem) -> int:
    """First fit decreasing into claims that some flavour could still become; each becomes the cheapest in the end."""
    cost = 0
    for held in first_fit(work, work.free):
        fits = (held @ work.requests <= work.free).all(axis=1)
        cost += min(pattern_of(work, kind, held).cost for kind in np.flatnonzero(fits).tolist())
    return cost


def first_fit(work: MixProblem, kinds: np.ndarray) -> list[np.ndarray]:
    """What each machine holds; a machine has room as long as one of the kinds has."""
    pods = decreasing(work)
    held = np.zeros((len(pods), len(work.counts)), dtype=np.int64)
    room = np.repeat(kinds[None], len(pods), axis=0)
    count = 0
    for item in pods:
        fits = (room[:count] >= work.requests[item]).all(axis=2).any(axis=1)
        number = int(fits.argmax()) if fits.any() else count
        count = max(count, number + 1)
        held[number, item] += 1
        room[number] -= work.requests[item]
    return list(held[:count])


def proven(work: MixProblem, cost: int) -> bool | None:
    """Whether a cost is the optimum, by an assignment model that shares nothing with column generation.

    Machines in numbered slots, pods of an item counted into slots. None: not decided within its share of work.
    """
    model = cp_model.CpModel()
    slots = range(int(work.counts.sum()))
    held = [[model.new_int_var(0, int(count), "") for _ in slots] for count in work.counts]
    choices = [(k, level) for k in range(len(work.prices)) for level in sorted(set(work.levels.tolist()))]
    used = [[model.new_bool_var("") for _ in choices] for _ in slots]
    prices = [work.cost(kind, level) for kind, level in choices]
    for slot in slots:
        model.add_at_most_one(used[slot])
        for r in range(work.requests.shape[1]):
            room = cp_model.LinearExpr.weighted_sum(used[slot], [int(work.free[kind, r]) for kind, _ in choices])
            model.add(sum(int(work.requests[i, r]) * held[i][slot] for i in range(len(held))) <= room)
        for i, level in enumerate(work.levels.tolist()):
            short = [used[slot][c] for c, (_, top) in enumerate(choices) if top >= level]
            model.add(held[i][slot] <= int(work.counts[i]) * sum(short))
    for i, count in enumerate(work.counts.tolist()):
        model.add(sum(held[i]) == count)
    costs = [cp_model.LinearExpr.weighted_sum(used[slot], prices) for slot in slots]
    for left, right in pairwise(costs):
        model.add(left >= right)
    model.add(sum(costs) <= cost - 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = PROOF
    status = solver.solve(model)
    return None if status == cp_model.UNKNOWN else status == cp_model.INFEASIBLE


@dataclass(frozen=True, slots=True)
class Row:
    """One instance. Costs are over the mix's lower bound; times in seconds, `cpu_s` on one core."""

    workload: str
    flavours: str
    pods: int
    seed: int
    mix: float
    greedy: float
    one_flavour: float
    one_claim: float
    took_s: float
    cpu_s: float
    proved: str


def measured(name: str, catalogue: str, pods: Pods, flavours: Flavours, seed: int, budget_s: float) -> Row:
    work = instance_of(pods, flavours)
    hints: Counts = {}
    began, used = perf_counter(), process_time()
    mix = cheapest(work, hints, Effort(1000 * budget_s))
    took, cpu = perf_counter() - began, process_time() - used
    assert mix is not None
    optimal = proven(work, mix.cost) if len(pods) <= 20 else None
    told = {True: "proved apart", False: "NOT OPTIMAL", None: "proved" if mix.is_proved else ""}[optimal]
    others = [greedy_cost(work), one_flavour(work), one_claim(work)]
    ratios = [round(cost / mix.bound, 5) for cost in (mix.cost, *others)]
    return Row(name, catalogue, len(pods), seed, *ratios, round(took, 2), round(cpu, 2), told)


def workloads(trace: Path) -> dict[str, Callable[[Random, int, Flavours], Pods]]:
    tasks = [arrival.task.requests for arrival in openb(trace).arrivals]

    def of_trace(random: Random, count: int, flavours: Flavours) -> Pods:
        """Tasks of the trace that some flavour holds; their GPUs are left out, since no flavour here has any."""
        fitting = [
            (task.cpu_m, task.memory_bytes, 0)
            for task in tasks
            if any(task.cpu_m <= cpu and task.memory_bytes <= memory for cpu, memory, _ in flavours)
        ]
        return random.choices(fitting, k=count)

    return {
        "Table 4": lambda random, count, _: of_table_4(random, count),
        "Table 4 rental": lambda random, count, _: of_table_4_batch(random, count),
        "openb": of_trace,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pods", type=numbers, default=[10, 20, 100, 500, 2000])
    options.add_argument("--seeds", type=numbers, default=[1, 2, 3])
    options.add_argument("--workloads", default="Table 4,Table 4 rental,openb")
    options.add_argument("--trace", type=Path, default=SAMPLE)
    options.add_argument("--budget", type=float, default=2.5)
    options.add_argument("--csv", type=Path)
    given = options.parse_args()
    sizes, seeds = given.pods, given.seeds
    made = {name: make for name, make in workloads(given.trace).items() if name in given.workloads.split(",")}
    catalogues = {"Table 7": table_7(), "forty": forty()}
    cases = [(name, c, n, seed) for name in made for c in catalogues for n in sizes for seed in seeds]
    rows: list[Row] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("mixes", total=len(cases))
        for name, c, n, seed in cases:
            progress.update(bar, description=f"{name}, {c}, {n} pods")
            pods = made[name](Random(f"{seed}/{n}"), n, catalogues[c])
            rows.append(measured(name, c, pods, catalogues[c], seed, given.budget))
            if given.csv is not None:
                write(rows, given.csv)
            progress.advance(bar)
    show(rows)


def show(rows: Sequence[Row]) -> None:
    """One line for each workload, catalogue and size: the mean over seeds (and the worst), over the lower bound."""
    heads = "workload", "flavours", "pods", "mix", "worst", "greedy", "one flavour", "one claim", "s", "cpu s", "proved"
    table = Table(*heads, box=None)
    for key in dict.fromkeys((row.workload, row.flavours, row.pods) for row in rows):
        same = [row for row in rows if (row.workload, row.flavours, row.pods) == key]
        figures = [mean(r.mix for r in same), max(r.mix for r in same), mean(r.greedy for r in same)]
        figures += [mean(r.one_flavour for r in same), mean(r.one_claim for r in same)]
        times = [max(r.took_s for r in same), max(r.cpu_s for r in same)]
        proofs = Counter(row.proved for row in same if row.proved)
        told = ", ".join(f"{count} {what}" for what, count in proofs.items())
        table.add_row(*map(str, key), *(f"{f:.4f}" for f in figures), *(f"{t:.1f}" for t in times), told)
    Console(width=150).print(table)
    large = [row.mix for row in rows if row.pods >= 100]
    if large:
        print(
            f"from 100 pods up: mean {mean(large):.4f}, worst {max(large):.4f} of the lower bound, {len(large)} cases"
        )


def write(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Row.__slots__)
        writer.writerows([getattr(row, name) for name in Row.__slots__] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
