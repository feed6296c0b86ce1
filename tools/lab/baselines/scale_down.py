"""Cluster Autoscaler's scale-down: nodes at or below half use for ten minutes, ten minutes after the last purchase.

Source: Cluster Autoscaler 1.37, core/scaledown (planner, unneeded nodes), defaults of its FAQ: scale-down-
utilization-threshold 0.5, scale-down-unneeded-time 10m, scale-down-delay-after-add 10m, max-drain-parallelism 1, max-
scale-down-parallelism 10. Empty nodes wait the ten minutes as well. A node is unneeded only while all its pods have
room on the others, once the nodes found unneeded before it are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.snapshot import Memory
from htas.planning.place.placing import Order
from tools.lab.baselines.draft import Draft
from tools.lab.baselines.emptying import Emptying, Occupied, youngest_s
from tools.lab.baselines.orders import LEAST_REQUESTED

DRAINS_AT_ONCE = 1
REMOVALS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Cluster Autoscaler's flags for giving nodes back, at their defaults; `order` is where pods would go."""

    threshold: float = 0.5
    unneeded_s: float = 600.0
    after_add_s: float = 600.0
    order: Order = LEAST_REQUESTED


AS_SHIPPED = ScaleDown()


def scale_down(draft: Draft, *, is_due: bool, min_nodes: int = 0, flags: ScaleDown = AS_SHIPPED) -> Memory:
    """Give back nodes that have been unneeded for long enough; returns since when nodes are unneeded."""
    before = draft.snapshot.memory
    if not is_due:
        return before
    emptying = Emptying(draft)
    nodes = emptying.nodes()
    unneeded = _unneeded(emptying, nodes, flags)
    since = {each.node.name: before.underutilized_since.get(each.node.name, draft.now) for each in unneeded}
    if youngest_s(draft) >= flags.after_add_s:
        ripe = [each for each in unneeded if draft.now - since[each.node.name] >= flags.unneeded_s]
        most = len(draft.snapshot.cluster.nodes) - len(draft.snapshot.drains) - min_nodes
        _remove(emptying, ripe, most, flags.order)
    return Memory(underutilized_since=since)


def _unneeded(emptying: Emptying, nodes: list[Occupied], flags: ScaleDown) -> list[Occupied]:
    """Nodes that could all go together, empty ones first; each sees the room that those before it took."""
    low = [each for each in nodes if each.utilization <= flags.threshold]
    found: list[Occupied] = []
    sim, targets = emptying.draft.sim, set[str]()
    with sim.fork():
        for each in sorted(low, key=lambda each: (not each.is_empty, each.node.name)):
            mark = len(sim.log)
            rows = emptying.targets([*found, each])
            if each.node.name not in targets and emptying.rehouse(each, flags.order, rows):
                found.append(each)
                targets |= {sim.table.nodes[row].name for _, row, _ in sim.assignments(mark)}
    return found


def _remove(emptying: Emptying, ripe: list[Occupied], most: int, order: Order) -> None:
    """Empty nodes together, at most ten at once; nodes that have to be drained one at a time."""
    under_way = emptying.draft.snapshot.drains
    left, drains = min(most, REMOVALS_AT_ONCE - len(under_way)), DRAINS_AT_ONCE - len(under_way)
    for each in ripe:
        if left < 1:
            return
        if not each.is_empty and drains < 1:
            continue
        if each.node.name not in emptying.receiving and emptying.empty(each, order):
            left -= 1
            drains -= not each.is_empty
