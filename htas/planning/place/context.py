"""What every stage of a plan looks at: the simulation so far, and what it was opened on."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.place.placing import Placer


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The simulation in `simulated` is changed from stage to stage; the rest stays as it is."""

    simulated: SimulatedCluster
    snapshot: ClusterSnapshot
    policy: Policy
    now: float
    placer: Placer
    """Places over the opening's pools, but on no node that batch work would have rented too long."""
