"""What every stage of a plan looks at: the simulation so far, and what it was opened on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from htas.model.policy import Policy
from htas.model.search_failures import OptionalSearch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.optional_searches import OptionalSearches
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.place.placing import Placer

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The simulation in `simulated` is changed from stage to stage; the rest stays as it is."""

    simulated: SimulatedCluster
    snapshot: ClusterSnapshot
    policy: Policy
    now: float
    placer: Placer
    """Places over the opening's pools, but on no node that batch work would have rented too long."""
    searches: OptionalSearches = field(default_factory=OptionalSearches)

    def attempt(self, search: OptionalSearch, do: Callable[[], Found], otherwise: Callable[[], Found]) -> Found:
        """What an optional search finds in the simulation; if it raises, what `otherwise` returns."""
        return self.searches.run(self.simulated.sim, search, do, otherwise)
