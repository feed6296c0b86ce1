"""One question asked of many classes at once: where nearly every pod is a class of its own, asking one by one is slow.

Of 35,000 jobs that differ in what they ask for alone, nodes say the same but for their room. What they say of all such
a class is looked up once, and the room of all nodes is then compared with all that the classes ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility import FILTERS, resources
from htas.planning.cluster.simulation import Simulation

AT_ONCE = 256
"""Classes that are judged together before some of them are placed: with all of 100,000, hardly any was found without
hope, since the room that the first ones take was still free."""
MOST_ROOMS = 64
"""Rooms that nodes are compared with; those that are within none of them count as one."""
FEW = 8
"""Classes of one kind that are rather asked one by one."""


def with_hope(sim: Simulation, classes: Sequence[PodClass]) -> Iterator[tuple[PodClass, bool]]:
    """Each class in turn, and whether some node may have room for a pod of it; False: surely none has.

    Between two of them pods may be placed, but none taken away and no row opened: what has no hope then gets none.
    """
    for start in range(0, len(classes), AT_ONCE):
        some = classes[start : start + AT_ONCE]
        yield from zip(some, may_have_room(sim, some), strict=True)


def may_have_room(sim: Simulation, classes: Sequence[PodClass]) -> list[bool]:
    """Whether some node may have room for a pod of each class; False: surely none has."""
    hope = [True] * len(classes)
    for positions in _of_one_kind(classes, lambda cls: cls.static_key):
        if len(positions) < FEW:
            continue
        allowed = sim.allowed(classes[positions[0]])
        freest = max((classes[position] for position in positions), key=lambda cls: cls.borrows_up_to)
        if sim.filter_context.lent and freest.borrows_up_to:
            allowed = allowed | sim.allowed_where_lent(freest)
        rows = np.flatnonzero(allowed & sim.table.is_open[sim.all_rows])
        requests = _requests(classes, positions)
        # A node may have less than nothing of what a pod does not ask for, and more than all ask for is no better.
        rooms = _outline(np.clip(sim.table.free[:, rows], 0, requests.max(axis=0)[:, None]))
        is_within: Bools = np.zeros(len(positions), dtype=np.bool_)
        for room in rooms:
            is_within |= (requests <= room).all(axis=1)
        for position, may in zip(positions, is_within.tolist(), strict=True):
            hope[position] = may
    return hope


def _outline(free: Ints) -> list[Ints]:
    """Few rooms such that each node's (resources × nodes) is within one of them.

    One with the most of each resource is not enough: large pods fill the memory of some nodes and the cores of others,
    and of 73,000 pods that fitted on no node 18,000 were found by it; by some ten rooms 48,000.
    """
    rooms, scale = list[Ints](), np.maximum(free.max(axis=1, initial=1), 1)[:, None]
    while free.shape[1] and len(rooms) < MOST_ROOMS:
        roomiest = free[:, (free / scale).sum(axis=0).argmax()]
        rooms.append(roomiest)
        free = free[:, (free > roomiest[:, None]).any(axis=0)]
    rooms.append(free.max(axis=1, initial=0))
    return rooms


def diagnose_each(sim: Simulation, classes: Sequence[PodClass]) -> list[dict[str, int]]:
    """`Simulation.diagnose` of each class."""
    told: list[dict[str, int]] = [{}] * len(classes)
    for positions in _of_one_kind(classes, lambda cls: (cls.static_key, cls.needs, cls.is_dynamic)):
        some = [classes[position] for position in positions]
        is_alike = len(some) >= FEW and not some[0].is_dynamic
        found = _diagnosed_alike(sim, some) if is_alike else None
        for position, counts in zip(positions, found or [sim.diagnose(cls) for cls in some], strict=True):
            told[position] = counts
    return told


def _diagnosed_alike(sim: Simulation, classes: Sequence[PodClass]) -> list[dict[str, int]] | None:
    """The same for classes whose nodes tell them apart by their requests alone; None: a later filter has a say, too."""
    context, example, rows = sim.filter_context, classes[0], sim.all_rows
    at = FILTERS.index(resources.refuse)
    left = sim.table.is_open[rows].copy()
    before: dict[str, int] = {}
    for refuse in FILTERS[:at]:
        accepted = left
        for refusal in refuse(context, example, rows):
            where = refusal.where & left
            if many := int(np.count_nonzero(where)):
                before[refusal.reason] = before.get(refusal.reason, 0) + many
                accepted = accepted & ~where
        left = accepted
    if any(any(refuse(context, example, rows)) for refuse in FILTERS[at + 1 :]):
        return None
    free, requests = sim.table.free[:, rows][:, left], _requests(classes, range(len(classes)))
    told = [before.copy() for _ in classes]
    for resource in resources.pods_first(example):
        reason = resources.reason(context, resource)
        short = np.searchsorted(np.sort(free[resource]), requests[:, resource])
        for counts, many in zip(told, short.tolist(), strict=True):
            if many:
                counts[reason] = many
    return told


def _of_one_kind(classes: Sequence[PodClass], kind: Callable[[PodClass], object]) -> Iterable[list[int]]:
    """Positions of classes by their kind."""
    found: dict[object, list[int]] = {}
    for position, cls in enumerate(classes):
        found.setdefault(kind(cls), []).append(position)
    return found.values()


def _requests(classes: Sequence[PodClass], positions: Iterable[int]) -> Ints:
    return np.array([classes[position].requests for position in positions], dtype=np.int64)
