"""What people get by default: the same days under every shipped configuration, and rules of rental off in turn.

    python -m tools.bench.defaults days                        # eight paper days, every shipped configuration
    python -m tools.bench.defaults days my.yaml --seeds 4,5    # and one of your own
    python -m tools.bench.defaults rules --seeds 11,12,13 --billing 60,3600
    python -m tools.bench.defaults rules --seeds 11,12,13 --patterns heavy-tailed
    python -m tools.bench.defaults rules --trace openb_pod_list_default.csv --tasks 400 --slices 5,9,14

Every configuration plays in the sandbox, on the paper's prices and without limits: these are the user's own, the rest
is how HTAS decides. `rules` plays `config/htas.yaml` as it is and with one rule off at a time.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import msgspec
import yaml

from htas.config.document import read_document
from htas.config.loader import ConfigurationError, load_catalogue, load_configuration
from htas.config.places import config_file
from htas.model.billing import Billing
from htas.model.pods import WorkKind
from htas.model.policy import EmptyRelease, Limits, Policy
from htas.planning.planner import plan
from htas.sandbox.workload import Task, Workload
from htas.sandbox.workloads import openb
from tools.lab.contenders import Contender
from tools.lab.results import RunResult
from tools.lab.trials.bill import Trial, run
from tools.lab.workloads import patterns

SHIPPED = ("htas.yaml", "openstack.yaml", "kwok.yaml", "cassandra.yaml", "chart")
CHART = Path(__file__).parents[2] / "deploy" / "manifests" / "htas.yaml"
"""The chart with its own values, as `deploy/render.sh` renders it."""
HEAVY_TAILED = "heavy-tailed"
"""The stable pattern, whose jobs run as long as `heavy_tailed` draws."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Play the shipped configurations, and their rules one by one.")
    parser.add_argument("what", choices=("days", "rules"))
    parser.add_argument("configs", nargs="*", default=(), help="Configurations beside the shipped ones.")
    parser.add_argument("--seeds", default="1,2", help="Seeds of the paper's patterns, parted by commas.")
    names = [each.name for each in patterns.PAPER]
    parser.add_argument("--patterns", default=",".join(names), help=f"Of {', '.join(names)} and {HEAVY_TAILED}.")
    parser.add_argument("--billing", default="60", help="Billing periods in seconds, parted by commas.")
    parser.add_argument("--trace", type=Path, default=None, help="Slices of a trace in the place of the patterns.")
    parser.add_argument("--tasks", type=int, default=400, help="Tasks in a slice.")
    parser.add_argument("--slices", default="1,5,9,13,17", help="Which slices, from 0.")
    parser.add_argument("--rules", default="", help="Only these, parted by commas.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.workers) as processes:
        if chosen.what == "days":
            tell_days([*SHIPPED, *chosen.configs], _patterns(chosen), processes)
        else:
            names = [name for name in chosen.rules.split(",") if name] or list(SWITCHES)
            for period_s in map(int, chosen.billing.split(",")):
                works = _slices(chosen) if chosen.trace is not None else _patterns(chosen)
                tell_rules(names, works, period_s, processes)


# What is played.


class Work(msgspec.Struct, frozen=True):
    """A pattern of the paper with a seed, or a slice of a trace."""

    name: str
    seed: int = 1
    trace: str | None = None
    tasks: int = 0

    def load(self) -> Workload:
        if self.name == HEAVY_TAILED:
            return heavy_tailed(self.seed)
        if self.trace is None:
            return patterns.workload(patterns.named(self.name), self.seed)
        arrivals = openb.openb(Path(self.trace)).arrivals
        first = int(self.name) * self.tasks
        part = arrivals[first : first + self.tasks]
        moved = (msgspec.structs.replace(each, at_s=each.at_s - part[0].at_s) for each in part)
        return Workload(f"slice {self.name}", tuple(moved))


def heavy_tailed(seed: int) -> Workload:
    """The paper's stable pattern with run lengths of a bounded Pareto distribution: 1 min to 12 h, exponent 0.8.

    Half of the jobs run for less than two and a half minutes, one in 30 for more than an hour, and these hold half of
    all run time. Jobs state their length to the next half minute, as those of the patterns do.
    """
    random = Random(f"{HEAVY_TAILED}/{seed}")

    def drawn(task: Task) -> Task:
        if task.kind is not WorkKind.BATCH:
            return task
        runs_s = _bounded_pareto(random.random())
        return msgspec.structs.replace(task, runs_s=runs_s, stated_s=math.ceil(runs_s / 30) * 30.0)

    return patterns.mapped(patterns.workload(patterns.named("stable"), seed), drawn)


def _bounded_pareto(share: float, shortest_s: float = 60.0, longest_s: float = 43_200.0, alpha: float = 0.8) -> float:
    """The run length below which a share of all jobs stay."""
    left = 1 - share * (1 - (shortest_s / longest_s) ** alpha)
    return float(shortest_s * left ** (-1 / alpha))


def _patterns(chosen: argparse.Namespace) -> list[Work]:
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    return [Work(name, seed) for name in chosen.patterns.split(",") for seed in seeds]


def _slices(chosen: argparse.Namespace) -> list[Work]:
    return [Work(name, 1, str(chosen.trace), chosen.tasks) for name in chosen.slices.split(",")]


def play(policy: Policy, work: Work) -> RunResult:
    """One run to its end, with machines that are Ready after two minutes."""
    return run(Trial(Contender("htas", "HTAS", policy, plan), work.name, work.load(), work.seed))[0]


# The shipped configurations.


def sandboxed(name: str) -> Policy:
    """How a shipped configuration decides, or one by its path."""
    return msgspec.structs.replace(in_sandbox(_text_of(name)), cluster="main")


def _text_of(name: str) -> str:
    if name != "chart":
        return (config_file(name) if name in SHIPPED else Path(name)).read_text()
    objects = yaml.safe_load_all(CHART.read_text())
    data = next(each["data"] for each in objects if each and "htas.yaml" in each.get("data", {}))
    return str(data["htas.yaml"])


def in_sandbox(text: str) -> Policy:
    """The policy of a configuration's text on the paper's prices, without limits: how it decides, whatever provides."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "htas.yaml"
        path.write_text(text)
        document, problems = read_document(path)
        if document is None or problems:
            raise ConfigurationError(tuple(problems))
        path.write_text(yaml.safe_dump(_playable(document.raw)))
        return load_configuration(path).policy


def _playable(raw: dict[str, Any]) -> dict[str, Any]:
    """Without what is each user's own, and of the sandbox; numbers are text here, as the loader reads them."""
    kept = {key: value for key, value in raw.items() if key not in _OWN}
    groups = [{key: value for key, value in group.items() if key not in _LIMITS} for group in raw["nodeGroups"]]
    prices = str(config_file("flavours/nectar.yaml"))
    return {**kept, "flavours": prices, "provider": {"sandbox": {}}, "nodeGroups": groups}


_OWN = ("mode", "kubernetes", "store", "http", "logging", "leaderElection", "limits")
_LIMITS = ("maxNodes", "maxCpu", "maxMemory", "maxPricePerHour")


def tell_days(names: Iterable[str], works: list[Work], processes: ProcessPoolExecutor) -> None:
    say(f"{'configuration':<16} {'day':<12} {'bill, cents':>12} {'moved':>6} {'machines':>9} {'p99 wait s':>11}")
    for name in names:
        policy = sandboxed(name)
        for work, played in zip(works, processes.map(play, [policy] * len(works), works), strict=True):
            say(
                f"{Path(name).name:<16} {work.name + ' ' + str(work.seed):<12} {cents(played):>12.4f} "
                f"{len(played.migrated_at_s):>6} {played.machines:>9} {played.p99_scheduling_s:>11.0f}"
            )


# The rules, one off at a time.


def _released_at_once(policy: Policy) -> Policy:
    groups = tuple(
        msgspec.structs.replace(
            group, cleaning=msgspec.structs.replace(group.cleaning, empty_release=EmptyRelease.AT_ONCE)
        )
        for group in policy.groups
    )
    return msgspec.structs.replace(policy, groups=groups)


SWITCHES: Mapping[str, Callable[[Policy], Policy]] = {
    "as shipped": lambda policy: policy,
    "no bound on lengthening": lambda policy: msgspec.structs.replace(policy, max_rental_lengthening=None),
    "empty machines go at once": _released_at_once,
}


def tell_rules(names: Iterable[str], works: list[Work], period_s: int, processes: ProcessPoolExecutor) -> None:
    whole = _billed(load_configuration(config_file("htas.yaml")).policy, period_s)
    if works[0].trace is not None:
        whole = _on_trace(whole, period_s)
    base: list[RunResult] = []
    say(f"billing by {period_s} s")
    for name in names:
        results = list(processes.map(play, [SWITCHES[name](whole)] * len(works), works))
        base = base or results
        for work, played, first in zip(works, results, base, strict=True):
            say(f"  {name:<28} {work.name + ' ' + str(work.seed):<12} {_line(played, first)}")
        say(f"  {name:<28} {'mean':<12} {fmean(_ratio(*pair) for pair in zip(results, base, strict=True)):.3f}")


def _line(played: RunResult, first: RunResult) -> str:
    return (
        f"{cents(played):>10.2f} cents  ratio {_ratio(played, first):.3f}  machines {played.machines:>4}  "
        f"moved {len(played.migrated_at_s):>3}  p99 {played.p99_scheduling_s:>4.0f} s  {played.note}"
    )


def _ratio(played: RunResult, first: RunResult) -> float:
    return played.bill_nano_seconds / first.bill_nano_seconds


def cents(played: RunResult) -> float:
    return played.bill_nano_seconds / 3600 / 10**7


def _billed(policy: Policy, period_s: int) -> Policy:
    catalogue = msgspec.structs.replace(policy.catalogue, billing=Billing(period_s, period_s))
    return msgspec.structs.replace(policy, catalogue=catalogue)


def _on_trace(policy: Policy, period_s: int) -> Policy:
    """On the trace's own machine shapes, without limits: they cost a hundred times those of the paper."""
    catalogue = load_catalogue(config_file("flavours/openb.yaml"))
    batch = msgspec.structs.replace(policy.groups[-1], limits=Limits())
    return _billed(msgspec.structs.replace(policy, catalogue=catalogue, groups=(batch,), limits=Limits()), period_s)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
