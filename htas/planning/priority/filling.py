"""Whether nodes can be filled to the brim: the proof that not all pods fit where their sum would."""

from __future__ import annotations

import numpy as np

from htas.planning.classes import Bools, Ints
from htas.planning.priority.patterns import enumerate_patterns

_MOST_PAIRS = 5_000_000


def must_waste(requests: Ints, count: Ints, allowed: Bools, rooms: Ints, limit: int) -> bool:
    """Whether placing all pods is impossible since some node cannot be filled so far that the others have room.

    All nodes together have room to spare for all pods, W; so each may waste W at most. The nodes with the least room
    have the fewest ways to be filled and are asked first. False says nothing.
    """
    waste = rooms.sum(axis=0) - (requests * count[:, None]).sum(axis=0)
    if (waste < 0).any():
        return True
    scale = np.maximum(rooms.max(axis=0), 1)
    for node in np.argsort((rooms / scale).sum(axis=1), kind="stable")[:4]:
        may = allowed[:, node] & (requests <= rooms[node]).all(axis=1)
        filled = can_fill(requests[may], count[may], rooms[node], waste, limit)
        if filled is None:
            return False
        if not filled:
            return True
    return False


def can_fill(requests: Ints, count: Ints, room: Ints, waste: Ints, limit: int) -> bool | None:
    """Whether some pods leave at most `waste` of a room free; None: too many ways to tell (more than `limit`).

    Kinds are parted in two halves; for each way of filling with the one, those of the other that fill the rest are
    looked up by the scarcest resource.
    """
    if (room <= waste).all():
        return True
    key = int(np.argmin(waste / np.maximum(room, 1)))
    halves = []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        patterns = enumerate_patterns(requests[half], count[half], room[None], limit)
        if patterns is None:
            return None
        halves.append(patterns.astype(np.int64) @ requests[half])
    one, other = halves
    other = other[np.argsort(other[:, key], kind="stable")]
    first = np.searchsorted(other[:, key], room[key] - waste[key] - one[:, key], side="left")
    last = np.searchsorted(other[:, key], room[key] - one[:, key], side="right")
    pairs = last - first
    if pairs.sum() > _MOST_PAIRS:
        return None
    left = np.repeat(np.arange(len(one)), pairs)
    right = np.arange(int(pairs.sum())) - np.repeat(np.cumsum(pairs) - pairs, pairs) + np.repeat(first, pairs)
    load = one[left] + other[right]
    return bool(((load <= room) & (load >= room - waste)).all(axis=1).any())
