"""Orders of preference that HTAS itself has no use for."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.packing import Scoring, ScoringStrategy
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.placing import Scored

LEAST_REQUESTED = Scored(Scoring(ScoringStrategy.LEAST_ALLOCATED))
"""kube-scheduler's default: the node with the most left, CPU and memory alike; the first of equals."""


MOST_REQUESTED = Scored(Scoring(ScoringStrategy.MOST_ALLOCATED))
"""The node with the least left: NodeResourcesFit with MostAllocated."""


@dataclass(frozen=True, slots=True)
class FirstFit:
    """The first row."""

    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        return (rows,)
