"""What is played in the edge experiment: every contender in every scenario."""

from __future__ import annotations

from dataclasses import dataclass

from htas.experiments.edge.scenarios import SCENARIOS, workload
from htas.sandbox.workload import Workload

SEEDS = 20


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Where a scenario's requests come from: drawn by its name and the seed."""

    name: str

    def workload(self, seed: int) -> Workload:
        return workload(SCENARIOS[self.name], seed)
