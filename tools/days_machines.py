"""The life of every machine of a day, as a picture: from its purchase to its return, each flavour in its colour.

Drawn from the decisions that the pages show, so it is the day that was played and no other.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure

from htas.web.seat import Seat

COLOURS = {
    "t3.xsmall": "#9fc5d6",
    "m3.xsmall": "#5fa7c3",
    "m3.small": "#2b7fa6",
    "m1.medium": "#56a96f",
    "m1.large": "#b57708",
}
OTHERS = "#8a4fc7"


@dataclass(frozen=True, slots=True)
class Life:
    """A machine, in hours of the day; `until` None: it is still there."""

    flavour: str
    since: float
    until: float | None


def lives(seat: Seat) -> list[Life]:
    """Every machine that the decisions tell of, in the order of purchase."""
    decisions = seat.chronicle.decisions()
    begins = min(each.at for each in decisions)
    gone = {each.claim: each.at for each in decisions if each.kind == "delete" and each.status == "done"}
    return [
        Life(
            each.flavour, (each.at - begins) / 3600, (gone[each.claim] - begins) / 3600 if each.claim in gone else None
        )
        for each in decisions
        if each.kind == "launch" and each.status == "done"
    ]


def machines_svg(seat: Seat) -> str:
    """A bar for each machine under the work that it was bought for: pods that run, over the same hours."""
    matplotlib.rcParams["svg.hashsalt"] = "htas"  # the same day, the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["font.family"] = "DejaVu Sans"
    points = seat.chronicle.points()
    begins = points[0].at
    hours = [(point.at - begins) / 3600 for point in points]
    figure = Figure(figsize=(10, 5.6))
    work, bars, money = figure.subplots(3, 1, sharex=True, height_ratios=[1, 2.6, 1])
    work.fill_between(hours, [point.pods + point.waiting for point in points], color="#dfe3ea", label="pods that wait")
    work.fill_between(hours, [point.pods for point in points], color="#12836b", label="pods that run")
    work.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    found = lives(seat)
    end = hours[-1]
    for row, life in enumerate(found):
        until = life.until if life.until is not None else end
        bars.barh(row, until - life.since, left=life.since, height=1.0, color=COLOURS.get(life.flavour, OTHERS))
    for flavour in sorted({life.flavour for life in found}):
        bars.barh(0, 0, color=COLOURS.get(flavour, OTHERS), label=flavour)
    bars.set_ylabel(f"{len(found)} machines, in the\norder of their purchase", fontsize=8)
    bars.invert_yaxis()
    bars.legend(loc="upper right", frameon=False, fontsize=8)
    money.plot(hours, [point.nanos_per_hour / 1e9 for point in points], color="#0e5a70", label="price an hour")
    money.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    money.set_xlabel("hours of the day", fontsize=8)
    for axes in (work, bars, money):
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0, end)
    figure.tight_layout(h_pad=0.4)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
