"""Results of an experiment that was never run: plausible curves, for what is drawn and told of them."""

from __future__ import annotations

import math
from random import Random

from tools.lab.results import Results, RunResult, Sample

# By policy: cost beside default Kubernetes', utilisation, scheduling time in s, moves an hour, overhead of a move in s.
POLICIES = {
    "htas": (0.70, 0.86, 38.0, 30.0, 8.5),
    "htas-default": (0.66, 0.90, 14.0, 34.0, 8.5),
    "default-kubernetes": (1.0, 0.55, 24.0, 0.0, 0.0),
    "cluster-autoscaler": (0.84, 0.7, 22.0, 6.0, 90.0),
    "coca": (0.93, 0.66, 23.0, 22.0, 160.0),
    "stratus": (0.78, 0.78, 27.0, 4.0, 66.0),
    "karpenter": (0.80, 0.80, 18.0, 12.0, 120.0),
}
PATTERNS = {"stable": 1.1, "growing": 2.6, "cycle": 1.7, "on-off": 1.3}
DAY_S = 5400.0


def invented(seeds: int = 10, policies: tuple[str, ...] = tuple(POLICIES), experiment: str = "paper") -> Results:
    """An experiment's results; the same ones every time."""
    numbers = tuple(range(1, seeds + 1))
    runs = tuple(run(policy, pattern, seed) for policy in policies for pattern in PATTERNS for seed in numbers)
    return Results(experiment, "USD", policies, tuple(PATTERNS), numbers, runs)


def run(policy: str, pattern: str, seed: int) -> RunResult:
    cost, utilisation, scheduling_s, moves_an_hour, overhead_s = POLICIES.get(policy, POLICIES["htas"])
    random = Random(f"{policy}/{pattern}/{seed}")
    of_seed = Random(f"{pattern}/{seed}").uniform(0.93, 1.07)
    is_moving = pattern != "growing"
    amount = PATTERNS[pattern] * cost * of_seed * random.uniform(0.99, 1.01)
    ended = DAY_S * of_seed
    moved = sorted(random.uniform(1500, ended) for _ in range(int(moves_an_hour * 1.5) if is_moving else 0))
    return RunResult(
        policy=policy,
        pattern=pattern,
        seed=seed,
        bill_nano_seconds=round(amount * 3600 * 10**9),
        ended_at_s=ended,
        tasks=400,
        finished=400,
        lost=0,
        mean_scheduling_s=scheduling_s * of_seed * random.uniform(0.95, 1.05),
        max_scheduling_s=300.0,
        p99_scheduling_s=scheduling_s * 4,
        machines=12,
        machine_hours=9.5,
        peak_nodes=11,
        mean_cpu_utilization=utilisation * 0.9,
        mean_memory_utilization=utilisation,
        migrated_at_s=tuple(moved),
        migration_s=tuple(random.uniform(0.7, 1.4) * overhead_s for _ in moved),
        deprovisioned_at_s=tuple(moved[::6]),
        samples=tuple(_sample(at, pattern, cost, utilisation, ended, random) for at in range(0, int(ended), 30)),
    )


def _sample(at: float, pattern: str, cost: float, utilisation: float, ended: float, random: Random) -> Sample:
    part = at / ended
    load = {
        "stable": min(1.0, 6 * part),
        "growing": 0.2 + 2.3 * part**2,
        "cycle": 1.0 + 0.8 * math.sin(6 * math.pi * part),
        "on-off": 1.6 if part % 0.33 < 0.16 else 0.4,
    }[pattern] * (1.0 if part < 0.93 else 0.3)
    used = min(1.0, utilisation * min(1.0, 0.35 + load / 1.4) * random.uniform(0.95, 1.05))
    nodes = max(2, round(7 * load * cost / 0.8))
    return Sample(float(at), used * 0.92, used, nodes, nodes + 1, round(5 * load))
