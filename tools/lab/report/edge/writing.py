"""The report on edge placement, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence

from tools.lab.edge.contenders import BASELINES, KUBEDSM
from tools.lab.edge.results import EdgeResults
from tools.lab.edge.scenarios import SCENARIOS, SWEEPS
from tools.lab.report.drawing import figure_lines
from tools.lab.report.edge import statistics, tables
from tools.lab.report.edge.figures import CAPTIONS, title_of
from tools.lab.report.edge.statistics import best_baseline, is_complete, over_sweep, played
from tools.lab.report.edge.tables import GOALS, Goal

# What an edge report cannot tell, since it was not played: a part of a sweep says nothing of its mean or its goals.


def missing(results: EdgeResults) -> list[str]:
    """A chapter; nothing where all of the document's experiment was played."""
    told = [*_runs(results), *_sweeps(results), *_contenders(results)]
    return ["## What is missing", "", *told, ""] if told else []


def _runs(results: EdgeResults) -> list[str]:
    planned = len(results.policies) * len(results.scenarios) * len(results.seeds)
    gone = planned - len(results.runs)
    return [f"- {gone} of {planned} runs: the experiment was interrupted."] if gone else []


def _sweeps(results: EdgeResults) -> list[str]:
    told = []
    for goal in GOALS:
        gone = [each.name.replace("_", " ± ") for each in SWEEPS[goal.sweep] if not is_complete(results, each.name)]
        if gone:
            which = "none of it was" if len(gone) == len(SWEEPS[goal.sweep]) else f"{', '.join(gone)} were not"
            told.append(
                f"- Sweep {goal.title}: {which} played by every contender with every seed. Its mean, its goals and its"
                " figures are left out."
            )
    if told:
        told.append("- What moves gain and targets are reported over the scenarios that were played, not over all.")
    return told


def _contenders(results: EdgeResults) -> list[str]:
    if KUBEDSM not in results.policies:
        return ["- KubeDSM: there are no goals without it."]
    gone = [title_of(name) for name in BASELINES if name not in results.policies]
    return [f"- {', '.join(gone)} were not played: leads are over the best of the other baselines."] if gone else []


# Why figures differ from the document's: what the load leaves possible, and what the baselines have by themselves.


def analysis(results: EdgeResults) -> list[str]:
    """A paragraph for each sweep, and one on how the document's own margins are to be read."""
    told = [line for goal in GOALS if (line := _of_sweep(results, goal))]
    return [*told, _reading(results), ""] if told else []


def _of_sweep(results: EdgeResults, goal: Goal) -> str:
    scenarios = played(results, goal.sweep)
    best = best_baseline(results, scenarios)
    ours = over_sweep(results, KUBEDSM, scenarios, statistics.edge_ratio)
    most = over_sweep(results, KUBEDSM, scenarios, statistics.bound)
    theirs = over_sweep(results, best, scenarios, statistics.edge_ratio) if best is not None else None
    if ours is None or most is None or theirs is None or best is None:
        return ""
    return (
        f"*{goal.title.capitalize()}.* The edge holds at best {most.mean:.1f} % of the pods that the load makes;"
        f" KubeDSM comes to {100 * ours.mean / most.mean:.1f} % of that. {title_of(best)} has {theirs.mean:.1f} %, so"
        f" that the best of all schedulers would be {most.mean - theirs.mean:.1f} points ahead of it.\n"
    )


def _reading(results: EdgeResults) -> str:
    """What the document's best baseline had, as its margins tell, and what makes those here better."""
    as_points = " and ".join(f"{goal.ratio - goal.ahead:.1f} %" for goal in GOALS)
    as_shares = " and ".join(f"{goal.ratio / (1 + goal.ahead / 100):.1f} %" for goal in GOALS)
    return (
        f"The document's best baseline had {as_points}, if its margins are points, or {as_shares}, if they are shares"
        " of the baseline. What baselines reach hangs on which pods go as the load falls: a ReplicaSet that shrinks"
        " gives up first those that share their node with most others of it, often in the one large cloud node, and so"
        " much of the edge is won back without a move. KubeDSM does not depend on it."
    )


# The edge experiment's chapter of a report.


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
        "## What moves gain",
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
    captions = {name: caption for name, caption in CAPTIONS.items() if name in drawn}
    return [*(["## Figures", ""] if drawn else ()), *figure_lines(folder, captions, "KubeDSM")]
