"""The document's Figure 3 and Table 1 from answers in a file, and all of them as CSV."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

Line = dict[str, object]
BETTER_OPTIMAL, BETTER, DEFAULT_OPTIMAL = "Better & Optimal", "Better", "Default was Optimal"
NO_GAIN, FAILURE = "No gain", "Failure"
CATEGORIES = {
    BETTER_OPTIMAL: "tab:green",
    BETTER: "tab:orange",
    DEFAULT_OPTIMAL: "tab:blue",
    NO_GAIN: "gold",
    FAILURE: "tab:gray",
}


def category(line: Line) -> str:
    """The document's categories, by pods placed of each priority; optimal means that no more can be placed."""
    before, after = line["before"], line["after"]
    if after is None or after < before:  # type: ignore[operator]  # lists of counts, compared from the highest tier
        return FAILURE
    if after == before:
        return DEFAULT_OPTIMAL if line["is_placing_proven"] else NO_GAIN
    return BETTER_OPTIMAL if line["is_placing_proven"] else BETTER


def report(lines: list[Line], out: Path) -> None:
    """Prints shares by formulation and timeout; writes the CSV, the figure and the table beside the file."""
    _csv(lines, out.with_suffix(".csv"))
    for formulation, timeout in sorted({(line["formulation"], line["timeout"]) for line in lines}, key=str):
        of_run = [line for line in lines if (line["formulation"], line["timeout"]) == (formulation, timeout)]
        counts = Counter(map(category, of_run))
        shares = ", ".join(f"{name} {counts[name] / len(of_run):.1%}" for name in CATEGORIES)
        proven = counts[BETTER_OPTIMAL] + counts[DEFAULT_OPTIMAL]
        both = sum(bool(line["is_placing_proven"] and line["is_staying_proven"]) for line in of_run)
        longest = max(float(str(line["seconds"])) for line in of_run)
        print(f"{formulation} at {timeout:g} s, {len(of_run)} instances: {shares}")
        print(
            f"  proven in placing {proven / len(of_run):.1%}, and in staying {both / len(of_run):.1%}; "
            f"longest {longest:.2f} s"
        )
        _hardest(of_run)
    print(_table(lines))
    out.with_suffix(".table.txt").write_text(_table(lines))
    _figure(lines, out.with_suffix(".png"))


def _hardest(lines: list[Line]) -> None:
    """Cells where less than all is proven, the worst first."""
    cells: dict[tuple[object, ...], list[bool]] = {}
    for line in lines:
        key = line["nodes"], line["pods_per_node"], line["priorities"], line["usage"]
        cells.setdefault(key, []).append(bool(line["is_placing_proven"]))
    worst = sorted((fmean(proven), key) for key, proven in cells.items() if not all(proven))
    if worst:
        print("  unproven:", "; ".join(f"{n}×{p}, {k} prio, {u:g}: {share:.0%}" for share, (n, p, k, u) in worst))


def _csv(lines: list[Line], path: Path) -> None:
    if not lines:
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*lines[0], "category"])
        writer.writeheader()
        writer.writerows({**line, "category": category(line)} for line in lines)


def _table(lines: Iterable[Line]) -> str:
    """As Table 1: four priorities, 10 s (or the longest run), mean duration and gains in utilisation."""
    lines = [line for line in lines if line["priorities"] == 4]
    rows = ["formulation  timeout  usage  pods/node  nodes  seconds  more cpu %  more memory %"]
    keys = sorted(
        {(x["formulation"], x["timeout"], x["usage"], x["pods_per_node"], x["nodes"]) for x in lines}, key=str
    )
    for key in keys:
        of_cell = [
            x for x in lines if (x["formulation"], x["timeout"], x["usage"], x["pods_per_node"], x["nodes"]) == key
        ]
        means = [fmean(float(str(x[name])) for x in of_cell) for name in ("seconds", "more_cpu", "more_memory")]
        formulation, timeout, usage, pods, nodes = key
        rows.append(
            f"{formulation!s:<12} {timeout:>7} {usage:>6} {pods:>10} {nodes:>6} "
            f"{means[0]:>8.2f} {means[1]:>11.2f} {means[2]:>14.2f}"
        )
    return "\n".join(rows) + "\n"


def _figure(lines: list[Line], path: Path) -> None:
    """As Figure 3: columns by priorities, rows by pods a node; bars by nodes, timeout and formulation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    priorities = sorted({line["priorities"] for line in lines}, key=str)
    densities = sorted({line["pods_per_node"] for line in lines}, key=str)
    figure, axes = pyplot.subplots(
        len(densities), len(priorities), figsize=(5 * len(priorities), 3.6 * len(densities)), squeeze=False, sharey=True
    )
    for row, density in enumerate(densities):
        for column, priority in enumerate(priorities):
            part = [x for x in lines if x["pods_per_node"] == density and x["priorities"] == priority]
            _bars(axes[row][column], part)
            axes[row][column].set_title(f"{priority} priorities, {density} pods a node", fontsize=9)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in CATEGORIES.values()]
    figure.legend(handles, list(CATEGORIES), loc="lower center", ncol=5, fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=120)


def _bars(axes, lines: list[Line]) -> None:  # type: ignore[no-untyped-def]  # matplotlib's axes
    groups = sorted({(x["nodes"], x["timeout"], x["formulation"]) for x in lines})  # type: ignore[type-var]
    labels = []
    for position, group in enumerate(groups):
        part = [category(x) for x in lines if (x["nodes"], x["timeout"], x["formulation"]) == group]
        bottom = 0.0
        for name, colour in CATEGORIES.items():
            height = 100 * part.count(name) / len(part)
            axes.bar(position, height, bottom=bottom, color=colour, width=0.85)
            bottom += height
        labels.append(f"{group[0]} n, {group[1]:g} s\n{group[2]}")
    axes.set_xticks(range(len(groups)), labels, fontsize=6, rotation=90)
    axes.set_ylabel("% of instances", fontsize=8)
