"""Biggest (BEF) and smallest edge node first (SEF): the edge in the order of its nodes' sizes, then the cloud.

The document does not say what the size of a node is; here it is what the node offers, cores before memory, so that the
order never changes: N4, N2, N3 for the biggest first.
"""

from __future__ import annotations

from dataclasses import dataclass

from htas.experiments.baselines.edge.tiers import TierFirst, by_order
from htas.model.edge import Tier
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Ints, PodClass
from htas.planning.cluster.simulation import Simulation


@dataclass(frozen=True, slots=True)
class BySize:
    """The node that offers most, or least."""

    biggest_first: bool
    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        sign = -1 if self.biggest_first else 1
        offered = sign * sim.table.allocatable
        return offered[CPU_ROW, rows], offered[MEMORY_ROW, rows], rows


biggest_first = by_order(TierFirst(Tier.EDGE, BySize(biggest_first=True)))
smallest_first = by_order(TierFirst(Tier.EDGE, BySize(biggest_first=False)))
