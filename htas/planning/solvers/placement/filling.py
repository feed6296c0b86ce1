"""How far nodes can be filled: the proof that not all pods fit where their sum would."""

from __future__ import annotations

import numpy as np

from htas.planning.cluster.classes import Bools, Ints

_MOST_PAIRS = 5_000_000
_FEW_SETS = 500
_NODES_ASKED = 4
_KINDS_ASKED = 4
_SHAPES_ASKED = 4
"""Rooms that differ: each takes its own enumeration."""


def must_waste(requests: Ints, count: Ints, allowed: Bools, rooms: Ints, limit: int) -> bool:
    """Whether placing all pods is impossible since some node cannot be filled so far that the others have room.

    All nodes together have room to spare for all pods, W; so each may waste W at most. The largest are asked first:
    on a node with one of them the rest of the room has the fewest ways to be filled. Then the nodes with the least
    room. False says nothing.
    """
    waste = rooms.sum(axis=0) - (requests * count[:, None]).sum(axis=0)
    if (waste < 0).any():
        return True
    scale = np.maximum(rooms.max(axis=0), 1)
    largest = np.argsort(-(requests / scale).sum(axis=1) * (count > 0), kind="stable")[:_KINDS_ASKED]
    if any(_fits_no_full_node(requests, count, allowed, rooms, waste, kind, limit) for kind in largest.tolist()):
        return True
    for node in np.argsort((rooms / scale).sum(axis=1), kind="stable")[:_NODES_ASKED]:
        may = allowed[:, node] & (requests <= rooms[node]).all(axis=1)
        filled = can_fill(requests[may], count[may], rooms[node], waste, limit)
        if filled is None:
            return False
        if not filled:
            return True
    return False


def _fits_no_full_node(
    requests: Ints, count: Ints, allowed: Bools, rooms: Ints, waste: Ints, kind: int, limit: int
) -> bool:
    """Whether no node that takes a pod of this kind can be filled with others; False says nothing."""
    others = count.copy()
    others[kind] -= 1
    nodes = np.flatnonzero(allowed[kind] & (requests[kind] <= rooms).all(axis=1))
    shapes = np.unique(np.column_stack([rooms[nodes] - requests[kind], allowed[:, nodes].T]), axis=0)
    if len(shapes) > _SHAPES_ASKED:
        return False
    resources = rooms.shape[1]
    for shape in shapes:
        room, may = shape[:resources], shape[resources:].astype(np.bool_)
        may &= (requests <= room).all(axis=1)
        if can_fill(requests[may], others[may], room, waste, limit) is not False:
            return False
    return True


def usable(requests: Ints, count: Ints, allowed: Bools, rooms: Ints) -> Ints:
    """What of each room pods can take, resource by resource: less than the room where few sets of pods fit.

    Where more important pods leave 0.8 % of a node's cpu and 19 % of its memory, nothing fits, and both are lost.
    """
    found = rooms.copy()
    for node, room in enumerate(rooms):
        may = allowed[:, node] & (requests <= room).all(axis=1)
        loads = _loads(requests[may], count[may], room, _FEW_SETS)
        if loads is not None:
            found[node] = loads.max(axis=0)
    return found


def can_fill(requests: Ints, count: Ints, room: Ints, waste: Ints, limit: int) -> bool | None:
    """Whether some pods leave at most `waste` of a room free; None: too many ways to tell (more than `limit`).

    Kinds are parted in two halves; for each way of filling with the one, those of the other that fill the rest are
    looked up by the scarcest resource.
    """
    if (room <= waste).all():
        return True
    key = int(np.argmin(waste / np.maximum(room, 1)))
    by_size = np.argsort(-requests[:, key], kind="stable")
    one, other = (_loads(requests[half], count[half], room, limit) for half in (by_size[::2], by_size[1::2]))
    if one is None or other is None:
        return None
    other = other[np.argsort(other[:, key], kind="stable")]
    one = one[np.argsort(one[:, key], kind="stable")]
    first = np.searchsorted(other[:, key], room[key] - waste[key] - one[:, key], side="left")
    last = np.searchsorted(other[:, key], room[key] - one[:, key], side="right")
    pairs = last - first
    if pairs.sum() > _MOST_PAIRS:
        return None
    left = np.repeat(np.arange(len(one)), pairs)
    right = np.arange(int(pairs.sum())) - np.repeat(np.cumsum(pairs) - pairs, pairs) + np.repeat(first, pairs)
    load = one[left] + other[right]
    return bool(((load <= room) & (load >= room - waste)).all(axis=1).any())


def _loads(requests: Ints, count: Ints, room: Ints, limit: int) -> Ints | None:
    """What every choice of pods that fits a room asks for, one kind after another; None: more than `limit`."""
    loads = np.zeros((1, len(room)), dtype=np.int64)
    for request, most in zip(requests, count.tolist(), strict=True):
        found, grown = [loads], loads
        for _ in range(most):
            grown = grown + request
            grown = grown[(grown <= room).all(axis=1)]
            found.append(grown)
            if not len(grown):
                break
        if sum(map(len, found)) > limit:
            return None
        loads = np.concatenate(found)
    return loads
