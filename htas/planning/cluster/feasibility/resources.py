"""NodeResourcesFit: requests against what is free, for every resource the pod asks for.

Source: kube-scheduler, plugins/noderesources/fit.go. Real requests count (not the scores' assumed ones).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.planning.cluster.classes import PODS_ROW, Bools, Ints, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

TOO_MANY_PODS = "Too many pods"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    free = context.table.free
    for resource in pods_first(cls):
        short = free[resource, rows] < cls.requests[resource]
        if short.any():
            yield FilterRefusal(reason(context, resource), short)


def reason(context: FilterContext, resource: int) -> str:
    """What is said of a node that has too little of a resource."""
    return TOO_MANY_PODS if resource == PODS_ROW else f"Insufficient {context.table.axis.names[resource]}"


def pods_first(cls: PodClass) -> list[int]:
    """What a class asks for in the order in which it is told."""
    return sorted(cls.needs, key=lambda resource: (resource != PODS_ROW, resource))


def fits(free: Ints, cls: PodClass) -> Bools:
    """Where one pod of a class fits, over columns of free resources (axis × rows)."""
    first, *rest = cls.needs
    ok: Bools = free[first] >= cls.requests[first]
    for resource in rest:
        ok &= free[resource] >= cls.requests[resource]
    return ok


def exceeds(asked: Ints, room: Ints) -> bool:
    """Whether more of something is asked for than there is: two columns of the axis.

    Of so few numbers a list is gone through in a quarter of the time that `any` takes.
    """
    return True in (asked > room).tolist()


def how_many(free: Ints, cls: PodClass) -> Ints:
    """How many pods of a class fit, over columns of free resources (axis × rows)."""
    first, *rest = cls.needs
    count: Ints = free[first] // cls.requests[first]
    for resource in rest:
        np.minimum(count, free[resource] // cls.requests[resource], out=count)
    return np.maximum(count, 0)
