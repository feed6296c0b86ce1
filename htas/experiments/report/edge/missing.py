"""What an edge report cannot tell, since it was not played: a part of a sweep says nothing of its mean or its goals."""

from __future__ import annotations

from htas.experiments.edge.contenders import BASELINES, KUBEDSM
from htas.experiments.edge.results import EdgeResults
from htas.experiments.edge.scenarios import SWEEPS
from htas.experiments.report.edge.looks import title_of
from htas.experiments.report.edge.statistics import is_complete
from htas.experiments.report.edge.tables import GOALS


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
        told.append("- What moves are worth and targets are told over the scenarios that were played, not over all.")
    return told


def _contenders(results: EdgeResults) -> list[str]:
    if KUBEDSM not in results.policies:
        return ["- KubeDSM: there are no goals without it."]
    gone = [title_of(name) for name in BASELINES if name not in results.policies]
    return [f"- {', '.join(gone)} were not played: leads are over the best of the other baselines."] if gone else []
