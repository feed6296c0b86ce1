"""Run lengths learned from a trace of openb's form: errors, and the cost of the whole trace by what packing knows.

First what it takes to put estimates into 100,000 pods.

    python -m tools.bench.run_lengths openb_pod_list_default.csv              # everything
    python -m tools.bench.run_lengths openb_pod_list_default.csv --errors     # all but the costs: seconds
    python -m tools.bench.run_lengths openb_pod_list_default.csv --last 2000  # play the last tasks only
    python -m tools.bench.run_lengths openb_pod_list_default.csv --day        # play the demo's day instead

Each case is played in a process of its own, on as many cores as there are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

import msgspec

from htas.cli.demo import trace_policy
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.model.pods import Pod, WorkKind
from htas.model.policy import RunLengths
from htas.model.record import Run
from htas.model.resources import Resources
from htas.profiler.run_lengths import LearnedRunLengths
from htas.sandbox.workload import Arrival, Task
from htas.sandbox.workloads.day import day
from htas.sandbox.workloads.openb import openb
from tools.bench.estimating import Always, Guesser, Learned, SoFar, errors, run_of, walk
from tools.bench.playing import Played, play

PODS, TEMPLATES = 100_000, 200
QUANTILES = (0.5, 0.75, 0.9)
DEFAULT_S = RunLengths().default_s
CASES: dict[str, RunLengths | None] = {
    "exact": None,
    "none": RunLengths(learn=False),
    **{f"learned {quantile:g}": RunLengths(quantile=quantile) for quantile in QUANTILES},
}


def guessers() -> dict[str, Guesser]:
    made: dict[str, Guesser] = {
        f"always {DEFAULT_S:g} s": Always(DEFAULT_S),
        "mean so far": SoFar(statistics.fmean, DEFAULT_S),
        "median so far": SoFar(statistics.median, DEFAULT_S),
    }
    for quantile in QUANTILES:
        made[f"learned {quantile:g}"] = Learned(RunLengths(quantile=quantile))
    for min_runs in (1, 10):
        made[f"learned 0.5, minRuns {min_runs}"] = Learned(RunLengths(min_runs=min_runs))
    for half_life in (1, 5, 10, 1000):
        made[f"learned 0.5, halfLife {half_life}"] = Learned(RunLengths(half_life=half_life))
    return made


def tell_errors(trace: Path) -> None:
    work = openb(trace)
    say(f"{'expected':<28} {'median s':>9} {'mean s':>9} {'factor':>7} {'within 2x':>9}")
    for name, guesser in guessers().items():
        found = errors(walk(work, guesser))
        say(
            f"{name:<28} {found.median_s:>9.0f} {found.mean_s:>9.0f} {found.median_factor:>7.2f} "
            f"{found.within_twice:>9.1%}"
        )


def tell_speed() -> None:
    """What putting estimates into 100,000 pods of 200 templates takes, half of them waiting."""
    learned = LearnedRunLengths(RunLengths())
    learned.learn(_run(number, number % TEMPLATES) for number in range(20 * TEMPLATES))
    pods = tuple(_pod(number) for number in range(PODS))
    _timed("new to it", learned, pods)
    _timed("unchanged", learned, (*pods,))
    learned.learn([_run(10**6, 5)])
    _timed("one template has another estimate", learned, pods)
    learned.learn([_run(10**7 + number, number) for number in range(TEMPLATES)])
    _timed("all templates have", learned, pods)


def _timed(what: str, learned: LearnedRunLengths, pods: tuple[Pod, ...]) -> None:
    began = process_time()
    learned.applied(pods)
    say(f"{PODS} pods, {what}: {1000 * (process_time() - began):.0f} ms of CPU")


def _pod(number: int) -> Pod:
    template = number % TEMPLATES
    return Pod(
        "default",
        f"p-{number}",
        Resources(10 * template + 10, 2**30, 0, 1),
        uid=f"u-{number}",
        kind=WorkKind.BATCH,
        template=f"Job/{template}",
        image="one",
        node="n" if number // TEMPLATES % 2 else None,
    )


def _run(number: int, template: int) -> Run:
    task = Task(f"r-{number}", Resources(10 * template + 10, 2**30, 0, 1), WorkKind.BATCH, template=f"Job/{template}")
    task = msgspec.structs.replace(task, image="one", runs_s=float(50 + number * 7919 % 500))
    return run_of(Arrival(0.0, task), 1000.0 + number)


def play_case(trace: Path | None, last: int, name: str, seed: int) -> tuple[Played, float]:
    """One case, and how many seconds it took; run in a process of its own. No trace: the demo's day is played."""
    work, settings = openb(trace) if trace is not None else day(seed), CASES[name]
    if last:
        arrivals = work.arrivals[-last:]
        first = arrivals[0].at_s
        moved = tuple(msgspec.structs.replace(arrival, at_s=arrival.at_s - first) for arrival in arrivals)
        work = msgspec.structs.replace(work, arrivals=moved)
    policy = trace_policy() if trace is not None else load_configuration(config_file("htas.yaml")).policy
    if settings is not None:
        policy = msgspec.structs.replace(policy, run_lengths=settings)
    began = perf_counter()
    played = play(work, policy, states=settings is None, seed=seed)
    return played, perf_counter() - began


def tell_costs(trace: Path | None, last: int, seed: int) -> None:
    say(
        f"{'run lengths':<14} {'cost':>10} {'machines':>8} {'hours':>8} {'moved':>6} {'wait s':>7} {'p99 s':>7} "
        f"{'ended':>6} {'lost':>5} {'took s':>7}"
    )
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        results = {name: processes.submit(play_case, trace, last, name, seed) for name in CASES}
        for name, result in results.items():
            played, took = result.result()
            say(
                f"{name:<14} {played.cost:>10.2f} {played.machines:>8} {played.machine_hours:>8.1f} {played.moved:>6} "
                f"{played.mean_wait_s:>7.1f} {played.wait_p99_s:>7.1f} {played.finished:>6} {played.lost:>5} "
                f"{took:>7.0f}"
            )


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure learned run lengths on a trace.")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--errors", action="store_true", help="No costs.")
    parser.add_argument("--last", type=int, default=0, help="Play only so many tasks, the last; 0: all.")
    parser.add_argument("--day", action="store_true", help="Play the demo's day, not the trace.")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    say(f"cores {os.cpu_count()}, python {sys.version.split()[0]}, seed {chosen.seed}")
    tell_speed()
    tell_errors(chosen.trace)
    if not chosen.errors:
        tell_costs(None if chosen.day else chosen.trace, chosen.last, chosen.seed)


if __name__ == "__main__":
    main()
