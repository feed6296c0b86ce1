"""Nodes that take no pods now, and so are asked by no filter: why a pod is not on them either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.taints import UNSCHEDULABLE, UNTOLERATED
from htas.planning.cluster.many_classes import diagnose_each
from htas.planning.cluster.simulated import SimulatedCluster

NOT_READY = f"{UNTOLERATED} {{node.kubernetes.io/not-ready}}"
"""kube-scheduler says the first part. The taint is of Kubernetes' own and betrays nothing: it is told."""


class ClosedNodes:
    """The nodes that are not Ready, are being emptied or urgently to be, or are kept for what is on such, by reason.

    Counted once for all classes.

    kube-scheduler counts them among the "0/4 nodes": a pod that asks for a node that is not Ready is to be told of it.
    """

    def __init__(self, simulated: SimulatedCluster) -> None:
        table = simulated.sim.table
        self._sim = simulated.sim
        self._reasons = Counter[str]()
        for row in np.flatnonzero(~table.is_open[: len(table)]).tolist():
            node = table.nodes[row]
            if node.name in simulated.coming:
                continue
            if node.is_draining or table.is_leaving[row] or not node.is_ready:
                why = UNSCHEDULABLE if node.is_unschedulable else UNTOLERATED if node.is_ready else NOT_READY
                self._reasons[why] += 1
            elif node.name in simulated.shunned:
                self._reasons[f"node(s) were {simulated.shunned[node.name].reason.lower()}"] += 1
            elif node.name in simulated.kept_for_urgent:
                self._reasons["node(s) were launched to replace another"] += 1

    def refusals(self, cls: PodClass, rows: slice | None = None) -> tuple[dict[str, int], int]:
        """Why each node refuses a class, those that are closed included, and how many nodes that are."""
        return self._with_closed(self._sim.diagnose(cls, rows)), self._nodes(rows)

    def refusals_of_each(self, classes: Sequence[PodClass]) -> tuple[list[dict[str, int]], int]:
        """The same of many classes."""
        return [self._with_closed(told) for told in diagnose_each(self._sim, classes)], self._nodes(None)

    def _with_closed(self, told: dict[str, int]) -> dict[str, int]:
        return dict(Counter(told) + self._reasons)

    def _nodes(self, rows: slice | None) -> int:
        return self._sim.open_rows(rows) + self._reasons.total()
