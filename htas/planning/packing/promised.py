"""Stages 1 and 2: waiting pods are bundled and placed; where the usual way leaves some out, as they were bought for.

A tight mix of machines holds its pods in one way, which best fit need not find again when the machines come. Best fit
goes first, so that no pod waits for its own machine while another has room for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from htas.planning.classes import PodClass
from htas.planning.edge.placing_near import place_near
from htas.planning.nominations import Nominations
from htas.planning.opening import Opening
from htas.planning.packing.bundling import bundle
from htas.planning.packing.orders import BestFit
from htas.planning.packing.placing import fill
from htas.planning.scaling.cost_efficiency import Demand
from htas.planning.situation import Situation


def place(situation: Situation) -> list[Demand]:
    """Place the waiting pods in the opening's simulation; returns what has no room, in placing order."""
    opening, policy = situation.opening, situation.policy
    meant_for = situation.snapshot.memory.meant_for
    near = place_near(situation)
    nominations = Nominations(opening, policy)
    waiting = [pod for pod in opening.waiting if pod.uid not in near]
    overdue = situation.now - policy.max_wait_for_capacity_s
    classes = bundle((*waiting, *nominations.lapsed), opening.book, overdue)
    with opening.sim.fork() as branch:
        left = _placed(opening, nominations, classes, {})
        if not left or not meant_for:
            branch.commit()
            return left
    with opening.sim.fork() as branch:
        as_meant = _placed(opening, nominations, classes, meant_for)
        if _count(as_meant) < _count(left):
            branch.commit()
            return as_meant
    return _placed(opening, nominations, classes, {})


def _count(demands: Sequence[Demand]) -> int:
    return sum(demand.count for demand in demands)


def _placed(
    opening: Opening, nominations: Nominations, classes: Sequence[PodClass], meant_for: Mapping[str, str]
) -> list[Demand]:
    """Those that have a machine of their own (`meant_for`: pod to claim) go first, the others where they fit best.

    Nominated pods come before waiting ones of their priority.
    """
    sim, counts = opening.sim, [0] * len(classes)
    nominations.begin()
    rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)} if meant_for else {}
    for i, cls in enumerate(classes if meant_for else ()):
        nominations.settle(cls.priority)
        wanted = Counter(rows[claim] for pod in cls.pods if (claim := meant_for.get(pod.key)) in rows)
        for row, count in sorted(wanted.items()):
            counts[i] += fill(sim, cls, count, slice(row, row + 1), BestFit())
    demands = []
    for i, cls in enumerate(classes):
        nominations.settle(cls.priority)
        left = len(cls.pods) - counts[i]
        left -= opening.placer.place(sim, cls, left) if left else 0
        if left:
            demands.append(Demand(cls, left))
    nominations.settle()
    return demands
