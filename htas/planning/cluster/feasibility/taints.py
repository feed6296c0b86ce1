"""TaintToleration and NodeUnschedulable.

Source: kube-scheduler v1.36, plugins/tainttoleration and plugins/nodeunschedulable: NoSchedule and NoExecute taints
must be tolerated; PreferNoSchedule only scores, and HTAS's packing does not score by it. Since v1.35 (kubernetes pull
134740, also in v1.34's patches) the reason names no taint, since a pod's events may be read by people who may not read
nodes; up to then it ended in "taint {key: value}".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import Effect, Taint, Toleration, untolerated
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint(s)"
CORDON = Taint("node.kubernetes.io/unschedulable", Effect.NO_SCHEDULE)


def refuse_unschedulable(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Cordoned nodes, unless the pod tolerates the cordon."""
    if untolerated((CORDON,), cls.constraints.tolerations) is None:
        return
    cordoned = context.column("cordoned", lambda new: _cordoned(context, new))[rows]
    if cordoned.any():
        yield FilterRefusal(UNSCHEDULABLE, cordoned)


def _cordoned(context: FilterContext, rows: slice) -> Bools:
    return np.array([node.is_unschedulable for node in context.table.nodes[rows]], dtype=np.bool_)


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Nodes with a taint the pod does not tolerate."""
    tolerations = cls.constraints.tolerations
    where = context.column(("untolerated", tolerations), lambda new: _untolerated(context, tolerations, new))[rows]
    if where.any():
        yield FilterRefusal(UNTOLERATED, where)


def _untolerated(context: FilterContext, tolerations: tuple[Toleration, ...], rows: slice) -> Bools:
    """Nodes carry few different sets of taints: each is judged once."""
    judged: dict[tuple[Taint, ...], bool] = {(): False}
    where = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for i, node in enumerate(context.table.nodes[rows]):
        if node.taints not in judged:
            judged[node.taints] = untolerated(node.taints, tolerations) is not None
        where[i] = judged[node.taints]
    return where
