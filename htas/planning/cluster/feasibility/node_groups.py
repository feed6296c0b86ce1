"""HTAS's own filter: each kind of work goes to the node groups that take it (HTAS paper 4).

It holds for pods that HTAS binds; pods of other schedulers go where those put them. Nodes of no group, or of a group
the configuration no longer has, are fixed capacity and take every kind.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.world import Refusal, World


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    if not cls.is_ours:
        return
    closed = {group.name for group in world.policy.groups if not group.workload.takes(cls.kind)}
    where = np.array([node.group in closed for node in world.table.nodes[rows]], dtype=np.bool_)
    if where.any():
        yield Refusal(f"node(s) were in a node group that does not take {cls.kind.value} work", where)
