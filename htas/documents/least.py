"""The least that a cluster's work could cost once a plan is carried out: the lower bound of `htas simulate`. Pure."""

from __future__ import annotations

import msgspec

from htas.documents.afterwards import carried_out
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.bounding import bound_nanos
from htas.planning.what_if.lifting import holding, pinned


class Least(msgspec.Struct, frozen=True):
    """Billionths an hour."""

    nanos: int

    def is_reachable_from(self, nanos: int) -> bool:
        """Whether the bound says something of a price: a bound below half of it leaves out too much that matters, such
        as zones to spread over."""
        return 2 * self.nanos >= nanos


def least_after(view: ClusterView, made: Plan, policy: Policy) -> Least:
    """The lower bound of the cluster with what the plan places and launches, by the rules as they are."""
    present = adopt(carried_out(view, made, policy), policy, made.taken_at, as_annotated=True)
    stay = pinned(present, holding(present))
    return Least(min(bound_nanos(present, stay), made.cost.after_nanos))
