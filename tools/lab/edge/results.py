"""The form of the edge experiment's results, and the files they are kept in.

As of other experiments (tools.lab.results), with `services.csv` (a line a run and service) in the place of
samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev

import msgspec
import numpy as np
from numpy.typing import NDArray

from tools.lab.edge.scenarios import EDGE_NODES, GB, MIB, SERVICES
from tools.lab.results import Timing, write_common, write_table

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
    write_common(results, results.runs, _COLUMNS, timings, folder)
    services = (
        [run.policy, run.scenario, run.seed, *msgspec.structs.astuple(service)]
        for run in results.runs
        for service in run.services
    )
    write_table(folder / SERVICES_FILE, ("policy", "scenario", "seed", *ServiceOver.__struct_fields__), services)


# What no scheduler can exceed: the most pods of the four services that the edge nodes hold at once.
#
# Every way to fill each node is listed, and those of the three nodes are added up: of 196 fillings none is within
# another. For the pods there are at an instant the best of them is the bound, however often pods may be moved.

Fillings = NDArray[np.int64]
"""A filling in each row, the pods of each service in its columns."""


@cache
def fillings() -> Fillings:
    """Pods of each service that the edge holds together, as many as there can be."""
    total = {(0,) * len(SERVICES)}
    for cores, gb in EDGE_NODES.values():
        of_node = _of_node(cores, gb)
        total = {tuple(map(sum, zip(one, other, strict=True))) for one in total for other in of_node}
    return np.array(sorted(_not_within_another(total)), dtype=np.int64)


def _of_node(cores: int, gb: int) -> list[tuple[int, ...]]:
    sizes = list(SERVICES.values())
    most = [min(cores // cpu, gb * GB // (mib * MIB)) for cpu, mib in sizes]
    return [
        counts
        for counts in product(*(range(each + 1) for each in most))
        if _sum(counts, (cpu for cpu, _ in sizes)) <= cores and _sum(counts, (mib for _, mib in sizes)) * MIB <= gb * GB
    ]


def _sum(counts: Sequence[int], sizes: Iterable[int]) -> int:
    return sum(count * size for count, size in zip(counts, sizes, strict=True))


def _not_within_another(found: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A filling that one more pod could be added to is within another, since fillings are closed downwards."""
    return [
        each for each in found if not any((*each[:i], each[i] + 1, *each[i + 1 :]) in found for i in range(len(each)))
    ]


@cache
def best_ratio(pods: tuple[int, ...]) -> float:
    """The largest share of all pods that can be on the edge, 0 to 1; `pods` are counts by service, one at least."""
    near = np.minimum(fillings(), np.array(pods))
    return float(near.sum(axis=1).max()) / sum(pods)


@cache
def best_mean_ratio(pods: tuple[int, ...]) -> float:
    """The largest mean over services of the share of their pods that can be on the edge; 0 for one without pods."""
    counts = np.array(pods)
    whole = np.maximum(counts, 1)
    return float((np.minimum(fillings(), counts) / whole).mean(axis=1).max())
