"""Clusters of hundreds of nodes, each in a process of its own, so that its peak memory is the search's."""

from __future__ import annotations

import resource
from multiprocessing import get_context

from tools.bench.priority_instances import Cell, generate
from tools.bench.priority_solving import solve

SEED = 1


def scale(cells: list[Cell], engine: str, seconds: float, clock: str) -> None:
    """Prints a row for each; nothing is preempted in the default placement, equal nodes are taken by name."""
    print(
        f"{'nodes':>6} {'pods':>6} {'usage':>6} {'wall_s':>8} {'cpu_s':>8} {'peak_MB':>8} "
        f"{'before':>26} {'after':>26} bound moved",
        flush=True,
    )
    for cell in cells:
        process = get_context("spawn").Process(target=_case, args=(cell, engine, seconds, clock))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{cell}: the search ended with {process.exitcode}")


def _case(cell: Cell, engine: str, seconds: float, clock: str) -> None:
    answer = solve(engine, generate(cell, SEED), seconds, clock)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{cell.nodes:>6} {cell.nodes * cell.pods_per_node:>6} {cell.usage:>6.0%} "
        f"{answer['seconds']:>8} {answer['cpu_seconds']:>8} {peak:>8.0f} "
        f"{answer['before']!s:>26} {answer['after']!s:>26} {answer['bound']:>6} {answer['moved']:>6}",
        flush=True,
    )
