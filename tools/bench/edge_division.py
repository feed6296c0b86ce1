"""The edge's scenarios with the load divided otherwise: which division shows what KubeDSM 6.3 reports of its services?

    python -m tools.bench.edge_division same-pods --seeds 5 --to results/same-pods
    python -m tools.lab report results/same-pods

As `python -m tools.lab run edge` plays them, the pods of each service ask for as much memory in sum. `same-pods` gives
every service as many pods, `same-cores` as many cores in sum. Twelve contenders in ten scenarios, as there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools.lab.edge.contenders import edge_contenders
from tools.lab.edge.results import EDGE, EdgeResults, EdgeRun, write_edge_results
from tools.lab.edge.scenarios import EDGE_NODES, GB, MIB, SCENARIOS, SERVICES, workload
from tools.lab.results import Timing
from tools.lab.trials import edge

CORES = sum(cores for cores, _ in EDGE_NODES.values())
MEMORY = sum(gb for _, gb in EDGE_NODES.values()) * GB


def same_pods(load: float) -> dict[str, int]:
    """Of a load of 1.5, which asks for 21 GB of memory, it is 3 pods each: one of each service takes 6 GB."""
    of_one_each = sum(mib for _, mib in SERVICES.values()) * MIB
    return dict.fromkeys(SERVICES, max(1, int(load * MEMORY / of_one_each)))


def same_cores(load: float) -> dict[str, int]:
    """Of a load of 1.5, which asks for 24 cores, it is 6 A, 6 B, 6 C and 3 D."""
    return {name: max(1, int(load * CORES / len(SERVICES) / cores)) for name, (cores, _) in SERVICES.items()}


DIVISIONS: Mapping[str, Callable[[float], Mapping[str, int]]] = {"same-pods": same_pods, "same-cores": same_cores}


def played(division: str, contender: str, scenario: str, seed: int) -> tuple[EdgeRun, Timing]:
    """One trial, in a process of its own."""
    work = workload(SCENARIOS[scenario], seed, DIVISIONS[division])
    return edge.run(edge_contenders()[contender], scenario, work, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("division", choices=tuple(DIVISIONS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--to", type=Path, required=True, help="the folder for results")
    given = parser.parse_args()
    names, scenarios, seeds = tuple(edge_contenders()), tuple(SCENARIOS), tuple(range(1, given.seeds + 1))
    parts = [(given.division, name, scenario, seed) for scenario in scenarios for name in names for seed in seeds]
    with ProcessPoolExecutor(given.workers) as pool:
        trials = list(pool.map(played, *zip(*parts, strict=True), chunksize=4))
    runs, timings = tuple(run for run, _ in trials), [timing for _, timing in trials]
    write_edge_results(EdgeResults(EDGE, names, scenarios, seeds, runs), timings, given.to)


if __name__ == "__main__":
    main()
