"""How pods are packed onto nodes: the orders of the HTAS paper, and kube-scheduler's scores."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class PackingAlgorithm(StrEnum):
    BFD = "bfd"
    TIME_BIN_BFD = "time-bin-bfd"
    SCORED = "scored"


class ScoringStrategy(StrEnum):
    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


class ShapePoint(msgspec.Struct, frozen=True):
    """A point of RequestedToCapacityRatio's function: utilisation 0–100 to score 0–10."""

    utilization: int
    score: int


class Scoring(msgspec.Struct, frozen=True):
    """A NodeResourcesFit scoring strategy. `resources` are (name, weight 1–100)."""

    strategy: ScoringStrategy = ScoringStrategy.MOST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: tuple[ShapePoint, ...] = (ShapePoint(0, 0), ShapePoint(100, 10))


class Packing(msgspec.Struct, frozen=True):
    algorithm: PackingAlgorithm = PackingAlgorithm.BFD
    scoring: Scoring = Scoring()
