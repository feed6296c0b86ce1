"""HTAS's own filter: each kind of work goes to the node groups that take it (HTAS paper 4).

It holds for pods that HTAS binds; pods of other schedulers go where those put them. Nodes of no group, or of a group
the configuration no longer has, are fixed capacity and take every kind. Where a group for services lends room, batch
work is placed there without this filter (`Simulation.allowed_where_lent`), and nobody is evicted for it there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.pods import WorkKind
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

OTHER_WORK = "node(s) were in a node group that does not take"


def _closed(context: FilterContext, kind: WorkKind, rows: slice) -> Bools:
    closed = {group.name for group in context.policy.groups if not group.workload.takes(kind)}
    return np.array([node.group in closed for node in context.table.nodes[rows]], dtype=np.bool_)


def reason(kind: WorkKind) -> str:
    return f"{OTHER_WORK} {kind.value} work"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    if not cls.is_ours:
        return
    where = context.column(("closed to", cls.kind), lambda new: _closed(context, cls.kind, new))[rows]
    if where.any():
        yield FilterRefusal(reason(cls.kind), where)
