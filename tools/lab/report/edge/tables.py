"""The edge report's tables in Markdown: the document's goals, every contender in every scenario, variants, targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.lab.edge.contenders import BASELINES, K8S, KUBEDSM, TARGETS, VARIANTS
from tools.lab.edge.results import EdgeResults
from tools.lab.edge.scenarios import SERVICES
from tools.lab.report.edge import statistics
from tools.lab.report.edge.figures import title_of
from tools.lab.report.edge.statistics import (
    Estimate,
    Measure,
    ahead,
    beside_sweeps,
    best_baseline,
    over_sweep,
    played,
)
from tools.lab.report.tables import table


@dataclass(frozen=True, slots=True)
class Goal:
    """What the document reports for a sweep: KubeDSM's mean edge ratio, and its lead over the best baseline."""

    sweep: str
    title: str
    ratio: float
    ahead: float


GOALS = (
    Goal("mean", "mean 1.1 to 1.6, deviation 0.4", 80.0, 13.4),
    Goal("deviation", "mean 1.5, deviation 0.1 to 0.5", 78.0, 18.9),
)


def goals(results: EdgeResults) -> str:
    """Each goal, what was found, and the most that any scheduler could have reached on the same pods."""
    rows = []
    for goal in GOALS:
        scenarios = played(results, goal.sweep)
        ours = over_sweep(results, KUBEDSM, scenarios, statistics.edge_ratio)
        most = over_sweep(results, KUBEDSM, scenarios, statistics.bound)
        if ours is None or most is None:
            continue
        rows.append([f"edge ratio, {goal.title} (%)", f"≥ {goal.ratio:g}", _met(ours, goal.ratio), f"{most.mean:.1f}"])
        best = best_baseline(results, scenarios)
        if best is None:
            continue
        lead = ahead(results, KUBEDSM, best, scenarios, statistics.edge_ratio)
        theirs = over_sweep(results, best, scenarios, statistics.edge_ratio)
        if lead is None or theirs is None:
            continue
        room, name = most.mean - theirs.mean, title_of(best)
        rows.append([f"ahead of {name} (points)", f"≥ {goal.ahead:g}", _met(lead, goal.ahead), f"{room:.1f}"])
        share = Estimate(100 * lead.mean / theirs.mean, None)
        rows.append(
            [
                f"ahead of {name} (% of it)",
                f"≥ {goal.ahead:g}",
                _met(share, goal.ahead),
                f"{100 * room / theirs.mean:.1f}",
            ]
        )
    return table(["goal", "wanted", "found", "possible"], rows)


def _met(found: Estimate, wanted: float) -> str:
    """A figure that reaches what is wanted is bold."""
    return f"**{found.text}**" if found.mean >= wanted else found.text


def ratios(results: EdgeResults, measure: Measure, most: Measure | None = None) -> str:
    """A table for each sweep: contenders down, scenarios across, then their mean; one for what is in no sweep."""
    found = [_ratios(results, names, measure, most) for goal in GOALS if (names := played(results, goal.sweep))]
    rest = beside_sweeps(results)
    return "\n".join([*found, _ratios(results, rest, measure, most, is_sweep=False)] if rest else found)


def _ratios(
    results: EdgeResults, scenarios: Sequence[str], measure: Measure, most: Measure | None, *, is_sweep: bool = True
) -> str:
    def across(policy: str, of: Measure) -> list[str]:
        cells = [over_sweep(results, policy, (name,), of) for name in scenarios]
        whole = over_sweep(results, policy, scenarios, of) if is_sweep else None
        return [*(f"{cell.mean:.1f}" if cell else "–" for cell in cells), *([whole.text] if whole is not None else [])]

    rows = [[title_of(name), *across(name, measure)] for name in (KUBEDSM, *BASELINES) if name in results.policies]
    if most is not None:
        rows.append(["*most that is possible*", *across(results.policies[0], most)])
    across_them = [name.replace("_", " ± ") for name in scenarios]
    return table(["mean ± deviation of the load", *across_them, *(["**mean**"] if is_sweep else [])], rows)


def variants(results: EdgeResults) -> str:
    """What moves are worth: KubeDSM with fewer or other ones, over all scenarios."""
    rows = []
    for name in (*statistics.variants_of(results, tuple(VARIANTS)), K8S):
        _, lifts, reorderings = VARIANTS.get(name.partition("/")[2], ("", 5, 3))
        allowed = [str(lifts), str(reorderings)] if name != K8S else ["–", "–"]
        found = [over_sweep(results, name, played(results, goal.sweep), statistics.edge_ratio) for goal in GOALS]
        runs = results.of(name, results.scenarios)
        if runs:
            waiting = sum(run.waiting_s for run in runs) / len(runs)
            moves = sum(run.moves for run in runs) / len(runs)
            figures = [each.text if each is not None else "–" for each in found]
            rows.append([title_of(name), *allowed, *figures, f"{moves:.1f}", f"{waiting:.0f}"])
    head = ["", "M_C2E", "M_ER", *(f"{goal.title} (%)" for goal in GOALS), "moves a run", "waiting (pod s a run)"]
    return table(head, rows)


def targets(results: EdgeResults) -> str:
    """The share of each service's pods on the edge under each set of targets; in brackets the target."""
    rows = []
    for name in statistics.variants_of(results, tuple(TARGETS)):
        stated = TARGETS[name.partition("/")[2]][1] if "/" in name else {}
        cells = [_with_target(results, name, service, stated.get(service, 1.0)) for service in SERVICES]
        whole = over_sweep(results, name, results.scenarios, statistics.edge_ratio)
        rows.append([title_of(name, is_target=True), *cells, whole.text if whole is not None else "–"])
    return table(["targets", *(f"{name.upper()} (%)" for name in SERVICES), "edge ratio (%)"], rows)


def _with_target(results: EdgeResults, policy: str, service: str, target: float) -> str:
    found = over_sweep(results, policy, results.scenarios, statistics.of_service(service))
    return f"{found.mean:.1f} ({100 * target:g})" if found is not None else "–"


def scenarios_balanced_best(results: EdgeResults, scenarios: Sequence[str]) -> int:
    """In how many scenarios KubeDSM's services differ least of all contenders'."""
    return sum(
        min(found, key=lambda name: found[name]) == KUBEDSM
        for scenario in scenarios
        if KUBEDSM in (found := _deviations(results, scenario))
    )


def _deviations(results: EdgeResults, scenario: str) -> dict[str, float]:
    """The deviation of each contender that keeps pods near at all: cloud first is even because it keeps few."""
    found = {
        name: over_sweep(results, name, (scenario,), statistics.deviation)
        for name in (KUBEDSM, *BASELINES)
        if name in results.policies
    }
    return {name: each.mean for name, each in found.items() if each is not None}
