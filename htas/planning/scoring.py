"""kube-scheduler's NodeResourcesFit scoring strategies, in its integer arithmetic.

Sources: Kubernetes documentation, "Resource Bin Packing"; kube-scheduler, plugins/noderesources (least_allocated.go,
most_allocated.go, requested_to_capacity_ratio.go). Scores run from 0 to 100, divisions truncate.

The documentation's worked example scores on the scale 0–10 and truncates each resource's score to it (Node1 = 5,
Node2 = 7); kube-scheduler's code scales the shape by ten and rounds the weighted mean, which is what is done here.
`documented_ratio_score` keeps the documentation's arithmetic apart, as the reference of that example.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from htas.model.policy import Scoring, ScoringStrategy, ShapePoint
from htas.model.resources import CPU, MEMORY
from htas.planning.classes import Ints, PodClass
from htas.planning.simulation import Simulation

MAX_SCORE = 100


def node_scores(sim: Simulation, cls: PodClass, rows: Ints, scoring: Scoring) -> Ints:
    """Scores of rows for one more pod of a class.

    CPU and memory count what kube-scheduler assumes of pods without requests (100m, 200 MiB a container) for the pod
    at hand; for pods already placed HTAS counts their real requests.
    """
    axis, table = sim.table.axis, sim.table
    total = np.zeros(len(rows), dtype=np.int64)
    weights = np.zeros(len(rows), dtype=np.int64)
    for name, weight in scoring.resources:
        index = axis.index.get(name)
        if index is None:
            continue
        asked = _asked(cls, name, index)
        if name not in (CPU, MEMORY) and asked == 0:
            continue
        capacity = table.allocatable[index, rows]
        requested = capacity - table.free[index, rows] + asked
        score = _resource_score(requested, capacity, scoring)
        counted = capacity > 0
        if scoring.strategy is ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO:
            counted &= score > 0
        total += np.where(counted, score * weight, 0)
        weights += np.where(counted, weight, 0)
    safe = np.maximum(weights, 1)
    if scoring.strategy is ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO:
        return np.where(weights > 0, (2 * total + safe) // (2 * safe), 0)  # math.Round of a positive quotient
    return np.where(weights > 0, total // safe, 0)


def _asked(cls: PodClass, name: str, index: int) -> int:
    if name == CPU:
        return cls.scoring[0] or int(cls.requests[index])
    if name == MEMORY:
        return cls.scoring[1] or int(cls.requests[index])
    return int(cls.requests[index])


def _resource_score(requested: Ints, capacity: Ints, scoring: Scoring) -> Ints:
    safe = np.maximum(capacity, 1)
    match scoring.strategy:
        case ScoringStrategy.LEAST_ALLOCATED:
            return np.where(requested > capacity, 0, (capacity - requested) * MAX_SCORE // safe)
        case ScoringStrategy.MOST_ALLOCATED:
            return np.minimum(requested, capacity) * MAX_SCORE // safe
        case ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO:
            utilization = np.where(requested > capacity, MAX_SCORE, requested * MAX_SCORE // safe)
            scaled = [ShapePoint(point.utilization, point.score * 10) for point in scoring.shape]
            return _shape(utilization, scaled)


def _shape(utilization: Ints, shape: Sequence[ShapePoint]) -> Ints:
    """The piecewise linear function, with Go's truncating division between two points."""
    result = np.full(len(utilization), shape[-1].score, dtype=np.int64)
    for left, right in reversed(list(zip(shape, shape[1:], strict=False))):
        rise, run = right.score - left.score, right.utilization - left.utilization
        product = rise * (utilization - left.utilization)
        quotient = np.sign(product) * (np.abs(product) // run)
        result = np.where(utilization <= right.utilization, left.score + quotient, result)
    return np.where(utilization <= shape[0].utilization, shape[0].score, result)


def documented_ratio_score(amounts: Sequence[tuple[int, int, int]], shape: Sequence[ShapePoint]) -> int:
    """The node score of the documentation's worked example, on the scale 0–10, from (requested, capacity, weight)."""
    scores = _shape(np.array([requested * MAX_SCORE // capacity for requested, capacity, _ in amounts]), shape)
    weights = [weight for *_, weight in amounts]
    return sum(int(score) * weight for score, weight in zip(scores, weights, strict=True)) // sum(weights)
