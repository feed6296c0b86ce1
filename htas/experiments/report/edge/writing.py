"""The edge experiment's chapter of a report."""

from __future__ import annotations

from collections.abc import Sequence

from htas.experiments.edge.contenders import KUBEDSM
from htas.experiments.edge.results import EdgeResults
from htas.experiments.edge.scenarios import SCENARIOS
from htas.experiments.report.edge import statistics, tables
from htas.experiments.report.edge.analysis import analysis
from htas.experiments.report.edge.figures import CAPTIONS
from htas.experiments.report.edge.missing import missing
from htas.experiments.report.edge.statistics import best_baseline, is_complete, played


def text(results: EdgeResults, figures_in: str, *, drawn: frozenset[str]) -> str:
    """The chapter; `drawn` are the names of the figures there are, in the folder `figures_in`."""
    seeds = len(results.seeds)
    there = [name for name in results.scenarios if any(run.scenario == name for run in results.runs)]
    parts = [
        f"# The edge ({results.experiment})",
        "",
        f"{len(results.policies)} contenders in {len(there)} of {len(SCENARIOS)} scenarios, {seeds} seeds each; every"
        " contender had the same requests. The edge ratio is the mean over the four services of the share of their"
        " pods on the edge, over virtual time and seeds; ± is half the 95 % interval (Student's t over seeds), paired"
        " by seed where two are compared.",
        "",
        *missing(results),
    ]
    if any(played(results, goal.sweep) for goal in tables.GOALS) and KUBEDSM in results.policies:
        parts += [
            "## Goals",
            "",
            "Bold: reached. *Possible* is what a scheduler would have reached that at every instant had the best of all"
            " placements of the pods there were, and moved them in no time.",
            "",
            tables.goals(results),
            *analysis(results),
        ]
    parts += [
        "## Edge ratio (%)",
        "",
        tables.ratios(results, statistics.edge_ratio, statistics.bound),
        "### Share of all pods (%)",
        "",
        "Each pod counts the same, whosever it is. KubeDSM does not aim at that: a service of two large pods is worth"
        " as much to it as one of four small ones.",
        "",
        tables.ratios(results, statistics.of_all_pods, statistics.bound_of_all_pods),
        "### Standard deviation across services (points)",
        "",
        *_balance(results, [name for name in there if is_complete(results, name)]),
        tables.ratios(results, statistics.deviation),
        "## What moves are worth",
        "",
        tables.variants(results),
        "## Targets",
        "",
        tables.targets(results),
        *_figures(figures_in, drawn),
    ]
    return "\n".join(parts)


def _balance(results: EdgeResults, scenarios: Sequence[str]) -> list[str]:
    """How often KubeDSM's services differ least, where there is another to differ from."""
    if KUBEDSM not in results.policies or best_baseline(results, scenarios) is None:
        return []
    balanced = tables.scenarios_balanced_best(results, scenarios)
    return [f"KubeDSM's is the lowest of all in {balanced} of {len(scenarios)} scenarios.", ""]


def _figures(folder: str, drawn: frozenset[str]) -> list[str]:
    lines = ["## Figures", ""] if drawn else []
    for name, caption in CAPTIONS.items():
        if name in drawn:
            number = name.split("-")[1]
            lines += [f"![Figure {number}]({folder}{name}.svg)", "", f"*Figure {number} (of KubeDSM). {caption}*", ""]
    return lines
