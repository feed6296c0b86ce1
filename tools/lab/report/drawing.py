"""How figures look: colours that the colour-blind tell apart, legible type, the same bytes for the same results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htas.ports import PermanentError


class NoMatplotlibError(PermanentError):
    """The extra that draws is not installed."""


Dashes = tuple[float, Sequence[float]] | None
"""Where in the pattern to begin, and the lengths of dashes and gaps in line widths; None: a whole line."""


@dataclass(frozen=True, slots=True)
class Look:
    """A policy's colour, and what tells it apart where colours do not: its dashes in lines and hatches in bars."""

    colour: str
    dashes: Dashes
    hatch: str
    width: float = 1.5


# Okabe and Ito's palette (Color Universal Design, 2008).
BLUE, SKY, ORANGE, VERMILION, GREEN, PURPLE, GREY = (
    "#0072B2",
    "#56B4E9",
    "#E69F00",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#5A5A5A",
)
NAVY, PALE = "#00304F", "#A9D6F5"
"""What is HTAS's is blue: these are its purchases by the cheapest mix."""
BROWN = "#7A4A1E"
"""HTAS as its paper prints it."""
LOOKS: Mapping[str, Look] = {
    "htas": Look(BLUE, None, "", 2.4),
    "htas-default": Look(SKY, None, "////", 2.0),
    "htas-mix": Look(NAVY, (0, (1.0, 1.0)), "++"),
    "htas-default-mix": Look(PALE, (0, (4.0, 1.0)), "oo"),
    "default-kubernetes": Look(ORANGE, (0, (6.0, 2.0)), "\\\\\\\\"),
    "cluster-autoscaler": Look(VERMILION, (0, (3.0, 1.5)), "...."),
    "coca": Look(GREEN, (0, (6.0, 1.5, 1.5, 1.5)), "xxxx"),
    "stratus": Look(PURPLE, (0, (1.2, 1.2)), "----"),
    "karpenter": Look(GREY, (0, (9.0, 2.0, 2.0, 2.0, 2.0, 2.0)), "||||"),
    "paper-as-printed": Look(BROWN, (0, (5.0, 1.0, 1.0, 1.0)), "//.."),
}
OTHERS = tuple(
    Look(colour, dashes, hatch)
    for dashes, hatch in ((None, ""), ((0, (4.0, 2.0)), "++++"))
    for colour in (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY)
)


def look_of(policy: str, policies: Sequence[str]) -> Look:
    """The policy's own look; of an unknown one that of its place in the experiment."""
    return LOOKS.get(policy) or OTHERS[policies.index(policy) % len(OTHERS)]


STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 10.0,
    "hatch.linewidth": 0.6,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "svg.hashsalt": "htas",  # else every file has ids of its own
    "svg.fonttype": "path",
    "figure.dpi": 100.0,
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures made within look like this; raises NoMatplotlibError."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise NoMatplotlibError("figures need matplotlib, which is not installed: run make setup") from None
    with rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, which no window system knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> Path:
    """Write PATH.svg and PATH.png, without dates and versions: the same figure gives the same bytes."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once is enough for both files
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": "htas"})
    png = path.with_suffix(".png")
    figure.savefig(png, dpi=160, metadata={"Software": None})
    return png


def figure_lines(folder: str, captions: Mapping[str, str], of: str) -> list[str]:
    """Figures by name as a report in Markdown shows them: numbered as in what they are `of`, with their captions."""
    lines = []
    for name, caption in captions.items():
        number = name.split("-")[1]
        lines += [f"![Figure {number}]({folder}{name}.svg)", "", f"*Figure {number} (of {of}). {caption}*", ""]
    return lines


def legend_above(figure: Any, handles: Sequence[Any], labels: Sequence[str], *, columns: int = 4) -> None:
    """One legend for all panels, in as few lines as fit."""
    figure.legend(handles, labels, loc="outside upper center", ncols=min(columns, len(labels)), handlelength=3.4)
