"""TaintToleration and NodeUnschedulable.

Source: kube-scheduler, plugins/tainttoleration and plugins/nodeunschedulable: NoSchedule and NoExecute taints must be
tolerated; PreferNoSchedule only scores, and HTAS's packing does not score by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from htas.model.constraints import Effect, Taint, Toleration
from htas.planning.classes import PodClass
from htas.planning.feasibility.world import Refusal, World

UNSCHEDULABLE = "node(s) were unschedulable"
_CORDON = Taint("node.kubernetes.io/unschedulable", Effect.NO_SCHEDULE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint (core/v1 Toleration.ToleratesTaint)."""
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal" | "":
            return toleration.value == taint.value
        case _:
            return False


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps pods out and is not tolerated."""
    for taint in taints:
        if taint.effect is not Effect.PREFER_NO_SCHEDULE and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def refuse_unschedulable(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Cordoned nodes, unless the pod tolerates the cordon."""
    if untolerated((_CORDON,), cls.constraints.tolerations) is None:
        return
    cordoned = np.array([node.is_unschedulable for node in world.table.nodes[rows]], dtype=np.bool_)
    if cordoned.any():
        yield Refusal(UNSCHEDULABLE, cordoned)


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """Nodes with a taint the pod does not tolerate. Nodes carry few different sets of taints: each is judged once."""
    judged: dict[tuple[Taint, ...], Taint | None] = {}
    by_taint: dict[Taint, list[int]] = {}
    for i, node in enumerate(world.table.nodes[rows]):
        if not node.taints:
            continue
        if node.taints not in judged:
            judged[node.taints] = untolerated(node.taints, cls.constraints.tolerations)
        taint = judged[node.taints]
        if taint is not None:
            by_taint.setdefault(taint, []).append(i)
    for taint, members in by_taint.items():
        where = np.zeros(rows.stop - rows.start, dtype=np.bool_)
        where[members] = True
        yield Refusal(f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}", where)
