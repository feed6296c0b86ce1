"""Schedulers that KubeDSM is compared with (KubeDSM 6): each pod at once to the first node by an order, never moved.

The document does not say what the size of a node is; here it is what the node offers, cores before memory, so that the
order never changes: N4, N2, N3 for the biggest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from htas.model.edge import TIER_LABEL, Tier
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Ints, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.placing import Order
from tools.lab.baselines.draft import Draft, placing_by
from tools.lab.baselines.orders import LEAST_REQUESTED


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


@dataclass(frozen=True, slots=True)
class BySize:
    """The node that offers most, or least."""

    biggest_first: bool
    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        sign = -1 if self.biggest_first else 1
        offered = sign * sim.table.allocatable
        return offered[CPU_ROW, rows], offered[MEMORY_ROW, rows], rows


def by_lot(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    """Random: any node that fits, edge or cloud.

    The lot depends on the pod and on where all others are, so that the same run draws the same lots again, and
    another run others.
    """
    draft = Draft(snapshot, policy, now)
    others = " ".join(f"{pod.key}={pod.node}" for pod in snapshot.cluster.pods)
    for pod in draft.waiting:
        fitting = np.flatnonzero(draft.sim.feasible(draft.book.class_of(pod)) & draft.there)
        if len(fitting):
            draft.put(pod, Random(f"{pod.key} {others}").choice(fitting.tolist()))
        else:
            draft.leave([pod])
    return draft.written(Memory())


biggest_first = placing_by(TierFirst(Tier.EDGE, BySize(biggest_first=True)))
smallest_first = placing_by(TierFirst(Tier.EDGE, BySize(biggest_first=False)))
"""BEF and SEF: the edge in the order of its nodes' sizes, then the cloud."""
cloud_first = placing_by(TierFirst(Tier.CLOUD, LEAST_REQUESTED))
"""CF: the edge takes what the cloud has no room for."""
kube_scheduler = placing_by(TierFirst(Tier.EDGE, LEAST_REQUESTED))
"""Default Kubernetes (K8S) that prefers the edge: a taint on the cloud that repels, and affinity to edge nodes.

Both are preferences (PreferNoSchedule and preferred node affinity), with weights 3 and 2 against NodeResourcesFit's 1:
an edge node that fits always scores higher than a cloud node. Among edge nodes the least allocated is taken.
"""
