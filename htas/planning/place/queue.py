"""Stages 1 and 2: waiting pods are bundled and placed; where the usual way leaves some out, as they were bought for.

A tight mix of machines holds its pods in one way, which best fit need not find again when the machines come. Best fit
goes first, so that no pod waits for its own machine while another has room for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from htas.planning.place.bundling import bundle
from htas.planning.place.demand import Demand
from htas.planning.place.near_users import PlacingNear
from htas.planning.place.nominations import Nominations
from htas.planning.place.orders import BestFit
from htas.planning.place.placing import fill
from htas.planning.place.situation import Situation


def place(situation: Situation) -> list[Demand]:
    """Place the waiting pods in the opening's simulation; returns what has no room, in placing order."""
    opening, memory = situation.opening, situation.snapshot.memory
    meant_for = {**memory.bought_for, **memory.meant_for}
    turns = _Turns(situation)
    with opening.sim.fork() as branch:
        left = turns.placed({})
        if not left or not meant_for:
            branch.commit()
            return left
    many = _count(left)
    with opening.sim.fork() as branch:
        as_meant = turns.placed(meant_for)
        if _count(as_meant) < many:
            branch.commit()
            return as_meant
    return turns.placed({})


def _count(demands: Sequence[Demand]) -> int:
    return sum(demand.count for demand in demands)


class _Turns:
    """Who is placed after whom; may be done anew after a fork that was dropped."""

    def __init__(self, situation: Situation) -> None:
        opening, policy = situation.opening, situation.policy
        self._opening = opening
        self._placer = situation.placer
        self._near = PlacingNear(situation)
        self._nominations = Nominations(opening, policy, situation.preempted_for)
        self._waiting = (*opening.waiting, *self._nominations.lapsed)
        self._overdue = policy.overdue(situation.now)
        self._classes = bundle(self._waiting, opening.book, self._overdue)

    def placed(self, meant_for: Mapping[str, str]) -> list[Demand]:
        """Those that have a machine of their own (`meant_for`: pod to claim) go first, the others where they fit best.

        Nominated pods come before waiting ones of their priority, and of those the ones that the edge is for.
        """
        opening, near, nominations = self._opening, self._near, self._nominations
        nominations.begin()
        if near.is_needed:  # it takes pods from their classes
            near.begin()
            self._classes = bundle(self._waiting, opening.book, self._overdue)
        counts = self._placed_as_meant(meant_for) if meant_for else {}
        demands = []
        for priority, group in groupby(self._classes, key=lambda cls: cls.priority):
            classes = list(group)
            nominations.settle(priority)
            near.settle(classes, [counts.get(id(cls), 0) for cls in classes])
            for cls in classes:
                left = len(cls.pods) - counts.get(id(cls), 0)
                left -= self._placer.place(opening.sim, cls, left) if left else 0
                if left:
                    demands.append(Demand(cls, left))
        nominations.settle()
        return self._placed_again(demands)

    def _placed_again(self, demands: list[Demand]) -> list[Demand]:
        """Those that were refused a node for its rental, once more: who came after them may be on it for as long.

        A job of 300 s with precedence is no bargain on a node that ends in 30 s. One behind it that has waited too long
        to be refused is put there; then there is room for the first one, too, and nothing to wait for.
        """
        for demand in demands:
            if self._placer.has_turned_away(demand.cls):
                demand.count -= self._placer.place(self._opening.sim, demand.cls, demand.count)
        return [demand for demand in demands if demand.count]

    def _placed_as_meant(self, meant_for: Mapping[str, str]) -> dict[int, int]:
        """How many of each class (by its id) were placed on their own machines."""
        sim, counts = self._opening.sim, dict[int, int]()
        rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        for cls in self._classes:
            self._nominations.settle(cls.priority)
            wanted = Counter(rows[claim] for pod in cls.pods if (claim := meant_for.get(pod.key)) in rows)
            for row, count in sorted(wanted.items()):
                counts[id(cls)] = counts.get(id(cls), 0) + fill(sim, cls, count, slice(row, row + 1), BestFit())
        return counts
