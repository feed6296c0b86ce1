"""Figures 3 to 8 of the HTAS paper (section 6.3), drawn from an experiment's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.lab.report.drawing import legend_above, look_of, new_figure, save, styled
from tools.lab.report.statistics import over_time, smoothed, so_far, spread
from tools.lab.report.titles import pattern_title, policy_title
from tools.lab.results import Results, RunResult

BAR_WIDTH = 0.86
"""Of the space between two patterns: what is left parts them."""

QUIET = "#666666"

Curve = Callable[[Sequence[RunResult]], tuple[list[float], list[float]]]
"""(minutes, values) of the runs of one policy on one pattern."""


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Write every figure as NAME.svg and NAME.png; returns the PNG files. Raises NoMatplotlibError and OSError."""
    with styled():
        return [save(draw(results), folder / name) for name, draw in FIGURES.items()]


def cost_and_scheduling_time(results: Results) -> Any:
    figure = new_figure(10.0, 7.4)
    above, below = figure.subplots(2, 1, sharex=True)
    _bars(above, results, lambda run: float(run.cost), f"Total cost ({results.currency})")
    _bars(below, results, lambda run: run.mean_scheduling_s, "Mean scheduling time (s)")
    above.set_title("(a) What the work cost")
    below.set_title("(b) From a task's submission to its first moment of running")
    _bar_legend(figure, above, results)
    return figure


def utilisation(results: Results) -> Any:
    def percent(runs: Sequence[RunResult]) -> tuple[list[float], list[float]]:
        minutes, cpu = over_time(runs, "cpu_utilization")
        _, memory = over_time(runs, "memory_utilization")
        return minutes, smoothed([50.0 * (a + b) for a, b in zip(cpu, memory, strict=True)])

    return _panels(results, percent, "Utilisation (%)", top=102.0)


def active_nodes(results: Results) -> Any:
    return _panels(results, lambda runs: over_time(runs, "nodes"), "Ready nodes")


def migrations(results: Results) -> Any:
    return _panels(
        results, lambda runs: so_far(runs, "migrated_at_s"), "Tasks moved so far", nothing="no task was moved"
    )


def deprovisionings(results: Results) -> Any:
    def given_back(runs: Sequence[RunResult]) -> tuple[list[float], list[float]]:
        return so_far(runs, "deprovisioned_at_s")

    nothing = "no node was drained by moving tasks"
    return _panels(results, given_back, "Nodes deleted so far", nothing=nothing)


def migration_overhead(results: Results) -> Any:
    """T = C ÷ B + K of each move (paper 5.3), and what a policy adds: progress lost, or a machine waited for."""
    figure = new_figure(10.0, 4.8)
    axes = figure.subplots()
    label = "Mean overhead of a move (s)"
    _bars(axes, results, lambda run: run.mean_migration_s if run.migrations else None, label, with_figures=True)
    for place, pattern in enumerate(results.patterns):
        if not any(run.migrations for policy in results.policies for run in results.of(policy, pattern)):
            axes.text(place, 0.5, "no task\nwas moved", transform=axes.get_xaxis_transform(), ha="center", color=QUIET)
    _bar_legend(figure, axes, results)
    return figure


FIGURES: Mapping[str, Callable[[Results], Any]] = {
    "figure-3-cost-and-scheduling-time": cost_and_scheduling_time,
    "figure-4-utilisation": utilisation,
    "figure-5-nodes": active_nodes,
    "figure-6-migrations": migrations,
    "figure-7-deprovisioning": deprovisionings,
    "figure-8-migration-overhead": migration_overhead,
}
CAPTIONS: Mapping[str, str] = {
    "figure-3-cost-and-scheduling-time": "Total cost and mean scheduling time; bars are means over seeds, whiskers"
    " the least and the most.",
    "figure-4-utilisation": "Requests of running work over what Ready nodes offer, mean of CPU and memory"
    " and over seeds; each point is the mean of two and a half minutes.",
    "figure-5-nodes": "Ready nodes over time, mean over seeds.",
    "figure-6-migrations": "Tasks moved from node to node until then, mean over seeds; a logarithmic scale above 1"
    " where policies differ by far.",
    "figure-7-deprovisioning": "Nodes deleted after their tasks had been moved, until then, mean over seeds; scales"
    " as in Figure 6.",
    "figure-8-migration-overhead": "What moving a task takes, T = C ÷ B + K, and what it runs in vain or waits for a"
    " machine; mean over seeds, whiskers the least and the most. No bar: no move.",
}


# Bars: a group for each pattern, in it a bar for each policy.


def _bars(
    axes: Any,
    results: Results,
    value: Callable[[RunResult], float | None],
    label: str,
    *,
    with_figures: bool = False,
) -> None:
    width = BAR_WIDTH / len(results.policies)
    for i, policy in enumerate(results.policies):
        look = look_of(policy, results.policies)
        for place, pattern in enumerate(results.patterns):
            found = [each for run in results.of(policy, pattern) if (each := value(run)) is not None]
            if not found:
                continue
            shown, x = spread(found), place - BAR_WIDTH / 2 + (i + 0.5) * width
            whiskers = [[shown.mean - shown.least], [shown.most - shown.mean]]
            axes.bar(x, shown.mean, width * 0.92, color=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0)
            axes.errorbar(x, shown.mean, yerr=whiskers, color="#222222", capsize=2.5, linewidth=1.0, capthick=1.0)
            if with_figures:
                above = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center", "fontsize": 8.5}
                axes.annotate(f"{shown.mean:.0f}", (x, shown.most), **above)
    axes.set_ylabel(label)
    axes.set_xticks(range(len(results.patterns)), [pattern_title(name) for name in results.patterns], fontsize=11)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.55, len(results.patterns) - 0.45)
    axes.margins(y=0.08)


def _bar_legend(figure: Any, axes: Any, results: Results) -> None:
    from matplotlib.patches import Patch

    looks = [look_of(policy, results.policies) for policy in results.policies]
    handles = [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0) for look in looks]
    legend_above(figure, handles, [policy_title(policy) for policy in results.policies])


# Curves: a panel for each pattern, in it a line for each policy.


def _panels(results: Results, curve: Curve, label: str, *, top: float | None = None, nothing: str = "") -> Any:
    columns = min(2, len(results.patterns))
    rows = -(-len(results.patterns) // columns)
    figure = new_figure(10.0, 0.8 + 3.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for i, (axes, pattern) in enumerate(zip(panels, results.patterns, strict=False)):
        ends = _lines(axes, results, pattern, curve)
        axes.set_title(f"({chr(97 + i)}) {pattern_title(pattern)}")
        axes.set_xlim(left=0)
        if nothing:
            _counted(axes, ends, nothing)
        else:
            axes.set_ylim(bottom=0, top=top)
            axes.locator_params(axis="y", integer=True)
    for axes in panels[len(results.patterns) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(results.patterns) - columns) : len(results.patterns)]:
        axes.set_xlabel("Minutes since the start")
    for axes in panels[::columns]:
        axes.set_ylabel(label)
    _line_legend(figure, results)
    return figure


def _lines(axes: Any, results: Results, pattern: str, curve: Curve) -> list[float]:
    """Draw them, the experiment's first policies on top; where each one ends."""
    ends = []
    for place, policy in reversed(list(enumerate(results.policies))):
        runs = results.of(policy, pattern)
        if not runs:
            continue
        minutes, values = curve(runs)
        look = look_of(policy, results.policies)
        axes.plot(
            minutes, values, color=look.colour, linestyle=look.dashes or "-", linewidth=look.width, zorder=9 - place
        )
        ends += values[-1:]
    return ends


FAR = 15
"""Where one policy counts so many times another's, the lesser one would lie on the axis: the scale is logarithmic."""


def _counted(axes: Any, ends: Sequence[float], nothing: str) -> None:
    """The scale of counts: from a little below 0, so that a line along it is seen."""
    some = [end for end in ends if end > 0]
    if not some:
        axes.set_ylim(-0.02, 1)
        axes.set_yticks([0])
        axes.text(0.5, 0.5, nothing, transform=axes.transAxes, ha="center", va="center", color=QUIET)
    elif max(some) > FAR * min(some):
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(-0.1, 1.6 * max(some))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(-0.02 * max(some), 1.06 * max(some))
        axes.locator_params(axis="y", integer=True)


def _line_legend(figure: Any, results: Results) -> None:
    from matplotlib.lines import Line2D

    looks = [look_of(policy, results.policies) for policy in results.policies]
    handles = [Line2D([], [], color=look.colour, linestyle=look.dashes or "-", linewidth=look.width) for look in looks]
    legend_above(figure, handles, [policy_title(policy) for policy in results.policies])
