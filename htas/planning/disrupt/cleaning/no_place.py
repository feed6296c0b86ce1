"""Why a pod of a node to be emptied fits on no other node."""

from __future__ import annotations

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility import PLACEMENT_FILTERS, resources
from htas.planning.cluster.simulation import Simulation


def obstacles(sim: Simulation, cls: PodClass) -> str:
    """What refuses a class on the nodes that are for it, as "2 Insufficient cpu"; on all open ones where none is.

    Nodes that its selector, its tolerations or its volumes rule out are passed over while there are others: nobody
    expects it there, and they would be asked one by one (3 ms on 5,000 nodes, for each node that is kept).
    """
    every = sim.all_rows
    left = sim.allowed(cls) & sim.table.is_open[every]
    if not left.any():
        return _listed(sim.diagnose(cls))
    counts: dict[str, int] = {}
    for refuse in (resources.refuse, *PLACEMENT_FILTERS):
        refused = left & False
        for refusal in refuse(sim.world, cls, every):
            where = refusal.where & left
            if where.any():
                counts[refusal.reason] = counts.get(refusal.reason, 0) + int(where.sum())
                refused |= where
        left = left & ~refused
    return _listed(counts)


def _listed(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered) or "no other node takes pods now"
