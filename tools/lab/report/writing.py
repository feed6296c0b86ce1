"""Writing the report on a folder of results: report.md, savings.csv and the figures beside them.

Results of the edge experiment have a form and a chapter of their own (tools.lab.report.edge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tools.lab.edge.results import EDGE, EdgeResults
from tools.lab.report import tables
from tools.lab.report.drawing import figure_lines
from tools.lab.report.edge import writing as edge
from tools.lab.report.edge.figures import draw_edge
from tools.lab.report.figures import CAPTIONS, draw_all
from tools.lab.results import RESULTS, Named, Results, ResultsError, read_results, write_table

REPORT, SAVINGS = "report.md", "savings.csv"
ABLATION, TRACE = "ablation", "trace"
"""Experiments whose name has such a word have a table of their own instead of figures."""


def read_all(folder: Path) -> list[Results | EdgeResults]:
    """The results in a folder, and in the folders within it; raises ResultsError where there are none at all."""
    places = [place for place in (folder, *sorted(folder.glob("*/"))) if (place / RESULTS).is_file()]
    found = [_read(place) for place in places or [folder]]
    for results in found:
        if not results.runs:
            raise ResultsError(f"{folder}: experiment {results.experiment!r} has no runs; was it interrupted?")
    return found


def _read(place: Path) -> Results | EdgeResults:
    if read_results(place, Named).experiment == EDGE:
        return read_results(place, EdgeResults)
    return read_results(place, Results)


def write_report(folder: Path, into: Path) -> list[Path]:
    """Write the report and its figures, replacing those of the same names; returns the files a reader opens first.

    Tables are written before figures, so that they are there even where NoMatplotlibError is raised. Raises OSError and
    ResultsError too.
    """
    found = read_all(folder)
    into.mkdir(parents=True, exist_ok=True)
    priced = [results for results in found if isinstance(results, Results)]
    files = [into / REPORT]
    if priced:
        _write_savings(priced, into / SAVINGS)
        files.append(into / SAVINGS)
    drawn = [results for results in found if _is_drawn(results)]
    figures: dict[str, list[Path]] = {}
    (into / REPORT).write_text(_text(found, figures, into), encoding="utf-8")
    for results in drawn:
        place = _made(into, results, drawn)
        draw = draw_edge(results, place) if isinstance(results, EdgeResults) else draw_all(results, place)
        figures[results.experiment] = draw
    (into / REPORT).write_text(_text(found, figures, into), encoding="utf-8")
    return [*files, *(path for paths in figures.values() for path in paths)]


def _is_drawn(results: Results | EdgeResults) -> bool:
    return isinstance(results, EdgeResults) or _kind(results) == ""


def _made(into: Path, results: Results | EdgeResults, drawn: Sequence[Results | EdgeResults]) -> Path:
    """Where an experiment's figures go: beside the report, or in a folder of its own where several are drawn."""
    place = into if len(drawn) == 1 else into / results.experiment
    place.mkdir(exist_ok=True)
    return place


def _kind(results: Results) -> str:
    return next((word for word in (ABLATION, TRACE) if word in results.experiment), "")


def _write_savings(found: Sequence[Results], path: Path) -> None:
    lines = (line for results in found if _kind(results) != ABLATION for line in tables.saving_lines(results))
    write_table(path, tables.SavingLine.__struct_fields__, map(msgspec.structs.astuple, lines))


def _text(found: Sequence[Results | EdgeResults], figures: Mapping[str, Sequence[Path]], into: Path) -> str:
    """`figures` are those drawn so far, by experiment."""
    parts = []
    for results in found:
        drawn = figures.get(results.experiment, ())
        place = f"{drawn[0].parent.name}/" if drawn and drawn[0].parent != into else ""
        if isinstance(results, EdgeResults):
            parts.append(edge.text(results, place, drawn=frozenset(path.stem for path in drawn)))
            continue
        match _kind(results):
            case "ablation":
                parts.append(_ablation(results))
            case "trace":
                parts.append(_trace(results))
            case _:
                parts.append(_experiment(results, place, bool(drawn)))
    return "\n".join(parts)


def _experiment(results: Results, figures_in: str, with_figures: bool) -> str:
    seeds = len(results.seeds)
    parts = [
        f"# Experiment {results.experiment}",
        "",
        f"{len(results.policies)} policies on {len(results.patterns)} patterns, {seeds} seeds each; every policy had"
        " the same arrivals, prices and billing.",
        "",
        "## Savings",
        "",
        _INTERVALS.format(seeds=seeds),
        "",
        tables.savings(results),
        *_left_out(results),
        "## What each policy came to",
        "",
        f"Means over {seeds} seeds; in brackets the least and the most.",
        "",
        tables.outcomes(results),
    ]
    if with_figures:
        parts += ["## Figures", "", *figure_lines(figures_in, CAPTIONS, "the HTAS paper")]
    return "\n".join(parts)


_INTERVALS = (
    "What HTAS pays less, as a share of the other's bill. The share is taken seed by seed, on the same arrivals"
    " (paired), and averaged; ± is half the 95 % confidence interval, Student's t over up to {seeds} seeds."
)


def _left_out(results: Results) -> list[str]:
    told = tables.left_out(results)
    if not told:
        return []
    return ["Not compared, since something went wrong:", "", *(f"- {line}" for line in told), ""]


def _ablation(results: Results) -> str:
    head = f"# What each part saves ({results.experiment})"
    how = (
        "Each part is switched off alone; the figure is what the whole pays less than what is left (paired over"
        f" {len(results.seeds)} seeds, 95 % t-interval). Bold: the interval leaves 0 out."
    )
    return "\n".join([head, "", how, "", tables.ablation(results), *_left_out(results)])


def _trace(results: Results) -> str:
    head = f"# The whole trace ({results.experiment})"
    return "\n".join([head, "", tables.trace(results), *_left_out(results)])
