"""What the cluster costs before and after a plan, and the least its work could cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.constraints import Taint, Toleration, untolerated
from htas.model.nodes import Node
from htas.model.plan import Cost
from htas.model.pods import Pod
from htas.model.policy import AutoscalingAlgorithm, Policy
from htas.model.proposals import Launch, Proposal
from htas.model.search_failures import OptionalSearch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Ints
from htas.planning.cluster.feasibility.taints import CORDON
from htas.planning.cluster.machines import learned_allocatable, nanos_paid
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.place.context import PlanContext
from htas.planning.provision.bound import lower_bound_nanos


def cost_of(
    context: PlanContext,
    launch: Sequence[Launch],
    proposals: Sequence[Proposal],
    placements: Mapping[int, list[Pod]],
) -> Cost:
    """Prices an hour, as `nanos_paid` has them.

    Edge nodes that were not bought have the edge's price, if it has one. Other nodes whose flavour the catalogue does
    not know are paid for elsewhere and count nothing.
    """
    simulated, snapshot, policy = context.simulated, context.snapshot, context.policy
    claims = {claim.id: claim for claim in snapshot.claims}
    before = sum(nanos_paid(node, claims.get(node.claim or ""), policy) for node in _present(simulated))
    launch = [*launch, *(machine for each in proposals for machine in each.launches)]
    saved = sum(each.value for each in proposals if each.gives_back)
    after = before + sum(machine.nanos_per_hour for machine in launch) - saved
    beside = _beside(simulated, policy, placements)
    bound = context.attempt(
        OptionalSearch.LOWER_BOUND, lambda: _bound(simulated, snapshot, policy, placements, beside), lambda: 0
    )
    if launch and any(group.autoscaling is AutoscalingAlgorithm.CHEAPEST_MIX for group in policy.groups):
        by_patterns = context.attempt(
            OptionalSearch.LOWER_BOUND,
            lambda: _pattern_bound(simulated, snapshot, policy, placements, beside, after - beside.nanos),
            lambda: 0,
        )
        bound = max(bound, by_patterns)
    return Cost(policy.catalogue.currency, before, after, bound + beside.nanos, beside.nanos)


def _present(simulated: SimulatedCluster) -> list[Node]:
    """Nodes and machines on their way: the rows there were before this plan bought any."""
    last = max((pool.rows.stop for pool in simulated.pools), default=0)
    return simulated.sim.table.nodes[:last]


@dataclass(frozen=True, slots=True)
class Beside:
    """Nodes that are there whatever HTAS buys: not its own, without a price, or of the edge.

    Their room counts as free in the bound, and what they cost is part of it, as it is of the costs before and after.
    """

    rooms: tuple[Node, ...]
    """Those that some of the work could run on."""
    closed: frozenset[int]
    """Rows of those that take nothing more, such as the control plane: what runs there stays, and is no demand."""
    nanos: int


def _beside(simulated: SimulatedCluster, policy: Policy, placements: Mapping[int, list[Pod]]) -> Beside:
    rows = [(row, node) for row, node in enumerate(_present(simulated)) if _is_beside(policy, node)]
    rooms, closed = [], set()
    tolerations = _tolerations(simulated, placements) if any(_taints(node) for _, node in rows) else ()
    for row, node in rows:
        taints = _taints(node)
        if taints and all(untolerated(taints, each) is not None for each in tolerations):
            closed.add(row)
        else:
            rooms.append(node)
    nanos = sum(policy.price_of(node) or 0 for _, node in rows)
    return Beside(tuple(rooms), frozenset(closed), nanos)


def _is_beside(policy: Policy, node: Node) -> bool:
    """Whether a node stays however the work is arranged, or is of no flavour that could be bought."""
    is_owned = node.cluster == policy.cluster and policy.group(node.group) is not None
    return not is_owned or policy.is_given(node) or policy.price_of(node) is None


def _taints(node: Node) -> tuple[Taint, ...]:
    return (*node.taints, CORDON) if node.is_unschedulable else node.taints


def _tolerations(simulated: SimulatedCluster, placements: Mapping[int, list[Pod]]) -> set[tuple[Toleration, ...]]:
    """What the work tolerates that could run elsewhere than on its node."""
    return {
        pod.constraints.tolerations
        for pods in (*simulated.running.values(), *placements.values())
        for pod in pods
        if pod.is_work
    }


def _bound(
    simulated: SimulatedCluster,
    snapshot: ClusterSnapshot,
    policy: Policy,
    placements: Mapping[int, list[Pod]],
    beside: Beside,
) -> int:
    """The bound for all work that runs or was placed, less what nodes beside the flavours could hold of it.

    DaemonSet and mirror pods are left out of the demand, and the flavours count with all they offer: both only lower
    the bound.
    """
    axis = simulated.sim.table.axis
    vectors, counts = _work(simulated, placements, beside)
    demand: Ints = counts @ vectors
    for node in beside.rooms:
        demand -= axis.vector(node.allocatable)
    flavours = policy.catalogue.flavours
    return lower_bound_nanos(
        np.maximum(demand, 0).tolist(),
        _capacities(simulated, snapshot, policy),
        [flavour.nanos_per_hour for flavour in flavours],
    )


def _pattern_bound(
    simulated: SimulatedCluster,
    snapshot: ClusterSnapshot,
    policy: Policy,
    placements: Mapping[int, list[Pod]],
    beside: Beside,
    after: int,
) -> int:
    """The same by patterns, where the cheapest mix was bought: column generation costs more than most cycles."""
    # Imported here: loading ortools takes half a second, which those who buy greedily need not spend.
    from htas.planning.solvers.cheapest_mix.whole_work import pattern_bound_nanos

    axis = simulated.sim.table.axis
    rooms = Counter(tuple(axis.vector(node.allocatable).tolist()) for node in beside.rooms)
    return pattern_bound_nanos(
        tuple(sorted(_shapes(simulated, placements, beside).items())),
        tuple(tuple(capacity) for capacity in _capacities(simulated, snapshot, policy)),
        tuple(flavour.nanos_per_hour for flavour in policy.catalogue.flavours),
        tuple(sorted(rooms.items())),
        after,
    )


def _work(simulated: SimulatedCluster, placements: Mapping[int, list[Pod]], beside: Beside) -> tuple[Ints, Ints]:
    """The work that runs or was placed: (requests: kinds × resources, counts); not that of closed nodes beside the
    flavours. Kinds may be equal."""
    work = [
        pod.requests
        for row, pods in (*simulated.running.items(), *placements.items())
        if row not in beside.closed
        for pod in pods
        if pod.is_work
    ]
    requests = {id(each): each for each in work}
    counts = Counter(map(id, work))
    vectors = [simulated.book.vector(requests[number]) for number in counts]
    shape = len(vectors), len(simulated.sim.table.axis)
    return np.array(vectors, dtype=np.int64).reshape(shape), np.array(list(counts.values()), dtype=np.int64)


def _shapes(
    simulated: SimulatedCluster, placements: Mapping[int, list[Pod]], beside: Beside
) -> Counter[tuple[int, ...]]:
    """The same work by its requests."""
    vectors, counts = _work(simulated, placements, beside)
    shapes: Counter[tuple[int, ...]] = Counter()
    for requests, count in zip(vectors.tolist(), counts.tolist(), strict=True):
        shapes[tuple(requests)] += count
    return shapes


def _capacities(simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy) -> list[list[int]]:
    """A flavour may offer more than the catalogue says, or less: the larger of both keeps the bound valid."""
    axis, learned = simulated.sim.table.axis, learned_allocatable(snapshot, policy.catalogue)
    return [
        np.maximum(axis.vector(f.allocatable), axis.vector(learned.get(f.name, f.allocatable))).tolist()
        for f in policy.catalogue.flavours
    ]
