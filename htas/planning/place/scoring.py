"""kube-scheduler's NodeResourcesFit scoring strategies, in its integer arithmetic.

Sources: Kubernetes documentation, "Resource Bin Packing"; kube-scheduler, plugins/noderesources (least_allocated.go,
most_allocated.go, requested_to_capacity_ratio.go). Scores run from 0 to 100, divisions truncate.

The documentation's worked example uses a shape on the scale 0–10 as it stands (Node1 = 5, Node2 = 7); kube-scheduler
multiplies the shape's scores by ten first. `ratio_score` is the same arithmetic for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from htas.model.packing import Scoring, ScoringStrategy, ShapePoint
from htas.model.resources import CPU, EPHEMERAL, MEMORY
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.simulation import Simulation

MAX_SCORE = 100


def node_scores(sim: Simulation, cls: PodClass, rows: Ints, scoring: Scoring) -> Ints:
    """Scores of rows for one more pod of a class.

    Of cpu and memory what kube-scheduler assumes of pods without requests counts (100m, 200 MiB a container), for the
    pod at hand and for those placed. An extended resource that the pod does not ask for counts nothing; ephemeral
    storage counts all the same (kube-scheduler 1.36, resource_allocation.go: only scalar resources are passed over).
    """
    axis, table = sim.table.axis, sim.table
    requested, capacity, weights = [], [], []
    for name, weight in scoring.resources:
        index = axis.index.get(name)
        asked = 0 if index is None else _asked(cls, name, index)
        if index is None or (name not in (CPU, MEMORY, EPHEMERAL) and asked == 0):
            continue
        capacity.append(table.allocatable[index, rows])
        assumed = table.assumed[index, rows] if name in (CPU, MEMORY) else 0
        missing = table.missing[index, rows] if name in (CPU, MEMORY) and sim.defaults.are_counted else 0
        requested.append(capacity[-1] - table.free[index, rows] - missing + assumed + asked)
        weights.append(weight)
    if not weights:
        return np.zeros(len(rows), dtype=np.int64)
    match scoring.strategy:
        case ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO:
            shape = [ShapePoint(point.utilization, point.score * 10) for point in scoring.shape]
            return ratio_score(np.array(requested), np.array(capacity), weights, shape)
        case strategy:
            return _allocation_score(np.array(requested), np.array(capacity), weights, strategy)


def _asked(cls: PodClass, name: str, index: int) -> int:
    if name == CPU:
        return cls.scoring[0] or int(cls.requests[index])
    if name == MEMORY:
        return cls.scoring[1] or int(cls.requests[index])
    return int(cls.requests[index])


def _allocation_score(requested: Ints, capacity: Ints, weights: Sequence[int], strategy: ScoringStrategy) -> Ints:
    """LeastAllocated or MostAllocated over resources × nodes; resources a node has none of are left out."""
    safe = np.maximum(capacity, 1)
    if strategy is ScoringStrategy.LEAST_ALLOCATED:
        scores = np.where(requested > capacity, 0, (capacity - requested) * MAX_SCORE // safe)
    else:
        scores = np.minimum(requested, capacity) * MAX_SCORE // safe
    weight = np.where(capacity > 0, np.array(weights)[:, None], 0)
    return np.asarray((scores * weight).sum(axis=0) // np.maximum(weight.sum(axis=0), 1))


def ratio_score(requested: Ints, capacity: Ints, weights: Sequence[int], shape: Sequence[ShapePoint]) -> Ints:
    """RequestedToCapacityRatio over resources × nodes: the shape at each utilisation, weighted, rounded to nearest.

    A resource that is over-asked counts as full; one that a node lacks, or that scores 0 or less, leaves both sums.
    """
    utilization = np.where(requested > capacity, MAX_SCORE, requested * MAX_SCORE // np.maximum(capacity, 1))
    scores = _shape(utilization, shape)
    weight = np.where((capacity > 0) & (scores > 0), np.array(weights)[:, None], 0)
    total, by = (scores * weight).sum(axis=0), np.maximum(weight.sum(axis=0), 1)
    return np.asarray((2 * total + by) // (2 * by))


def _shape(utilization: Ints, shape: Sequence[ShapePoint]) -> Ints:
    """The piecewise linear function, with Go's truncating division between two points."""
    result = np.full(utilization.shape, shape[-1].score, dtype=np.int64)
    for left, right in reversed(list(pairwise(shape))):
        rise, run = right.score - left.score, right.utilization - left.utilization
        product = rise * (utilization - left.utilization)
        quotient = np.sign(product) * (np.abs(product) // run)
        result = np.where(utilization <= right.utilization, left.score + quotient, result)
    return np.where(utilization <= shape[0].utilization, shape[0].score, result)
