"""What the baselines have in common: pods one by one, in an order that begins with the tier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htas.experiments.baselines.draft import Draft
from htas.model.edge import TIER_LABEL, Tier
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.orders import Order
from htas.planning.planner import Planner


@dataclass(frozen=True, slots=True)
class TierFirst:
    """Nodes of one tier before all others, and within a tier by another order."""

    tier: Tier
    within: Order
    is_stable: bool = False

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        nodes = sim.table.nodes
        is_other = [nodes[row].labels.get(TIER_LABEL) != self.tier for row in rows]
        return np.array(is_other, dtype=np.int64), *self.within.keys(sim, cls, rows)


def by_order(order: Order) -> Planner:
    """A planner that places what waits, one by one and at once, by an order; nothing is bought, moved or removed."""

    def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
        draft = Draft(snapshot, policy, now)
        draft.leave(draft.place(draft.waiting, draft.there, order))
        return draft.written(Memory())

    return plan
