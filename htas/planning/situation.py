"""What every stage of a plan looks at: the simulation so far, and what it was opened on."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.opening import Opening


@dataclass(frozen=True, slots=True)
class Situation:
    """The simulation in `opening` is changed from stage to stage; the rest stays as it is."""

    opening: Opening
    snapshot: ClusterSnapshot
    policy: Policy
    now: float
    preempted_for: frozenset[str] = frozenset()
    """Waiting pods that this plan has already made room for, by key: no other node has any for them."""
