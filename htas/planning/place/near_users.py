"""Waiting pods of services are placed on the edge as `immediate` decides, the most important first.

Each priority has its turn before any other work of it, and after all that is more important: a job or a pod without a
controller that asks for the edge's last core is not outbid by services below it. Where no node is of tier edge nothing
here happens.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from htas.model.search_failures import OptionalSearch
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.services import is_served
from htas.planning.place.context import PlanContext
from htas.planning.place.edge_view import edge_rows, edge_view, whereabouts


class EdgePlacement:
    """Places waiting pods of services on the edge, in the simulation, one priority after another from `begin` on."""

    def __init__(self, context: PlanContext) -> None:
        self._situation = context
        waiting, ours = context.simulated.waiting, context.policy.scheduler_name
        self._rows = edge_rows(context.simulated, context.policy) if waiting else ()
        candidates = waiting if self._rows else ()
        self._waiting = frozenset(pod.uid for pod in candidates if is_served(pod) and pod.scheduler == ours)
        self._where: dict[str, str] = {}

    def begin(self) -> None:
        """From the first priority on; again where all is placed anew."""
        context = self._situation
        search = OptionalSearch.EDGE_PLACEMENT
        self._where = context.attempt(search, lambda: whereabouts(context), dict) if self._waiting else {}

    def settle(self, classes: Sequence[PodClass]) -> None:
        """Place pods of classes of one priority on the edge, those that it decides to have, and take them from their
        classes."""
        if not self._waiting:
            return
        here = {pod.uid for cls in classes for pod in cls.pods} & self._waiting
        where = dict(self._where)
        search = OptionalSearch.EDGE_PLACEMENT
        placed = self._situation.attempt(search, lambda: self._placed(here), frozenset) if here else frozenset()
        if not placed:
            self._where = where
        for cls in classes if placed else ():
            left = [pod for pod in cls.pods if pod.uid not in placed]
            self._situation.simulated.sim.set_members(cls, left)

    def _placed(self, here: Set[str]) -> Set[str]:
        from htas.planning.solvers.edge.new_pods import place_new  # where there is an edge alone: it loads the solver

        context, sim, placed = self._situation, self._situation.simulated.sim, set()
        view = edge_view(context, self._rows, self._where, new=here)
        for seat in place_new(view.state, context.policy.edge).seats:
            pod, row = view.pods[seat.pod], view.rows[seat.target]
            # A class of its own: members of one class may be of several services, and are handed out in order.
            cls = replace(context.simulated.book.class_of(pod), pods=[pod])
            if sim.fits(cls, row):
                sim.place(cls, row)
                self._where[pod.uid] = sim.table.nodes[row].name
                placed.add(pod.uid)
        return placed
