"""What the cluster costs before and after a plan, and the least its work could cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from htas.model.nodes import Node
from htas.model.plan import Cost, Launch, Removing
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.classes import Ints
from htas.planning.opening import Opening
from htas.planning.scaling.bound import lower_bound_nanos
from htas.planning.scaling.offers import learned_allocatable


def cost_of(
    opening: Opening,
    snapshot: ClusterSnapshot,
    policy: Policy,
    launch: Sequence[Launch],
    remove: Sequence[Removing],
    placements: dict[int, list[Pod]],
) -> Cost:
    """Prices an hour: the catalogue's, or for a flavour that has left it the price the machine was bought at.

    Other nodes whose flavour the catalogue does not know are paid for elsewhere and count nothing.
    """
    bought_at = {claim.id: claim.nanos_per_hour for claim in snapshot.claims}
    before = sum(_price(policy, node) or bought_at.get(node.claim or "", 0) for node in _present(opening))
    after = before + sum(item.nanos_per_hour for item in launch) - sum(item.savings_nanos_per_hour for item in remove)
    return Cost(policy.catalogue.currency, before, after, _bound(opening, snapshot, policy, placements))


def _present(opening: Opening) -> list[Node]:
    """Nodes and machines on their way: the rows there were before this plan bought any."""
    last = max((pool.rows.stop for pool in opening.placer.pools), default=0)
    return opening.sim.table.nodes[:last]


def _price(policy: Policy, node: Node) -> int | None:
    flavour = policy.catalogue.named(node.flavour)
    return flavour.nanos_per_hour if flavour is not None else None


def _bound(opening: Opening, snapshot: ClusterSnapshot, policy: Policy, placements: dict[int, list[Pod]]) -> int:
    """The bound for all work that runs or was placed, less what capacity that costs nothing could hold of it.

    DaemonSet and mirror pods are left out of the demand, and the flavours count with all they offer: both only lower
    the bound.
    """
    axis = opening.sim.table.axis
    demand: Ints = np.zeros(len(axis), dtype=np.int64)
    for pods in (*opening.running.values(), *placements.values()):
        for pod in pods:
            if not pod.is_daemon and not pod.is_mirror:
                demand += opening.book.vector(pod.requests)
    for node in _present(opening):
        if _price(policy, node) is None:
            demand -= axis.vector(node.allocatable)
    learned = learned_allocatable(snapshot, policy.catalogue)
    flavours = policy.catalogue.flavours
    # A flavour may offer more than the catalogue says, or less: the larger of both keeps the bound valid.
    capacities = [
        np.maximum(axis.vector(f.allocatable), axis.vector(learned.get(f.name, f.allocatable))).tolist()
        for f in flavours
    ]
    return lower_bound_nanos(
        np.maximum(demand, 0).tolist(), capacities, [flavour.nanos_per_hour for flavour in flavours]
    )
