"""TaintToleration and NodeUnschedulable.

Source: kube-scheduler v1.36, plugins/tainttoleration and plugins/nodeunschedulable: NoSchedule and NoExecute taints
must be tolerated; PreferNoSchedule only scores, and HTAS's packing does not score by it. Since v1.35 (kubernetes pull
134740, also in v1.34's patches) the reason names no taint, since a pod's events may be read by people who may not read
nodes; up to then it ended in "taint {key: value}".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from htas.model.constraints import Effect, Taint, Toleration
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint(s)"
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
CORDON = Taint("node.kubernetes.io/unschedulable", Effect.NO_SCHEDULE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint (core/v1 Toleration.ToleratesTaint).

    Gt and Lt compare the taint's value with the toleration's (KEP-5471): a node tainted `spot=5` is tolerated by Gt 3.
    An API server that does not know them admits no pod with them.
    """
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal" | "":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    offered, asked = (_integer(value) for value in (taint.value, toleration.value))
    if offered is None or asked is None:
        return False
    return offered > asked if toleration.operator == "Gt" else offered < asked


def _integer(text: str) -> int | None:
    """A decimal integer of 64 bits without a plus sign or leading zeros; anything else is none."""
    if not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps pods out and is not tolerated."""
    for taint in taints:
        if taint.effect is not Effect.PREFER_NO_SCHEDULE and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


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
