"""A radar chart: one axis for each service, one outline for each contender."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from htas.experiments.edge.scenarios import SERVICES
from htas.experiments.report.edge.looks import look_of, title_of

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
