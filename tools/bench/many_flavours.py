"""What planning costs and buys where there are hundreds or thousands of flavours, each case in a process of its own.

500 pods of 20 templates (services, so that costs are prices an hour) wait on an empty cluster. The greedy and the
cheapest mix buy for them from the catalogues of `tools.bench.catalogues`. CPU seconds are those of `plan` alone, memory
is the process's peak, the gap is over the higher of both bounds: each holds for either way to buy.

    python -m tools.bench.many_flavours [--sizes 300,2000] [--seeds 2-6] [--families random] [--many-kinds 40]

`--many-kinds` moves the number of kinds above which the mix shares its effort out; one that no catalogue has turns the
rule off.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from statistics import mean
from time import process_time

import numpy as np

from htas.model.flavours import Catalogue
from htas.model.pods import Pod
from htas.model.policy import AutoscalingAlgorithm, NodeGroup, Policy
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.classes import ResourceAxis
from htas.planning.planner import plan
from htas.planning.provision.bound import lower_bound_nanos
from tools.bench.catalogues import FAMILIES
from tools.bench.numbers import numbers
from tools.bench.pattern_bound import pattern_bound_nanos

NOW = 1_000_000.0
PODS, TEMPLATES = 500, 20
ALGORITHMS = {each.value: each for each in AutoscalingAlgorithm}


@dataclass(frozen=True, slots=True)
class Case:
    """What is planned. `many_kinds` is the rule's threshold; None: as shipped."""

    family: str
    size: int
    seed: int
    algorithm: str
    many_kinds: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: nanos are billionths an hour."""

    cost_nanos: int
    bound_nanos: int
    cpu_s: float
    peak_mb: float
    unplaced: int


def waiting(seed: int) -> tuple[Pod, ...]:
    random = Random(f"pods/{seed}")
    templates = [
        Resources(random.randint(100, 4000), random.randint(256, 8192) * 2**20, 0, 1) for _ in range(TEMPLATES)
    ]
    return tuple(Pod("default", f"pod-{i:03d}", random.choice(templates), scheduler="htas") for i in range(PODS))


def played(case: Case) -> Outcome:
    """The plan of a case, in this process."""
    if case.many_kinds is not None:
        # Imported here: ortools' 50 MB would count for the greedy.
        from htas.planning.solvers.cheapest_mix import generation

        generation.MANY_KINDS = case.many_kinds
    group = NodeGroup("any", autoscaling=ALGORITHMS[case.algorithm])
    policy = Policy("bench", Catalogue(FAMILIES[case.family](case.size, case.seed)), (group,))
    snapshot = ClusterSnapshot(NOW, ClusterView((), waiting(case.seed)))
    began = process_time()
    made = plan(snapshot, policy, NOW)
    took = process_time() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost = made.cost.after_nanos
    return Outcome(cost, _bound(policy, snapshot, cost), took, peak_mb, len(made.unplaced))


def _bound(policy: Policy, snapshot: ClusterSnapshot, cost: int) -> int:
    """The higher of the fluid bound and that by patterns, of work that all flavours may hold."""
    axis = ResourceAxis((), ())
    flavours = policy.catalogue.flavours
    shapes = Counter(tuple(axis.vector(pod.requests).tolist()) for pod in snapshot.cluster.pods)
    demand = np.array([[amount * count for amount in shape] for shape, count in shapes.items()], dtype=np.int64)
    capacities = [tuple(axis.vector(flavour.allocatable).tolist()) for flavour in flavours]
    prices = [flavour.nanos_per_hour for flavour in flavours]
    fluid = lower_bound_nanos(demand.sum(axis=0).tolist(), capacities, prices)
    patterns = pattern_bound_nanos(tuple(sorted(shapes.items())), tuple(capacities), tuple(prices), cost)
    return max(fluid, patterns)


def played_apart(case: Case) -> Outcome:
    """The same in a process of its own.

    Raises:
        subprocess.CalledProcessError: it failed; what it said is on stderr.
    """
    command = [sys.executable, "-m", "tools.bench.many_flavours", "--case", json.dumps(asdict(case))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Outcome(**json.loads(done.stdout))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=numbers, default=[300])
    options.add_argument("--seeds", type=numbers, default=[2, 3, 4, 5, 6])
    options.add_argument("--families", default=",".join(FAMILIES))
    options.add_argument("--algorithms", default=",".join(ALGORITHMS))
    options.add_argument("--many-kinds", type=int)
    options.add_argument("--case", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.case is not None:
        print(json.dumps(asdict(played(Case(**json.loads(given.case))))))
        return
    families, algorithms = given.families.split(","), given.algorithms.split(",")
    unknown = [name for name in families if name not in FAMILIES] + [n for n in algorithms if n not in ALGORITHMS]
    if unknown:
        options.error(f"{', '.join(unknown)}: families are {', '.join(FAMILIES)}; algorithms {', '.join(ALGORITHMS)}")
    print(f"{PODS} pods of {TEMPLATES} templates; costs and bounds an hour")
    print(f"{'family':>12} {'size':>5} {'seed':>4} {'algorithm':>12} {'cpu_s':>6} {'peak_MB':>7} ", end="")
    print(f"{'cost':>9} {'bound':>9} {'gap':>7} {'unplaced':>8}")
    for family in families:
        for size in given.sizes:
            cases = [[Case(family, size, seed, a, given.many_kinds) for a in algorithms] for seed in given.seeds]
            _tell(family, size, cases)


def _tell(family: str, size: int, cases: Sequence[Sequence[Case]]) -> None:
    """A line for each seed and algorithm, and one for each algorithm's means over several."""
    of_algorithm: dict[str, list[tuple[Outcome, float]]] = {}
    for same_seed in cases:
        outcomes = [played_apart(case) for case in same_seed]
        bound = max(outcome.bound_nanos for outcome in outcomes)
        for case, outcome in zip(same_seed, outcomes, strict=True):
            gap = outcome.cost_nanos / max(bound, 1) - 1
            of_algorithm.setdefault(case.algorithm, []).append((outcome, gap))
            _line(family, size, str(case.seed), case.algorithm, [(outcome, gap)])
    for algorithm, found in of_algorithm.items() if len(cases) > 1 else ():
        _line(family, size, "mean", algorithm, found)


def _line(family: str, size: int, seed: str, algorithm: str, found: Sequence[tuple[Outcome, float]]) -> None:
    outcomes = [outcome for outcome, _ in found]
    cpu, peak = mean(o.cpu_s for o in outcomes), max(o.peak_mb for o in outcomes)
    cost, bound = mean(o.cost_nanos for o in outcomes) / 1e9, mean(o.bound_nanos for o in outcomes) / 1e9
    gap, unplaced = mean(gap for _, gap in found), sum(o.unplaced for o in outcomes)
    print(f"{family:>12} {size:>5} {seed:>4} {algorithm:>12} {cpu:>6.2f} {peak:>7.0f} ", end="")
    print(f"{cost:>9.5f} {bound:>9.5f} {gap:>7.2%} {unplaced:>8}", flush=True)


if __name__ == "__main__":
    main()
