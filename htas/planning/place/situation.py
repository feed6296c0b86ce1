"""What every stage of a plan looks at: the simulation so far, and what it was opened on."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.opening import Opening
from htas.planning.place.placing import Placer


@dataclass(frozen=True, slots=True)
class Situation:
    """The simulation in `opening` is changed from stage to stage; the rest stays as it is."""

    opening: Opening
    snapshot: ClusterSnapshot
    policy: Policy
    now: float
    placer: Placer
    """Places over the opening's pools, but on no node that batch work would have rented too long."""
    preempted_for: frozenset[str] = frozenset()
    """Waiting pods that this plan has already made room for, by key: no other node has any for them."""
