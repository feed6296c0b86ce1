"""What no scheduler can exceed: the most pods of the four services that the edge nodes hold at once.

Every way to fill each node is listed, and those of the three nodes are added up: of 196 fillings none is within
another. For the pods there are at an instant the best of them is the bound, however often pods may be moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from htas.experiments.edge.scenarios import EDGE_NODES, GB, MIB, SERVICES

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
