"""Workloads as CSV: one line a task that arrives, to look at, to change, and to play again.

Columns: at_s, name, kind (batch or service), controller, replicas, cpu (such as 100m), memory (such as 0.3Gi), runs_s
(empty: for ever) and stated_s (what the task says of its run length; empty: nothing). What a table has no column for,
such as affinities, is not written.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from htas.model.pods import WorkKind
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units
from htas.model.resources import Resources
from htas.ports import HTASError
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload

COLUMNS = ("at_s", "name", "kind", "controller", "replicas", "cpu", "memory", "runs_s", "stated_s")


class TableError(HTASError):
    """A table that holds no workload."""


def write_workload(work: Workload, path: Path) -> None:
    """Write a workload's arrivals; a file of that name is replaced."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_line(arrival) for arrival in work.arrivals)


def _line(arrival: Arrival) -> list[object]:
    task = arrival.task
    return [
        repr(arrival.at_s),
        task.name,
        task.kind.value,
        arrival.controller.value,
        arrival.replicas,
        f"{task.requests.cpu_m}m",
        task.requests.memory_bytes,
        "" if task.runs_s is None else repr(task.runs_s),
        "" if task.stated_s is None else repr(task.stated_s),
    ]


def read_workload(path: Path) -> Workload:
    """The workload of a table; raises TableError with the line that is wrong."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise TableError(f"{path}:1: not a workload: no column {', '.join(missing)}")
            arrivals = [_arrival(row, f"{path}:{number}") for number, row in enumerate(reader, 2)]
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path}: cannot be read: {error}") from error
    if not arrivals:
        raise TableError(f"{path}: holds no tasks")
    return Workload(path.stem, tuple(sorted(arrivals, key=lambda arrival: (arrival.at_s, arrival.task.name))))


def _arrival(row: Mapping[str, str], where: str) -> Arrival:
    try:
        kind = WorkKind(row["kind"])
        runs_s, stated_s = _seconds(row["runs_s"]), _seconds(row["stated_s"])
        at_s, replicas = float(row["at_s"]), int(row["replicas"])
        controller = ControllerKind(row["controller"])
        cpu_m, memory = to_milli(parse_quantity(row["cpu"])), to_units(parse_quantity(row["memory"]))
    except (ValueError, TypeError, QuantityError) as error:
        raise TableError(f"{where}: {error}") from None
    if not (math.isfinite(at_s) and at_s >= 0 and replicas >= 1):
        raise TableError(f"{where}: at_s is counted from the start, and replicas from 1")
    if kind is WorkKind.BATCH and runs_s is None:
        raise TableError(f"{where}: a batch task needs runs_s, the seconds it really runs")
    task = Task(row["name"], Resources(cpu_m, memory, 0, 1), kind, runs_s=runs_s, stated_s=stated_s)
    return Arrival(at_s, task, controller, replicas)


def _seconds(text: str) -> float | None:
    if not text:
        return None
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{text} is no number of seconds to run")
    return seconds
