"""Means over the runs of a sweep, in percent, and how far one contender is ahead of another on the same load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tools.lab.edge.contenders import BASELINES, KUBEDSM
from tools.lab.edge.results import EdgeResults, EdgeRun
from tools.lab.edge.scenarios import SWEEPS
from tools.lab.report.statistics import half_width

Measure = Callable[[EdgeRun], float]


def edge_ratio(run: EdgeRun) -> float:
    """The mean over services of the share of their pods on the edge, in percent: what the document measures."""
    return 100 * run.mean_ratio


def bound(run: EdgeRun) -> float:
    """The most of `edge_ratio` that was possible, in percent."""
    return 100 * run.mean_bound


def of_all_pods(run: EdgeRun) -> float:
    """The share of all pods on the edge, whosever they are, in percent."""
    return 100 * run.pod_ratio


def bound_of_all_pods(run: EdgeRun) -> float:
    """The most of `of_all_pods` that was possible, in percent."""
    return 100 * run.pod_bound


def deviation(run: EdgeRun) -> float:
    """The standard deviation across services, in points of percent."""
    return 100 * run.deviation


def of_service(name: str) -> Measure:
    """The share of one service's pods on the edge, in percent."""
    return lambda run: 100 * run.ratio_of(name)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs and half the width of its 95 % interval (None: fewer than two runs)."""

    mean: float
    half_width: float | None

    @property
    def text(self) -> str:
        return f"{self.mean:.1f}" if self.half_width is None else f"{self.mean:.1f} ± {self.half_width:.1f}"


def estimate(values: Sequence[float]) -> Estimate | None:
    """None where there are none."""
    return Estimate(fmean(values), half_width(values)) if values else None


def is_complete(results: EdgeResults, scenario: str) -> bool:
    """Whether every contender was played in a scenario with every seed; an interrupted experiment came to a part."""
    there = sum(run.scenario == scenario for run in results.runs)
    return there == len(results.policies) * len(results.seeds)


def played(results: EdgeResults, sweep: str) -> tuple[str, ...]:
    """The scenarios of a sweep, in its order; none where one is not complete: a part says nothing of the whole."""
    scenarios = tuple(each.name for each in SWEEPS[sweep])
    return scenarios if all(is_complete(results, name) for name in scenarios) else ()


def beside_sweeps(results: EdgeResults) -> tuple[str, ...]:
    """Scenarios that there are runs of, and that belong to no sweep that was played."""
    there = {run.scenario for run in results.runs}
    told = {name for sweep in SWEEPS for name in played(results, sweep)}
    return tuple(name for name in results.scenarios if name in there - told)


def over_sweep(results: EdgeResults, policy: str, scenarios: Sequence[str], measure: Measure) -> Estimate | None:
    """A contender's mean over scenarios; seeds are what is independent, so each seed's mean is one value."""
    return estimate(list(_by_seed(results, policy, scenarios, measure).values()))


def ahead(results: EdgeResults, policy: str, other: str, scenarios: Sequence[str], measure: Measure) -> Estimate | None:
    """How many points one is ahead of another, seed by seed on the same requests."""
    ours, theirs = (_by_seed(results, name, scenarios, measure) for name in (policy, other))
    return estimate([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def best_baseline(results: EdgeResults, scenarios: Sequence[str], measure: Measure = edge_ratio) -> str | None:
    """The baseline with the highest mean; None where none was played."""
    means = {
        name: found.mean
        for name in BASELINES
        if name in results.policies and (found := over_sweep(results, name, scenarios, measure)) is not None
    }
    return max(means, key=lambda name: means[name], default=None)


def _by_seed(results: EdgeResults, policy: str, scenarios: Sequence[str], measure: Measure) -> dict[int, float]:
    """Each seed's mean over the scenarios, as far as it was played."""
    found: dict[int, list[float]] = {}
    for run in results.of(policy, scenarios):
        found.setdefault(run.seed, []).append(measure(run))
    return {seed: fmean(values) for seed, values in found.items()}


def variants_of(results: EdgeResults, names: Sequence[str]) -> list[str]:
    """KubeDSM and those of its variants that were played."""
    return [name for name in (KUBEDSM, *(f"{KUBEDSM}/{each}" for each in names)) if name in results.policies]
