"""The form of an experiment's results, and the files they are kept in.

A run is one policy on one pattern with one seed. What it came to in virtual time is the same on every machine and in
every repetition, byte by byte; how long planning really took is not, and is kept apart (`Timing`). A folder of results
holds `results.json` (all of it but timings), `runs.csv` (a line a run), `samples.csv` (a line an instant) and
`timings.csv`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from htas.model.money import bill_amount
from htas.ports import HTASError

RESULTS, RUNS, SAMPLES, TIMINGS = "results.json", "runs.csv", "samples.csv", "timings.csv"


_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class ResultsError(HTASError):
    """A folder that holds no results, or none that can be read."""


class Sample(msgspec.Struct, frozen=True):
    """What was seen at an instant, `at_s` seconds after the run's start.

    Utilisations are requests of running work over what Ready nodes offer, from 0 to 1 (0 without nodes). `nodes` are
    Ready nodes; `machines` are rented ones, on their way in or out as well; `waiting` are pods that do not run yet.
    """

    at_s: float
    cpu_utilization: float
    memory_utilization: float
    nodes: int
    machines: int
    waiting: int


class RunResult(msgspec.Struct, frozen=True):
    """What one run came to. Times are seconds of virtual time.

    `scheduling_s`: from a task's submission to its first moment of running (HTAS paper 6.3), over batch tasks and
    replicas of services. `migration_s` is the overhead of each task moved (paper Figure 8): what it stood still, what
    it ran in vain and, where a machine was bought for it, how long that took to come. `migrated_at_s` and
    `deprovisioned_at_s` date each move of a task and each node given back after its tasks had been moved; a node
    that had become empty by itself counts in `emptied` alone.
    """

    policy: str
    pattern: str
    seed: int
    bill_nano_seconds: int
    """The invoice: price in billionths an hour × billed seconds. `cost` is the amount."""
    ended_at_s: float
    """When the last batch task had ended, nothing was to change and all services ran: bills are until then."""
    tasks: int
    finished: int
    lost: int
    mean_scheduling_s: float
    max_scheduling_s: float
    p99_scheduling_s: float
    machines: int
    machine_hours: float
    peak_nodes: int
    mean_cpu_utilization: float
    mean_memory_utilization: float
    migrated_at_s: tuple[float, ...] = ()
    migration_s: tuple[float, ...] = ()
    deprovisioned_at_s: tuple[float, ...] = ()
    emptied: int = 0
    work_lost_s: float = 0.0
    """Run time of tasks that had to start again."""
    samples: tuple[Sample, ...] = ()
    said_nano_seconds: int = 0
    """What `htas cost` says in the end, machines that run included, and the world's invoice at that instant."""
    invoice_nano_seconds: int = 0
    books_off_nano_seconds: int = 0
    """The greatest difference between both that was seen after a cycle, the running minutes included."""
    note: str = ""
    """What went wrong, such as a run that had not ended when it was given up; empty: nothing."""

    @property
    def cost(self) -> Decimal:
        """The bill in units of the currency, to a millionth."""
        return bill_amount(self.bill_nano_seconds)

    @property
    def migrations(self) -> int:
        return len(self.migrated_at_s)

    @property
    def deprovisionings(self) -> int:
        return len(self.deprovisioned_at_s)

    @property
    def mean_migration_s(self) -> float:
        """The mean overhead of moving a task; 0 where none was moved."""
        return sum(self.migration_s) / len(self.migration_s) if self.migration_s else 0.0


class Timing(msgspec.Struct, frozen=True):
    """Real time of one run, on the machine it ran on: all of it, and what its `cycles` plans took."""

    policy: str
    pattern: str
    seed: int
    took_s: float
    cycles: int
    planning_s: float
    max_planning_s: float


class Results(msgspec.Struct, frozen=True):
    """All runs of an experiment, by policy, pattern and seed in the experiment's order."""

    experiment: str
    currency: str
    policies: tuple[str, ...]
    patterns: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[RunResult, ...]

    def of(self, policy: str, pattern: str) -> tuple[RunResult, ...]:
        """The runs of one policy on one pattern, by seed."""
        return tuple(run for run in self.runs if (run.policy, run.pattern) == (policy, pattern))


_SCALARS = (
    "policy",
    "pattern",
    "seed",
    "cost",
    "ended_at_s",
    "tasks",
    "finished",
    "lost",
    "mean_scheduling_s",
    "max_scheduling_s",
    "p99_scheduling_s",
    "machines",
    "machine_hours",
    "peak_nodes",
    "mean_cpu_utilization",
    "mean_memory_utilization",
    "migrations",
    "deprovisionings",
    "emptied",
    "mean_migration_s",
    "work_lost_s",
    "note",
)


def write_results(results: Results, timings: Sequence[Timing], folder: Path) -> None:
    """Write the files of a folder, which is made where it is missing; files of the same names are replaced."""
    write_common(results, results.runs, _SCALARS, timings, folder)
    samples = (
        [run.policy, run.pattern, run.seed, *msgspec.structs.astuple(sample)]
        for run in results.runs
        for sample in run.samples
    )
    write_table(folder / SAMPLES, ("policy", "pattern", "seed", *Sample.__struct_fields__), samples)


def write_common(
    results: msgspec.Struct,
    runs: Iterable[msgspec.Struct],
    columns: Sequence[str],
    timings: Iterable[Timing],
    folder: Path,
) -> None:
    """What the folder of every experiment holds: results, a line with these columns for each run, and timings."""
    folder.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(results), indent=1)
    (folder / RESULTS).write_bytes(encoded + b"\n")
    write_table(folder / RUNS, columns, ([getattr(run, column) for column in columns] for run in runs))
    write_table(folder / TIMINGS, Timing.__struct_fields__, map(msgspec.structs.astuple, timings))


class Named(msgspec.Struct):
    """Of any experiment's results the name alone."""

    experiment: str


def read_results(folder: Path, kind: type[_Kind]) -> _Kind:
    """A folder's results in a form; raises ResultsError where they are not of it, or not there."""
    path = folder / RESULTS
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise ResultsError(
            f"{path}: cannot be read: {error.strerror}; `python -m tools.lab run` writes such files"
        ) from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ResultsError(f"{path}: is not the results of an experiment: {error}") from error


def write_table(path: Path, header: Sequence[str], lines: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file; one of that name is replaced."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(map(_cell, line) for line in lines)


def _cell(value: Any) -> str:
    """Floats to a millionth, so that a file reads well; everything else as it is."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
