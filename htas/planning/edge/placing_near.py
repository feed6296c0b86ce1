"""Waiting pods of services are placed on the edge first, as `immediate` decides, the most important first.

The rest is placed and bought for as ever. Where no node is of tier edge nothing here happens.
"""

from __future__ import annotations

from dataclasses import replace

from htas.model.pods import Pod
from htas.planning.edge.present import is_served
from htas.planning.edge.view import edge_rows, edge_view, whereabouts
from htas.planning.situation import Situation


def place_near(situation: Situation) -> frozenset[str]:
    """Place waiting pods of services on the edge, in the simulation; returns their uids."""
    placed: set[str] = set()
    waiting = _candidates(situation)
    rows = edge_rows(situation.opening, situation.policy) if waiting else ()
    if not rows:
        return frozenset()
    from htas.planning.edge.immediate import place_new  # where there is an edge alone: it loads the solver

    where = whereabouts(situation)
    for priority in sorted({pod.priority for pod in waiting}, reverse=True):
        here = {pod.uid for pod in waiting if pod.priority == priority}
        view = edge_view(situation, rows, where, new=here)
        for seat in place_new(view.state, situation.policy.edge).seats:
            pod, row = view.pods[seat.pod], view.rows[seat.node]
            # A class of its own: members of one class may be of several services, and are handed out in order.
            cls = replace(situation.opening.book.class_of(pod), pods=[pod])
            if situation.opening.sim.fits(cls, row):
                situation.opening.sim.place(cls, row)
                where[pod.uid] = situation.opening.sim.table.nodes[row].name
                placed.add(pod.uid)
    return frozenset(placed)


def _candidates(situation: Situation) -> list[Pod]:
    return [
        pod for pod in situation.opening.waiting if is_served(pod) and pod.scheduler == situation.policy.scheduler_name
    ]
