"""The document's Figures 3 and 4 and its Table 1 from answers in a file: shares as text, figures beside it, a CSV."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

from tools.bench.priority_categories import (
    BETTER,
    BETTER_OPTIMAL,
    CATEGORIES,
    DEFAULT_OPTIMAL,
    NO_CALL,
    Line,
    category,
)
from tools.bench.priority_figures import draw

GROUPS: dict[str, Callable[[Line], object]] = {
    "all": lambda line: "",
    "usage": lambda line: f"{_number(line, 'usage'):.0%}",
    "priorities": lambda line: line["priorities"],
    "nodes": lambda line: line["nodes"],
    "pods a node": lambda line: line["pods_per_node"],
}


def report(lines: list[Line], out: Path) -> None:
    """Prints shares by engine and timeout; writes them and a CSV beside the file, figures in a folder of its name."""
    if not lines:
        raise SystemExit(f"{out}: nothing was played; `python -m tools.bench.priority run --out {out}` does")
    _csv(lines, out.with_suffix(".csv"))
    told = ["# Shares"]
    for name, key in GROUPS.items():
        told += ["", *_shares(lines, name, key)]
    told += ["", "# Unproven", *_unproven(lines), "", "# As Table 1: four priorities", *_table(lines)]
    print("\n".join(told))
    out.with_suffix(".md").write_text("\n".join(told) + "\n")
    folder = out.with_suffix("")
    folder.mkdir(exist_ok=True)
    print("figures:", ", ".join(map(str, draw(lines, folder))))


def _runs(lines: Iterable[Line]) -> list[tuple[str, float]]:
    return sorted({(str(line["formulation"]), _number(line, "timeout")) for line in lines}, key=lambda run: run[::-1])


def _shares(lines: Sequence[Line], name: str, key: Callable[[Line], object]) -> list[str]:
    """A row for each engine, timeout and group: categories of all instances, and of those that called the optimiser."""
    head = ["engine", "timeout", name, "instances", *CATEGORIES, *_OF_CALLS]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for engine, timeout in _runs(lines):
        run = [x for x in lines if (x["formulation"], x["timeout"]) == (engine, timeout)]
        for group in sorted({str(key(line)) for line in run}, key=lambda text: float(text.rstrip("%") or 0)):
            part = [line for line in run if str(key(line)) == group]
            shares = [_share(part, each) for each in CATEGORIES]
            cells = [engine, f"{timeout:g} s", group, str(len(part)), *shares, *_of_calls(part)]
            rows.append("| " + " | ".join(cells) + " |")
    return rows


_OF_CALLS = (
    *("calls", "better", "default optimal", "proven", "moves too"),
    *("mean CPU", "median wall", "longest CPU"),
)


def _share(lines: Sequence[Line], *categories: str) -> str:
    return _mean(lines, [category(line) in categories for line in lines])


def _mean(lines: Sequence[Line], is_so: Sequence[bool]) -> str:
    """Every cell of the grid weighs the same, however many of its instances were solved."""
    size = Counter(map(_cell, lines))
    so = sum(1 / size[_cell(line)] for line, each in zip(lines, is_so, strict=True) if each)
    return f"{so / len(size):.1%}"


def _cell(line: Line) -> tuple[object, ...]:
    return line["nodes"], line["pods_per_node"], line["priorities"], line["usage"]


def _of_calls(part: Sequence[Line]) -> list[str]:
    """Of the instances that the default scheduler left pods unplaced in: how many, better, proven; seconds."""
    called = [line for line in part if category(line) != NO_CALL]
    if not called:
        return ["0"] + ["–"] * (len(_OF_CALLS) - 1)
    cpu = [_number(line, "cpu_seconds") for line in called]
    wall = [_number(line, "seconds") for line in called]
    return [
        str(len(called)),
        _share(called, BETTER_OPTIMAL, BETTER),
        _share(called, DEFAULT_OPTIMAL),
        _mean(called, [bool(line["is_placing_proven"]) for line in called]),
        _mean(called, [bool(line["is_placing_proven"] and line["is_staying_proven"]) for line in called]),
        f"{fmean(cpu):.2f} s",
        f"{median(wall):.2f} s",
        f"{max(cpu):.2f} s",
    ]


def _unproven(lines: Sequence[Line]) -> list[str]:
    """Cells where less than all is proven, the worst first."""
    told = []
    for engine, timeout in _runs(lines):
        cells: dict[tuple[object, ...], list[bool]] = {}
        for line in lines:
            if (line["formulation"], line["timeout"]) == (engine, timeout):
                cells.setdefault(_cell(line), []).append(bool(line["is_placing_proven"]))
        worst = sorted((fmean(proven), key) for key, proven in cells.items() if not all(proven))
        listed = "; ".join(f"{n}x{p}, {k} prio, {u:g}: {share:.0%}" for share, (n, p, k, u) in worst[:20])
        told.append(f"{engine} at {timeout:g} s: {listed or 'none'}")
    return told


def _csv(lines: list[Line], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*lines[0], "category"])
        writer.writeheader()
        writer.writerows({**line, "category": category(line)} for line in lines)


def _table(lines: Iterable[Line]) -> list[str]:
    """Mean CPU seconds and gains in utilisation, of instances that called the optimiser."""
    lines = [line for line in lines if line["priorities"] == 4 and category(line) != NO_CALL]
    names = "timeout", "usage", "pods_per_node", "nodes"
    keys = sorted({(str(x["formulation"]), *(_number(x, name) for name in names)) for x in lines})
    rows = ["engine         timeout  usage  pods/node  nodes  CPU s  more cpu %  more memory %"]
    for engine, *rest in keys:
        part = [x for x in lines if x["formulation"] == engine and [_number(x, name) for name in names] == rest]
        seconds, cpu, memory = (
            fmean(_number(x, name) for x in part) for name in ("cpu_seconds", "more_cpu", "more_memory")
        )
        timeout, usage, pods, nodes = rest
        cell = f"{engine:<14} {timeout:>7g} {usage:>6g} {pods:>10g} {nodes:>6g}"
        rows.append(f"{cell} {seconds:>6.2f} {cpu:>11.2f} {memory:>14.2f}")
    return rows


def _number(line: Line, name: str) -> float:
    return float(str(line[name]))
