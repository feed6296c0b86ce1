"""The form of the edge experiment's results, and the files they are kept in.

As of other experiments (htas.experiments.results), with `services.csv` (a line a run and service) in the place of
samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev

import msgspec

from htas.experiments.results import RESULTS, RUNS, TIMINGS, Timing, cell, decoded, write_table

EDGE = "edge"
SERVICES_FILE = "services.csv"


class ServiceOver(msgspec.Struct, frozen=True):
    """One service over a run, means over time: pods there were, the share of them on the edge, and its target."""

    name: str
    pods: float
    ratio: float
    target: float


class EdgeRun(msgspec.Struct, frozen=True):
    """What one contender came to in one scenario with one seed; ratios are from 0 to 1, means over virtual time.

    `pod_ratio` is the share of all pods that were on the edge, `mean_ratio` the mean over services of the share of
    theirs; `pod_bound` and `mean_bound` are the most that any scheduler could have had of the pods there were. A pod
    that waits or is being moved is not on the edge. `waiting_s` is what pods spent without a node, all together.
    """

    policy: str
    scenario: str
    seed: int
    pod_ratio: float
    pod_bound: float
    mean_bound: float
    services: tuple[ServiceOver, ...]
    pods: float
    moves: int
    waiting_s: float

    @property
    def mean_ratio(self) -> float:
        """The mean over services of their ratios."""
        return fmean(service.ratio for service in self.services)

    @property
    def deviation(self) -> float:
        """The standard deviation of the services' ratios (Figures 8 and 9 of the document)."""
        return pstdev([service.ratio for service in self.services])

    def ratio_of(self, service: str) -> float:
        return next(each.ratio for each in self.services if each.name == service)


class EdgeResults(msgspec.Struct, frozen=True):
    """All runs, by scenario, policy and seed in the experiment's order."""

    experiment: str
    policies: tuple[str, ...]
    scenarios: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[EdgeRun, ...]

    def of(self, policy: str, scenarios: Sequence[str]) -> tuple[EdgeRun, ...]:
        """The runs of one policy in some scenarios."""
        return tuple(run for run in self.runs if run.policy == policy and run.scenario in scenarios)


_COLUMNS = (
    *("policy", "scenario", "seed", "pod_ratio", "pod_bound", "mean_ratio", "mean_bound", "deviation"),
    *("pods", "moves", "waiting_s"),
)


def write_edge_results(results: EdgeResults, timings: Sequence[Timing], folder: Path) -> None:
    """Write the files of a folder, which is made where it is missing; files of the same names are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(results), indent=1)
    (folder / RESULTS).write_bytes(encoded + b"\n")
    write_table(folder / RUNS, _COLUMNS, ([cell(getattr(run, name)) for name in _COLUMNS] for run in results.runs))
    write_table(
        folder / SERVICES_FILE,
        ("policy", "scenario", "seed", *ServiceOver.__struct_fields__),
        (
            [run.policy, run.scenario, str(run.seed), *map(cell, msgspec.structs.astuple(service))]
            for run in results.runs
            for service in run.services
        ),
    )
    names = Timing.__struct_fields__
    write_table(folder / TIMINGS, names, ([cell(getattr(timing, name)) for name in names] for timing in timings))


def read_edge_results(folder: Path) -> EdgeResults:
    """The results in a folder; raises ResultsError where there are none of this experiment."""
    return decoded(folder, EdgeResults)
