"""Workloads as CSV: one line a task that arrives, to look at, to change, and to play again.

Columns: at_s, name, kind (batch or service), controller, replicas, cpu (such as 100m), memory (such as 0.3Gi), runs_s
(empty: for ever) and stated_s (what the task says of its run length; empty: nothing). What a table has no column for,
such as affinities, is not written.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from htas.model.pods import WorkKind
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units
from htas.model.resources import Resources
from htas.ports import GivenError
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload

COLUMNS = ("at_s", "name", "kind", "controller", "replicas", "cpu", "memory", "runs_s", "stated_s")
LONGEST_S = 3650 * 86_400.0
MOST_REPLICAS = 10_000
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")  # a pod's name adds up to 13 signs to it, of 63
_Kind = TypeVar("_Kind", bound=StrEnum)


class TableError(GivenError):
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
    """The workload of a table; raises TableError with every mistake, a line each, by line and column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # Excel begins its UTF-8 with a byte order mark
            reader = csv.reader(file)
            header = next(reader, [])
            _check_header(header, path)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TableError(f"{path}: cannot be read: {why}") from error
    mistakes: list[str] = []
    arrivals = [_arrival(cells, header, f"{path}:{number}", mistakes) for number, cells in lines]
    if mistakes:
        raise TableError("\n".join(mistakes))
    if not arrivals:
        raise TableError(f"{path}: holds no tasks")
    sound = [arrival for arrival in arrivals if arrival is not None]
    return Workload(path.stem, tuple(sorted(sound, key=lambda arrival: (arrival.at_s, arrival.task.name))))


def _check_header(header: Sequence[str], path: Path) -> None:
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise TableError(f"{path}:1: not a workload: no column {', '.join(missing)}")
    surplus = [column or "without a name" for column in header if column not in COLUMNS]
    if surplus or len(header) > len(COLUMNS):
        what = ", ".join(surplus) or "named twice"
        raise TableError(f"{path}:1: column {what} means nothing here; remove it, there are {', '.join(COLUMNS)}")


def _arrival(cells: Sequence[str], header: Sequence[str], where: str, mistakes: list[str]) -> Arrival | None:
    """The arrival of a line; None, and its mistakes noted, where it makes no sense."""
    if len(cells) != len(header):
        mistakes.append(
            f"{where}: has {len(cells)} cells, and the head line {len(header)}; write an empty one for nothing"
        )
        return None
    row, values, before = dict(zip(header, cells, strict=True)), dict[str, Any](), len(mistakes)
    for column, read in _READ.items():
        try:
            values[column] = read(row[column].strip())
        except (ValueError, QuantityError) as error:
            mistakes.append(f"{where}: {column}: {error}")
    if values.get("kind") is WorkKind.BATCH and "runs_s" in values and values["runs_s"] is None:
        mistakes.append(f"{where}: runs_s: a batch task needs runs_s, the seconds it really runs")
    if len(mistakes) > before:
        return None
    requests = Resources(values["cpu"], values["memory"], 0, 1)
    task = Task(values["name"], requests, values["kind"], runs_s=values["runs_s"], stated_s=values["stated_s"])
    return Arrival(values["at_s"], task, values["controller"], values["replicas"])


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name; write up to 50 of a-z 0-9 - that begin and end with a letter or digit")
    return text


def _instant(text: str) -> float:
    at_s = float(text)
    if not 0 <= at_s <= LONGEST_S:
        raise ValueError(f"{text} is not counted from the start, 0 to {LONGEST_S:.0f} (ten years)")
    return at_s


def _seconds(text: str) -> float | None:
    if not text:
        return None
    seconds = float(text)
    if not 0 < seconds <= LONGEST_S:
        raise ValueError(f"{text} is no number of seconds to run, above 0 to {LONGEST_S:.0f} (ten years)")
    return seconds


def _replicas(text: str) -> int:
    replicas = int(text)
    if not 1 <= replicas <= MOST_REPLICAS:
        raise ValueError(f"{text}: replicas from 1 to {MOST_REPLICAS}")
    return replicas


def _one_of(kind: type[_Kind]) -> Callable[[str], _Kind]:
    def read(text: str) -> _Kind:
        if text not in list(kind):
            raise ValueError(f"found {text!r}; write {', '.join(kind)}")
        return kind(text)

    return read


def _requested(units: Callable[[Fraction], int]) -> Callable[[str], int]:
    def read(text: str) -> int:
        amount = units(parse_quantity(text))
        if amount <= 0:
            raise ValueError(f"{text} asks for nothing; write more than 0")
        return amount

    return read


_READ: Mapping[str, Callable[[str], Any]] = {
    "at_s": _instant,
    "name": _name,
    "kind": _one_of(WorkKind),
    "controller": _one_of(ControllerKind),
    "replicas": _replicas,
    "cpu": _requested(to_milli),
    "memory": _requested(to_units),
    "runs_s": _seconds,
    "stated_s": _seconds,
}
