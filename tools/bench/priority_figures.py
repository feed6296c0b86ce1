"""The document's Figures 3 and 4 from answers in a file, in HTAS's own colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.bench.priority_categories import (
    BETTER,
    BETTER_OPTIMAL,
    CATEGORIES,
    DEFAULT_OPTIMAL,
    FAILURE,
    NO_CALL,
    NO_GAIN,
    Line,
    category,
)
from tools.lab.report.drawing import BLUE, GREEN, GREY, ORANGE, legend_above, new_figure, save, styled

BAR_WIDTH = 0.84
"""Of the space between two groups: what is left parts them."""
COLOURS: Mapping[str, str] = {
    BETTER_OPTIMAL: GREEN,
    BETTER: ORANGE,
    DEFAULT_OPTIMAL: BLUE,
    NO_CALL: "#F0E442",
    NO_GAIN: "#CC79A7",
    FAILURE: GREY,
}
Group = tuple[str, Callable[[Line], object]]
"""What the x axis, or the bars of a group, are told apart by: its title, and its value in a line."""
NODES: Group = ("nodes", lambda line: line["nodes"])
USAGE: Group = ("requested of the cluster", lambda line: f"{float(str(line['usage'])):.0%}")


def draw(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Figure 3 for each engine by timeout and for each timeout by engine, Figure 4; returns the PNG files."""
    drawn = []
    with styled():
        for engine in sorted({str(line["formulation"]) for line in lines}):
            part = _at_every_timeout([line for line in lines if line["formulation"] == engine])
            count = len({line["seed"] for line in part})
            title = f"engine {engine}, {count} instances"
            drawn.append(
                save(_by_density(part, _timeouts(part), f"{title}, by timeout"), folder / f"figure-3-{engine}")
            )
            drawn.append(save(_by_usage(part, title), folder / f"figure-4-{engine}"))
        first = min(float(str(line["timeout"])) for line in lines)
        part = [line for line in lines if line["timeout"] == first]
        engines = _engines(part)
        title = f"{first:g} s; bars from left to right: {', '.join(engines)}"
        bars = {name[:2]: of_engine for name, of_engine in engines.items()}
        drawn.append(save(_by_density(part, bars, title), folder / "figure-3"))
    return drawn


def _at_every_timeout(lines: Sequence[Line]) -> list[Line]:
    """Those of instances that were solved at each: bars of other instances could not be compared."""
    solved: dict[object, set[object]] = {}
    for line in lines:
        solved.setdefault(line["seed"], set()).add(line["timeout"])
    most = max(map(len, solved.values()))
    return [line for line in lines if len(solved[line["seed"]]) == most]


def _timeouts(lines: Sequence[Line]) -> dict[str, list[Line]]:
    timeouts = sorted({float(str(line["timeout"])) for line in lines})
    return {f"{each:g} s": [line for line in lines if line["timeout"] == each] for each in timeouts}


def _engines(lines: Sequence[Line]) -> dict[str, list[Line]]:
    engines = sorted({str(line["formulation"]) for line in lines})
    return {each: [line for line in lines if line["formulation"] == each] for each in engines}


def _by_density(lines: Sequence[Line], bars: dict[str, list[Line]], title: str) -> Any:
    """As Figure 3: columns by priorities, rows by pods a node, all usages together."""
    priorities = sorted({int(str(line["priorities"])) for line in lines})
    densities = sorted({int(str(line["pods_per_node"])) for line in lines})
    figure = new_figure(3.7 * len(priorities), 2.9 * len(densities) + 0.6)
    panels = figure.subplots(len(densities), len(priorities), squeeze=False, sharex=True, sharey=True)
    for row, density in enumerate(densities):
        for column, priority in enumerate(priorities):

            def is_here(line: Line, density: int = density, priority: int = priority) -> bool:
                return line["pods_per_node"] == density and line["priorities"] == priority

            axes = panels[row][column]
            _stack(axes, {name: [x for x in part if is_here(x)] for name, part in bars.items()}, NODES)
            axes.set_title(f"{priority} {'priority' if priority == 1 else 'priorities'}, {density} pods a node")
            if column == 0:
                axes.set_ylabel("% of instances")
            if row == len(densities) - 1:
                axes.set_xlabel("nodes")
    _legend(figure, lines, title)
    return figure


def _by_usage(lines: Sequence[Line], title: str) -> Any:
    """As Figure 4: usage levels, here for every timeout and with all priorities and densities together."""
    timeouts = _timeouts(lines)
    figure = new_figure(max(7.0, 4.2 * len(timeouts) + 0.6), 3.8)
    panels = figure.subplots(1, len(timeouts), squeeze=False, sharey=True)[0]
    for axes, (name, part) in zip(panels, timeouts.items(), strict=True):
        sizes = sorted({int(str(line["nodes"])) for line in part})
        _stack(axes, {f"{size}": [line for line in part if line["nodes"] == size] for size in sizes}, USAGE)
        axes.set_title(f"{name}; bars: {', '.join(map(str, sizes))} nodes")
        axes.set_xlabel(USAGE[0])
    panels[0].set_ylabel("% of instances")
    _legend(figure, lines, title)
    return figure


def _stack(axes: Any, bars: dict[str, list[Line]], group: Group) -> None:
    """Groups side by side, in each a bar for every name, stacked by category, its name above it."""
    _, value = group
    groups = sorted({value(line) for part in bars.values() for line in part}, key=_size)
    width = BAR_WIDTH / len(bars)
    for place, of_group in enumerate(groups):
        for number, (name, part) in enumerate(bars.items()):
            found = [category(line) for line in part if value(line) == of_group]
            x, bottom = place + (number - (len(bars) - 1) / 2) * width, 0.0
            for each in CATEGORIES:
                height = 100 * found.count(each) / len(found) if found else 0.0
                axes.bar(x, height, width * 0.92, bottom=bottom, color=COLOURS[each], linewidth=0)
                bottom += height
            axes.text(x, 101.5, name, ha="center", va="bottom", fontsize=7, color="#444444")
    axes.set_xticks(range(len(groups)), list(map(str, groups)))
    axes.set_ylim(0, 110)
    axes.set_yticks(range(0, 101, 20))


def _size(value: object) -> float:
    return float(str(value).removesuffix("%"))


def _legend(figure: Any, lines: Sequence[Line], title: str) -> None:
    from matplotlib.patches import Patch

    there = set(map(category, lines))
    shown = [each for each in CATEGORIES if each in there]
    columns = 6 if figure.get_figwidth() > 9 else 3
    legend_above(figure, [Patch(facecolor=COLOURS[each]) for each in shown], shown, columns=columns)
    figure.supxlabel(title, fontsize=9, color="#444444")
