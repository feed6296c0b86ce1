"""The purchase: from waiting work to machines with their pods, placed in the simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from htas.model.policy import AutoscalingAlgorithm, NodeGroup, Policy
from htas.model.reasons import Unplaced
from htas.model.search_failures import OptionalSearch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.message import summary
from htas.planning.cluster.optional_searches import OptionalSearches
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer
from htas.planning.provision.balanced import BalancedProvisioner
from htas.planning.provision.greedy import GreedyProvisioner, Way
from htas.planning.provision.levelling import placed_since
from htas.planning.provision.limits import Allowance
from htas.planning.provision.namespace_limits import affordable, reason_of_limit
from htas.planning.provision.nearest import obstacle
from htas.planning.provision.offers import Offer, claim_id, offers_of
from htas.planning.provision.refusing import less_than_promised, refused_by_all, zones_missing
from htas.planning.provision.steady import NOT_STEADY, Steady
from htas.planning.provision.trimming import Assignment, FilledMachine, drop_superfluous, right_size
from htas.planning.rental.new_machines import ExpectedRental

MOST_KINDS = 500
"""With more kinds of work one way is tried, each part alone: 2,000 kinds take 2 s a way, and so many fill machines in
any of them.
"""

MOST_PODS = 20_000
"""With more pods, too: 49,000 of 200 kinds fill machines as well in one way, within a hundredth of the price."""

DIVERSE = 64
"""From so many kinds of work of one length on, machines are filled with the pods that match, and no other way is tried.
On a cluster of 400 kinds that is 8 % cheaper (docs/benchmarks.md)."""

MOST_BALANCED = 5000
"""With more pods that takes too long: each pod is chosen among all kinds."""

MOST_DYNAMIC = 16
"""With more kinds that spread, or that care for other pods, one way is tried: each of these pods is judged alone."""


@dataclass(frozen=True, slots=True)
class BoughtMachine:
    """A machine to launch: its claim, its offer and its row in the simulation."""

    claim: str
    offer: Offer
    row: int


@dataclass(frozen=True, slots=True)
class Purchase:
    """What to buy, and which demands nothing could be bought for (their counts are what is left)."""

    bought: tuple[BoughtMachine, ...]
    offers: tuple[Offer, ...]
    allowance: Allowance


def purchase(
    sim: Simulation,
    policy: Policy,
    snapshot: ClusterSnapshot,
    demands: Sequence[Demand],
    placer: Placer,
    expected: Sequence[Demand] = (),
    steady: Steady = NOT_STEADY,
    searches: OptionalSearches | None = None,
    small_groups: Collection[str] = (),
) -> Purchase:
    """Buy for demands (in placing order), whose counts are reduced to what stays without room.

    `expected` is work that has not come yet: it is bought for beside the demands, and only where all of these get
    their room and another machine could still be bought for what comes otherwise than expected. `steady` is work that
    will fill what is left of the machines: they are chosen for it, and not bought for it.

    `searches` runs those ways to buy that the plan can do without. `small_groups` are brought up to their minimum size.

    The shopping happens in a fork; what is bought in the end is then added and filled for good, so that machines
    tried and dropped leave no trace in later decisions.
    """
    searches = searches or OptionalSearches()
    allowance = Allowance(policy, snapshot)
    below = [g for g in policy.groups if g.name in small_groups and allowance.nodes_of(g.name) < g.min_nodes]
    if not below and not expected and not any(demand.count for demand in demands):
        return Purchase((), (), allowance)  # as in most cycles: nothing to judge offers for
    known = [demand.cls for demand in (*demands, *expected, *steady.at_once)]
    offers = offers_of(sim, policy, snapshot, [*known, *steady.recent])
    chosen = _chosen(sim, policy, snapshot, [*demands, *expected], placer, offers, steady, searches)
    if expected and (any(demand.count for demand in chosen.left[: len(demands)]) or not _leaves_room(chosen)):
        chosen = _chosen(sim, policy, snapshot, demands, placer, offers, steady, searches)
    for demand, left in zip(demands, chosen.left, strict=False):
        demand.count = left.count
    bought = _settle(sim, policy, snapshot, chosen.machines, offers, chosen.allowance, below)
    work_that_waits = {id(demand.cls) for demand in demands}
    for cls, row, count in chosen.elsewhere:
        if id(cls) in work_that_waits:
            sim.place(cls, row, count)
    return Purchase(bought, tuple(offers), chosen.allowance)


def _chosen(
    sim: Simulation,
    policy: Policy,
    snapshot: ClusterSnapshot,
    demands: Sequence[Demand],
    placer: Placer,
    offers: Sequence[Offer],
    steady: Steady,
    searches: OptionalSearches,
) -> Attempt:
    """The best of the greedy's ways, and the cheapest mix where a group asks for that; the first of equals."""
    left = [demand for demand in demands if demand.count]
    rental = ExpectedRental(policy, [demand.cls for demand in demands], snapshot.taken_at)

    def tried(way: Way, hints: Sequence[FilledMachine] | None = None) -> Attempt:
        return attempt(sim, policy, snapshot, demands, placer, offers, rental, steady, way, hints)

    def best(found: Sequence[Attempt]) -> Attempt:
        return min(found, key=lambda attempt: attempt.rank(rental))

    def optional(search: OptionalSearch, more: Callable[[], list[Attempt]]) -> list[Attempt]:
        return searches.run(sim, search, more, list)

    def with_mix(found: list[Attempt]) -> list[Attempt]:
        if not any(group.autoscaling is AutoscalingAlgorithm.CHEAPEST_MIX for group in policy.groups):
            return found
        hints = best(found).machines
        return found + optional(OptionalSearch.CHEAPEST_MIX, lambda: [tried(Way.TOGETHER, hints)])

    if not steady and _is_diverse(left, rental):
        balanced = optional(OptionalSearch.OTHER_WAYS, lambda: [tried(Way.BALANCED)])
        if balanced:
            return best(with_mix(balanced))
    first = Way.TOGETHER if len(left) <= MOST_KINDS else Way.ALONE
    found = [tried(first)]
    if not found[0].machines:
        return found[0]
    is_few = sum(demand.count for demand in left) <= MOST_PODS
    if first is Way.TOGETHER and is_few and sum(demand.cls.is_dynamic for demand in left) <= MOST_DYNAMIC:
        found += optional(
            OptionalSearch.OTHER_WAYS, lambda: [tried(way) for way in _other_ways(found[0], rental, left, steady)]
        )
    return best(with_mix(found))


def _is_diverse(demands: Sequence[Demand], rental: ExpectedRental) -> bool:
    """Whether how machines are filled decides, and not how they are judged: many kinds of work of one length."""
    return (
        len(demands) >= DIVERSE
        and sum(demand.count for demand in demands) <= MOST_BALANCED
        and len({rental.hold(demand.cls) for demand in demands}) == 1
    )


def _other_ways(together: Attempt, rental: ExpectedRental, demands: Sequence[Demand], steady: Steady) -> Iterator[Way]:
    """The ways that may find something else. Where work keeps coming it fills what the first ones buy, however long."""
    if together.is_judged_together:
        yield Way.ALONE
    if steady:
        return
    if sum(demand.count for demand in demands) <= MOST_BALANCED:
        yield Way.BALANCED
    if len(together.machines) > 1 or len(together.machines[0].contents) > 1:
        yield Way.BY_WORK
    if len({rental.hold(demand.cls) for demand in demands}) > 1:
        yield Way.BY_HOLD


def _leaves_room(chosen: Attempt) -> bool:
    """Whether after all machines one more of each kind bought could be had: none takes the last place of a limit."""
    return all(chosen.allowance.bound(machine.offer).count > 0 for machine in chosen.machines)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to buy, tried in the simulation and taken back."""

    machines: list[FilledMachine]
    elsewhere: list[Assignment]
    """What found room on nodes that were there, once machines had been bought."""
    left: list[Demand]
    allowance: Allowance
    is_judged_together: bool
    """Some machine was judged with work of other parts: judged alone others may have been bought."""

    def rank(self, rental: ExpectedRental) -> tuple[object, ...]:
        """More important work first, then the expected rental, then the price an hour: the least is best."""
        priorities = sorted({demand.cls.priority for demand in self.left}, reverse=True)
        waiting = [sum(d.count for d in self.left if d.cls.priority == priority) for priority in priorities]
        expected = sum(rental.expected(machine.offer.whole_price, machine.contents) for machine in self.machines)
        return waiting, expected, sum(machine.offer.price for machine in self.machines)


def attempt(
    sim: Simulation,
    policy: Policy,
    snapshot: ClusterSnapshot,
    demands: Sequence[Demand],
    placer: Placer,
    offers: Sequence[Offer],
    rental: ExpectedRental,
    steady: Steady = NOT_STEADY,
    way: Way = Way.TOGETHER,
    hints: Sequence[FilledMachine] | None = None,
) -> Attempt:
    """Buy greedily; or with `hints` (machines found otherwise) the cheapest mix, and greedily what that leaves."""
    allowance = Allowance(policy, snapshot)
    left = [replace(demand) for demand in demands]
    with sim.fork():
        kind = BalancedProvisioner if way is Way.BALANCED else GreedyProvisioner
        provisioner = kind(sim, policy, offers, allowance, placer, steady, way, rental)
        mark = len(sim.log)
        if hints is not None:
            # Imported here: loading ortools takes half a second, which those who buy greedily need not spend.
            from htas.planning.provision.cheapest_mix import buy_mix

            buy_mix(provisioner, left, hints, rental)
        provisioner.buy_for(left)
        machines, elsewhere = _machines(sim, provisioner, mark)
        drop_superfluous(sim, machines, elsewhere, allowance, placer, rental)
    machines = [machine for machine in machines if machine.contents]
    right_size(sim, machines, offers, allowance, provisioner.worth)
    return Attempt(machines, elsewhere, left, allowance, provisioner.has_judged_together)


def _machines(
    sim: Simulation, provisioner: GreedyProvisioner, mark: int
) -> tuple[list[FilledMachine], list[Assignment]]:
    """The machines with their contents, and what found room on nodes that were there once machines were bought."""
    machines = {row: FilledMachine(batch.offer, row) for batch in provisioner.batches for row in batch.rows}
    elsewhere: list[Assignment] = []
    for cls, row, count in placed_since(sim, mark).values():
        if row in machines:
            machines[row].add(cls, count)
        else:
            elsewhere.append((cls, row, count))
    return list(machines.values()), elsewhere


def _settle(
    sim: Simulation,
    policy: Policy,
    snapshot: ClusterSnapshot,
    machines: Sequence[FilledMachine],
    offers: Sequence[Offer],
    allowance: Allowance,
    below: Sequence[NodeGroup],
) -> tuple[BoughtMachine, ...]:
    """Add the machines with their contents, and those that bring groups `below` their minimum size up to it."""
    wanted = [(machine.offer, machine.contents) for machine in machines]
    for group in below:
        cheapest = next((offer for offer in offers if offer.group is group and allowance.bound(offer).count > 0), None)
        while cheapest is not None and allowance.nodes_of(group.name) < group.min_nodes:
            if allowance.bound(cheapest).count <= 0:
                break
            allowance.take(cheapest, 1)
            wanted.append((cheapest, []))
    claims = [claim_id(policy, snapshot, offer.group.name, i) for i, (offer, _) in enumerate(wanted)]
    rows = sim.add_nodes([offer.node(policy, claim) for (offer, _), claim in zip(wanted, claims, strict=True)])
    for row, (_, contents) in zip(rows, wanted, strict=True):
        for cls, count in contents:
            sim.place(cls, row, count)
    return tuple(BoughtMachine(claim, offer, row) for claim, (offer, _), row in zip(claims, wanted, rows, strict=True))


_TOLD_FIRST = frozenset({Unplaced.BACKING_OFF, Unplaced.CLOUD_UNREACHABLE, Unplaced.STORE_UNWRITABLE})
"""Reasons that end by themselves: told before those that somebody has to change something about."""


def explain_shortage(
    sim: Simulation, policy: Policy, cls: PodClass, bought: Purchase, refusals: dict[str, int], nodes: int
) -> tuple[Unplaced, str]:
    """Why nothing was bought for a class: the reason, and a sentence for people."""
    here = summary(refusals, nodes)
    if cls.constraints.unsupported:
        return Unplaced.NOT_SUPPORTED, "asks for " + ", ".join(cls.constraints.unsupported)
    if not any(group.is_elastic for group in policy.groups):
        return Unplaced.NO_NODE_GROUP, f"no node group launches machines; {here}"
    taking = [group for group in policy.groups if group.workload.takes(cls.kind)]
    if not any(group.is_elastic for group in taking):
        what = "that takes {} work launches machines" if taking else "takes {} work"
        return Unplaced.NO_NODE_GROUP, f"no node group {what.format(cls.kind.value)}; {here}"
    holding = [offer for offer in bought.offers if offer.could_hold(cls)]
    if not holding:
        return (
            Unplaced.NO_FLAVOUR_FITS,
            f"no flavour on offer would hold it: {obstacle(sim, policy, bought.offers, cls)}"
            f"{less_than_promised(sim, bought.offers, cls)}; {here}",
        )
    holding = affordable(sim, holding, cls)
    if not holding:
        return Unplaced.NAMESPACE_LIMIT, reason_of_limit(sim, cls)
    if cls.is_dynamic and (refused := refused_by_all(sim, policy, holding, cls)):
        return (
            Unplaced.NO_FLAVOUR_FITS,
            f"a new {holding[0].flavour.name} would not admit it either: {refused}"
            f"{zones_missing(sim, policy, holding, cls)}; {here}",
        )
    bounds = [bought.allowance.bound(offer) for offer in holding]
    open_offers = [offer for offer, bound in zip(holding, bounds, strict=True) if bound.count > 0]
    if open_offers:
        return Unplaced.NO_FLAVOUR_FITS, f"a new {open_offers[0].flavour.name} would not admit it either; {here}"
    blocking = max(bounds, key=lambda bound: (bound.reason in _TOLD_FIRST, bound.what))
    return blocking.reason, f"{blocking.what} forbids another {holding[0].flavour.name}; {here}"
