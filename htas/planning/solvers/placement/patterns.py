"""Node patterns: all the ways a node can be filled, as rows of counts by kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from htas.planning.cluster.classes import Bools, Ints

Patterns = NDArray[np.int8]
"""[P, K]: how many pods of each kind."""
MOST_ALIKE = 127


def enumerate_patterns(requests: Ints, most: Ints, rooms: Ints, limit: int) -> Patterns | None:
    """All multisets of kinds that fit at least one of the rooms ([M, R]), the empty one first; None: beyond `limit`.

    Level by level: the patterns of s pods are those of s - 1 with a kind added that is no earlier than their last, so
    each is made once.
    """
    kinds = len(requests)
    rooms = _greatest(rooms)
    counts: Patterns = np.zeros((1, kinds), dtype=np.int8)
    loads = np.zeros((1, requests.shape[1]), dtype=np.int64)
    last = np.zeros(1, dtype=np.int64)
    levels, total = [counts], 1
    while len(counts):
        grown_from, grown_by, grown_loads = [], [], []
        for kind in range(kinds):
            if most[kind] < 1:
                continue
            parents = np.flatnonzero((last <= kind) & (counts[:, kind] < min(int(most[kind]), MOST_ALIKE)))
            sums = loads[parents] + requests[kind]
            fits = (sums[:, None, :] <= rooms[None]).all(axis=2).any(axis=1)
            total += int(fits.sum())
            if total > limit:
                return None
            grown_from.append(parents[fits])
            grown_by.append(np.full(len(grown_from[-1]), kind))
            grown_loads.append(sums[fits])
        if not grown_from:
            break
        last = np.concatenate(grown_by)
        counts = counts[np.concatenate(grown_from)]
        counts[np.arange(len(counts)), last] += 1
        loads = np.concatenate(grown_loads)
        levels.append(counts)
    return np.concatenate(levels)


def _greatest(rooms: Ints) -> Ints:
    """The rooms that no other one contains."""
    rooms = np.unique(rooms, axis=0)
    if len(rooms) > 2000:
        return np.asarray(rooms.max(axis=0, keepdims=True))
    contained = (rooms[:, None, :] <= rooms[None]).all(axis=2)
    return np.asarray(rooms[contained.sum(axis=1) == 1])


def fitting(patterns: Patterns, loads: Ints, room: Ints, allowed: Bools) -> NDArray[np.int32]:
    """Numbers of the patterns that a node with this room takes."""
    ok = (loads <= room).all(axis=1)
    if not allowed.all():
        ok &= ~(patterns[:, ~allowed] > 0).any(axis=1)
    return np.flatnonzero(ok).astype(np.int32)


def yielding_in_vain(patterns: Patterns, home: Ints, tier: Ints, yields: Bools) -> Bools:
    """Patterns of a node that lack a yielding pod at home though nothing more important arrived: constraint (5)."""
    in_vain = np.zeros(len(patterns), dtype=np.bool_)
    for kind in np.flatnonzero(yields & (home > 0)):
        higher = tier < tier[kind]
        arrived = (patterns[:, higher] > home[higher]).any(axis=1)
        in_vain |= (patterns[:, kind] < home[kind]) & ~arrived
    return in_vain
