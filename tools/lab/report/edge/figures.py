"""Figures of the experiments on the edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.lab.edge.contenders import BASELINES, K8S, KUBEDSM, TARGETS, VARIANTS
from tools.lab.edge.results import EdgeResults
from tools.lab.edge.scenarios import SCENARIOS, SERVICES
from tools.lab.report.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Dashes,
    legend_above,
    new_figure,
    save,
    styled,
)
from tools.lab.report.edge import statistics
from tools.lab.report.edge.statistics import Measure, played, variants_of

# What contenders look like and are called in the edge report: colour, dashes and marker tell them apart.


@dataclass(frozen=True, slots=True)
class EdgeLook:
    colour: str
    marker: str
    dashes: Dashes = None
    width: float = 1.6

    @property
    def line(self) -> dict[str, Any]:
        """How its line is drawn."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.dashes or "-",
            "linewidth": self.width,
            "markersize": 5.5,
            "markeredgecolor": "white",
            "markeredgewidth": 0.7,
        }


LOOKS: Mapping[str, EdgeLook] = {
    KUBEDSM: EdgeLook(BLUE, "o", None, 2.6),
    "k8s": EdgeLook(ORANGE, "s", (0, (6.0, 2.0))),
    "bef": EdgeLook(GREEN, "^", (0, (6.0, 1.5, 1.5, 1.5))),
    "sef": EdgeLook(PURPLE, "v", (0, (1.2, 1.2))),
    "random": EdgeLook(GREY, "D", (0, (3.0, 1.5))),
    "cf": EdgeLook(VERMILION, "X", (0, (9.0, 2.0, 2.0, 2.0))),
    "kubedsm/mid-mig": EdgeLook(SKY, "P", (0, (4.0, 1.2))),
    "kubedsm/no-cloud-offload": EdgeLook(PURPLE, "v", (0, (1.2, 1.2))),
    "kubedsm/no-edge-mig": EdgeLook(GREEN, "^", (0, (6.0, 1.5, 1.5, 1.5))),
}
BOUND: Mapping[str, Any] = {"color": "#999999", "linewidth": 6.0, "alpha": 0.45, "solid_capstyle": "round", "zorder": 5}
TARGET_COLOUR = "#C00000"


def look_of(policy: str) -> EdgeLook:
    return LOOKS.get(policy, EdgeLook(GREY, "."))


def title_of(policy: str, *, is_target: bool = False) -> str:
    """Its title; among sets of targets KubeDSM by itself is the one where all are 1."""
    whole, _, part = policy.partition("/")
    if part:
        return VARIANTS[part][0] if part in VARIANTS else TARGETS[part][0]
    if whole == KUBEDSM:
        return "All 1" if is_target else "KubeDSM"
    return BASELINES[whole][0]


# A radar chart: one axis for each service, one outline for each contender.

RINGS = (25, 50, 75, 100)


def radar(axes: Any, values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Draw outlines of percentages, A at the top and on clockwise; returns what the legend shows, by title.

    The first contender's is filled, so that it stands out where outlines cross.
    """
    angles = [2 * math.pi * i / len(SERVICES) for i in range(len(SERVICES))]
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 100)
    axes.set_yticks(RINGS, ["", "", "", "100"], fontsize=8, color="#777777")
    axes.set_rlabel_position(45)
    axes.set_xticks(angles, [name.upper() for name in SERVICES], fontsize=11, fontweight="bold")
    axes.tick_params(axis="x", pad=1)
    axes.grid(True, color="#d5d5d5", linewidth=0.7)
    axes.spines["polar"].set_color("#bbbbbb")
    handles: dict[str, Any] = {}
    for depth, (policy, ratios) in enumerate(values.items()):
        look, closed = look_of(policy), [*ratios, ratios[0]]
        (handles[title_of(policy)],) = axes.plot([*angles, angles[0]], closed, **look.line, zorder=40 - depth)
        if depth == 0:
            axes.fill(angles, ratios, color=look.colour, alpha=0.12, zorder=1)
    return handles


# Figures 4 to 11 of KubeDSM (section 6.3), drawn from an experiment's results.

RATIO, PODS = "Edge ratio (%)", "Pods on the edge (%)"
DEVIATION = "Standard deviation across services (points)"
AXES: Mapping[str, str] = {"mean": "Mean load, as a share of the edge", "deviation": "Standard deviation of the load"}

APART = 0.005
"""Between the points of two contenders, of 0.1 between two scenarios."""


def draw_edge(results: EdgeResults, folder: Path) -> list[Path]:
    """Write every figure that there are runs for as NAME.svg and NAME.png; returns the PNG files.

    Raises NoMatplotlibError and OSError.
    """
    with styled():
        drawn = ((name, draw(results)) for name, draw in FIGURES.items())
        return [save(figure, folder / name) for name, figure in drawn if figure is not None]


def compared(results: EdgeResults) -> list[str]:
    """KubeDSM and the baselines, as far as they were played."""
    return [name for name in (KUBEDSM, *BASELINES) if name in results.policies]


def _of_scenario(results: EdgeResults, policy: str, scenario: str, measure: Measure) -> float:
    found = statistics.over_sweep(results, policy, (scenario,), measure)
    return found.mean if found is not None else float("nan")


# Lines over a sweep.


def lines_over(
    sweep: str, measure: Measure, label: str, height: float, most: float | None = None
) -> Callable[[EdgeResults], Any]:
    """Figures 4, 5, 8 and 9; with `most` the scale ends there, and the most that is possible is drawn."""

    def draw(results: EdgeResults) -> Any:
        if not played(results, sweep):
            return None
        figure = new_figure(9.4, height)
        axes = figure.subplots()
        handles = _lines(axes, results, sweep, compared(results), measure, with_bound=most is not None)
        axes.set_ylabel(label)
        axes.set_ylim(0, most)
        _legend(figure, handles)
        return figure

    return draw


def _legend(figure: Any, handles: Mapping[str, Any]) -> None:
    legend_above(figure, list(handles.values()), list(handles), columns=4)


def variants(results: EdgeResults) -> Any:
    """Figure 10: both sweeps side by side."""
    policies = [name for name in (*variants_of(results, tuple(VARIANTS)), K8S) if name in results.policies]
    sweeps = [sweep for sweep in AXES if played(results, sweep)]
    if len(policies) < 2 or not sweeps:
        return None
    figure = new_figure(10.0, 4.8)
    handles: dict[str, Any] = {}
    for i, (axes, sweep) in enumerate(
        zip(figure.subplots(1, len(sweeps), sharey=True, squeeze=False)[0], sweeps, strict=True)
    ):
        handles |= _lines(axes, results, sweep, policies, statistics.edge_ratio, with_bound=True, first_below=True)
        axes.set_title(f"({chr(97 + i)}) {'Deviation 0.4' if sweep == 'mean' else 'Mean 1.5'}")
        if i == 0:
            axes.set_ylabel(RATIO)
    axes.set_ylim(_floor_of(results, policies), 100)
    _legend(figure, handles)
    return figure


def _floor_of(results: EdgeResults, policies: Sequence[str]) -> float:
    """Where a scale begins that shows differences between variants: at the tens below all of them."""
    lowest = min(
        _of_scenario(results, name, each, statistics.edge_ratio)
        for name in policies
        for each in (*played(results, "mean"), *played(results, "deviation"))
    )
    return max(0.0, 10 * (lowest // 10))


def _lines(
    axes: Any,
    results: EdgeResults,
    sweep: str,
    policies: Sequence[str],
    measure: Measure,
    *,
    with_bound: bool = False,
    first_below: bool = False,
) -> dict[str, Any]:
    """A line for each contender with 95 % intervals; returns what the legend shows, by title.

    The first one's intervals are a band, the others' are whiskers, which many bands would hide; points stand side by
    side for them. The first lies above the others, or (`first_below`) under them, where they are nearly the same.
    """
    scenarios = played(results, sweep)
    places = [getattr(SCENARIOS[name], sweep) for name in scenarios]
    handles: dict[str, Any] = {}
    for depth, policy in enumerate(policies):
        look, height = look_of(policy), depth if first_below else len(policies) - depth
        found = [statistics.over_sweep(results, policy, (name,), measure) for name in scenarios]
        there = [(x, each) for x, each in zip(places, found, strict=True) if each is not None]
        xs, means = [x + _aside(depth) for x, _ in there], [each.mean for _, each in there]
        halves = [each.half_width or 0.0 for _, each in there]
        if depth == 0:
            low, high = ([mean + sign * half for mean, half in zip(means, halves, strict=True)] for sign in (-1, 1))
            axes.fill_between(xs, low, high, color=look.colour, alpha=0.15, linewidth=0, zorder=6)
        else:
            axes.errorbar(xs, means, halves, fmt="none", ecolor=look.colour, elinewidth=1.0, alpha=0.55, zorder=8)
        (handles[title_of(policy)],) = axes.plot(xs, means, **look.line, zorder=20 + height)
    if with_bound:
        most = [_of_scenario(results, policies[0], name, statistics.bound) for name in scenarios]
        (handles["Most that is possible"],) = axes.plot(places, most, **BOUND)
    axes.set_xticks(places, [f"{place:.1f}" for place in places])
    axes.set_xlabel(AXES[sweep])
    axes.margins(x=0.04)
    return handles


def _aside(depth: int) -> float:
    """How far beside its scenario a contender's point stands: the first at its place, others left and right of it."""
    return APART * -(-depth // 2) * (-1 if depth % 2 else 1)


# Radars: a panel for each scenario, an axis for each service.


def radars_over(sweep: str) -> Callable[[EdgeResults], Any]:
    """Figures 6 and 7."""

    def draw(results: EdgeResults) -> Any:
        scenarios = played(results, sweep)
        if not scenarios:
            return None
        columns, policies = min(3, len(scenarios)), compared(results)
        rows = -(-len(scenarios) // columns)
        figure = new_figure(10.0, 0.9 + 3.5 * rows)
        panels = figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": "polar"}).flatten()
        handles: dict[str, Any] = {}
        for i, (axes, scenario) in enumerate(zip(panels, scenarios, strict=False)):
            values = {policy: _by_service(results, policy, scenario) for policy in policies}
            handles |= radar(axes, values)
            axes.set_title(f"({chr(97 + i)}) {scenario.replace('_', ' ± ')}", loc="center", pad=14)
        for axes in panels[len(scenarios) :]:
            axes.set_visible(False)
        _legend(figure, handles)
        return figure

    return draw


def _by_service(results: EdgeResults, policy: str, scenario: str) -> list[float]:
    return [_of_scenario(results, policy, scenario, statistics.of_service(service)) for service in SERVICES]


# Bars: services under other targets.


def targets(results: EdgeResults) -> Any:
    """Figure 11: for each set of targets a group of bars, one a service; a mark where its target is."""
    policies = variants_of(results, tuple(TARGETS))
    if len(policies) < 2:
        return None
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = new_figure(10.0, 4.8)
    axes = figure.subplots()
    width = 0.8 / len(SERVICES)
    colours, hatches = ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), ("", "////", "....", "xxxx")
    for place, policy in enumerate(policies):
        stated = TARGETS[policy.partition("/")[2]][1] if "/" in policy else {}
        for i, service in enumerate(SERVICES):
            found = statistics.over_sweep(results, policy, results.scenarios, statistics.of_service(service))
            if found is None:
                continue
            x, target = place - 0.4 + (i + 0.5) * width, 100 * stated.get(service, 1.0)
            axes.bar(x, found.mean, width * 0.9, color=colours[i], hatch=hatches[i], edgecolor="white", linewidth=0)
            axes.errorbar(x, found.mean, yerr=found.half_width or 0.0, color="#222222", capsize=2.5, linewidth=1.0)
            axes.plot([x - 0.45 * width, x + 0.45 * width], [target, target], color=TARGET_COLOUR, linewidth=2.4)
            plate = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
            axes.annotate(f"{found.mean:.0f}", (x, 2.5), ha="center", fontsize=9.5, bbox=plate)
    axes.set_xticks(range(len(policies)), [title_of(name, is_target=True) for name in policies], fontsize=11)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(PODS)
    axes.set_ylim(0, 103)
    patches = [
        Patch(facecolor=colours[i], hatch=hatches[i], edgecolor="white", linewidth=0) for i in range(len(SERVICES))
    ]
    mark = Line2D([], [], color=TARGET_COLOUR, linewidth=2.4)
    legend_above(figure, [*patches, mark], [*(name.upper() for name in SERVICES), "target"], columns=5)
    return figure


FIGURES: Mapping[str, Callable[[EdgeResults], Any]] = {
    "figure-4-edge-ratio-by-mean": lines_over("mean", statistics.edge_ratio, RATIO, 5.4, 100),
    "figure-5-edge-ratio-by-deviation": lines_over("deviation", statistics.edge_ratio, RATIO, 5.4, 100),
    "figure-6-services-by-mean": radars_over("mean"),
    "figure-7-services-by-deviation": radars_over("deviation"),
    "figure-8-balance-by-mean": lines_over("mean", statistics.deviation, DEVIATION, 5.0),
    "figure-9-balance-by-deviation": lines_over("deviation", statistics.deviation, DEVIATION, 5.0),
    "figure-10-variants": variants,
    "figure-11-targets": targets,
}
CAPTIONS: Mapping[str, str] = {
    "figure-4-edge-ratio-by-mean": "Edge ratio over the load's mean, at a deviation of 0.4: the share of a service's"
    " pods on the edge, mean over services; band and whiskers are 95 % intervals over seeds. Grey: the most that any"
    " scheduler could have had of the same pods.",
    "figure-5-edge-ratio-by-deviation": "The same over the load's standard deviation, at a mean of 1.5.",
    "figure-6-services-by-mean": "Share of each service's pods on the edge, from 0 in the middle to 100 %; each panel"
    " is a scenario, mean ± deviation of its load.",
    "figure-7-services-by-deviation": "The same for the scenarios of Figure 5.",
    "figure-8-balance-by-mean": "Standard deviation of the four services' shares, over the load's mean.",
    "figure-9-balance-by-deviation": "The same over the load's standard deviation.",
    "figure-10-variants": "KubeDSM with fewer or other moves; the scale does not begin at 0.",
    "figure-11-targets": "Share of each service's pods on the edge where services have other targets (red marks), over"
    " all scenarios; whiskers are 95 % intervals over seeds.",
}
