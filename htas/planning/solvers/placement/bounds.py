"""Bounds by aggregation: what all nodes together have room for."""

from __future__ import annotations

import numpy as np

from htas.planning.cluster.classes import Bools, Ints

_DIRECTIONS = 64


def most_by_room(requests: Ints, count: Ints, must: Bools, room: Ints, fits: Bools) -> int:
    """How many pods fit at most, if the nodes were one: counts of kinds under weighted sums of resources.

    For weights w ≥ 0 of resources no more fit than have Σ w·request ≤ Σ w·room (a surrogate constraint), and so many
    fit by taking the smallest first. All of `must` kinds are taken, and none of those that fit no node.
    """
    count = np.where(fits, count, 0)
    total = room.sum(axis=0).astype(np.float64)
    if not len(total):
        return int(count.sum())
    shares = requests / np.maximum(total, 1.0)
    taken = (shares * np.where(must, count, 0)[:, None]).sum(axis=0)
    best = int(count.sum())
    optional = np.where(must, 0, count)
    for weights in directions(len(total)):
        left = float(weights @ (1.0 - taken)) + 1e-9
        sizes = shares @ weights
        order = np.argsort(sizes, kind="stable")
        used = np.cumsum(sizes[order] * optional[order])
        whole = int(np.searchsorted(used, left, side="right"))
        fitting = int(optional[order[:whole]].sum())
        if whole < len(order) and sizes[order[whole]] > 0:
            rest = left - (used[whole - 1] if whole else 0.0)
            fitting += min(int(rest / sizes[order[whole]] + 1e-9), int(optional[order[whole]]))
        best = min(best, int(np.where(must, count, 0).sum()) + max(fitting, 0))
    return best


def directions(resources: int) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Single resources, and mixtures of each two of them."""
    found = list(np.eye(resources))
    for one in range(resources):
        for other in range(one):
            for share in np.linspace(0.0, 1.0, _DIRECTIONS + 1)[1:-1]:
                mixture = np.zeros(resources)
                mixture[one], mixture[other] = share, 1.0 - share
                found.append(mixture)
    return found
