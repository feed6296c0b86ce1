"""What the cluster costs an hour before and after a plan. What it could cost at least is asked apart (`what_if`)."""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.nodes import Node
from htas.model.plan import Cost
from htas.model.policy import Policy
from htas.model.proposals import Launch, Proposal
from htas.planning.cluster.machines import nanos_paid
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.place.context import PlanContext


def cost_of(context: PlanContext, launch: Sequence[Launch], proposals: Sequence[Proposal]) -> Cost:
    """Prices an hour, as `nanos_paid` has them.

    Edge nodes that were not bought have the edge's price, if it has one. Other nodes whose flavour the catalogue does
    not know are paid for elsewhere and count nothing.
    """
    policy, present = context.policy, _present(context.simulated)
    claims = {claim.id: claim for claim in context.snapshot.claims}
    before = sum(nanos_paid(node, claims.get(node.claim or ""), policy) for node in present)
    launch = [*launch, *(machine for each in proposals for machine in each.launches)]
    saved = sum(each.value for each in proposals if each.gives_back)
    after = before + sum(machine.nanos_per_hour for machine in launch) - saved
    beside = sum(policy.price_of(node) or 0 for node in present if _is_beside(policy, node))
    return Cost(policy.catalogue.currency, before, after, beside)


def _present(simulated: SimulatedCluster) -> list[Node]:
    """Nodes and machines on their way: the rows there were before this plan bought any."""
    last = max((pool.rows.stop for pool in simulated.pools), default=0)
    return simulated.sim.table.nodes[:last]


def _is_beside(policy: Policy, node: Node) -> bool:
    """Whether a node stays however the work is arranged, or is of no flavour that could be bought."""
    is_owned = node.cluster == policy.cluster and policy.group(node.group) is not None
    return not is_owned or policy.is_given(node) or policy.price_of(node) is None
