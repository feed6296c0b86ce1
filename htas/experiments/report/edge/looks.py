"""What contenders look like and are called in the edge report: colour, dashes and marker tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from htas.experiments.edge.contenders import BASELINES, KUBEDSM, TARGETS, VARIANTS
from htas.experiments.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Dashes


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
