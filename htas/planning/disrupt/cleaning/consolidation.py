"""Consolidation: the least used of a group's nodes are replaced by a cheaper set, several by several.

It takes two plans, and nothing is remembered between them but what the journal holds. The first buys the replacements;
their claims name the nodes they replace. Once all of them are Ready, a plan empties those nodes as the cleaner does,
under its drain rules, its budgets and its own what-if; the replacements are simply room. If that is not possible any
more, nothing is moved, the replacements stay empty, and after a while they are released like every empty node.

A move is worth it when savings beat disruption (Karpenter's Balanced policy): (saving ÷ the group's price) ÷ (pods
moved ÷ the group's pods) ≥ ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import msgspec
import numpy as np

from htas.model.claims import taken_over_since
from htas.model.money import price_text
from htas.model.moves import Move
from htas.model.plan import KeptNode
from htas.model.pods import Pod, WorkKind
from htas.model.policy import AutoscalingAlgorithm, NodeGroup, Policy
from htas.model.proposals import Launch, Proposal, Release
from htas.model.reasons import Kept, ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.machines import learned_allocatable
from htas.planning.cluster.outgoing import Grounds, Outgoing, outgoing
from htas.planning.cluster.pools import Pool
from htas.planning.cluster.run_length import remaining_s
from htas.planning.cluster.taking_over import is_open
from htas.planning.disrupt.cleaning.candidates import DrainCandidate
from htas.planning.disrupt.cleaning.rescheduling import Rescheduler
from htas.planning.disrupt.cleaning.utilization import is_empty
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer
from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.provision.offers import Offer, claim_id, offers_of
from htas.planning.provision.purchase import Attempt, attempt
from htas.planning.rental.moving import LeastAdded
from htas.planning.rental.new_machines import ExpectedRental

MAY_BE_REPLACED = frozenset(
    {
        Kept.NOT_UNDERUTILIZED,
        Kept.TOO_MANY_UNHEALTHY,
        Kept.NO_PLACE_TO_MOVE_PODS,
        Kept.EMPTY_BEFORE_MIGRATION_PAYS,
        Kept.DRAINS_BEFORE_PERIOD_ENDS,
    }
)
"""Nodes that stay because nothing that is there could take their pods: something cheaper might.

Of those that wait for their paid hour's end that is not known yet, and what replaces them has to be bought before it
is: looked at only when they were emptied, a machine of eight cores was gone 142 s after its hour, and two were paid.
So a rehearsal refuses to buy for what fits on nodes that are there.
"""
SOON_S = 3600.0
"""Batch work that ends within an hour is left to end: its machine goes by itself before a new one would have paid."""
BUDGET_S = 0.3
"""How long the mix for one set of nodes is searched for, counted in steps."""


@dataclass(frozen=True, slots=True)
class Replacing:
    """Nodes to be replaced, by machines to buy first."""

    group: NodeGroup
    candidates: tuple[DrainCandidate, ...]
    offers: tuple[Offer, ...]
    saving: int
    """In billionths an hour."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(each.node.name for each in self.candidates)

    @property
    def outgoing(self) -> Outgoing | None:
        """Why the first of them goes that goes however well it is used; None: they are replaced for their price."""
        return next((each.outgoing for each in self.candidates if each.outgoing is not None), None)


class Replacements:
    """What earlier plans have bought to replace nodes with, as the claims tell."""

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy, now: float) -> None:
        there = {node.name for node in snapshot.cluster.nodes}
        self.claims = [
            claim
            for claim in snapshot.claims
            if claim.replaces and not there.isdisjoint(claim.replaces) and is_open(claim, policy, now)
        ]
        self._replaced = {node: claim for claim in self.claims for node in claim.replaces}
        self._coming = {node for claim in self.claims if claim.is_coming for node in claim.replaces}
        self._held = {claim.node or claim.id for claim in self.claims} | {claim.id for claim in self.claims}
        self._in_vain = {vain.instead_of: vain for vain in _in_vain(snapshot, policy, now)}
        self.in_vain = frozenset(vain.node for vain in self._in_vain.values())
        """Those that are to go themselves: no pod is moved there, and a group is no larger for them."""

    @property
    def nodes(self) -> list[str]:
        """Those of them that have joined."""
        return [claim.node for claim in self.claims if claim.node is not None]

    def is_replaced(self, node: str) -> bool:
        """Whether a node is to be emptied now: all its replacements are Ready."""
        return node in self._replaced and node not in self._coming

    def keeps(self, candidate: DrainCandidate) -> KeptNode | None:
        """Why a node stays while a replacement is under way."""
        name = candidate.node.name
        if name in self._coming:
            return KeptNode(name, Kept.BEING_REPLACED, "its replacement is starting")
        vain = self._in_vain.get(name)
        if vain is not None and (vain.is_empty or not candidate.is_empty):
            message = f"{vain.node}, launched to replace it, is to be deleted itself: {vain.why}"
            return KeptNode(name, Kept.BEING_REPLACED, message)
        if candidate.is_empty and (name in self._held or candidate.claim.id in self._held):
            nodes = ", ".join(sorted(candidate.claim.replaces))
            return KeptNode(name, Kept.BEING_REPLACED, f"it is to replace {nodes}")
        return None

    def bought_at(self, node: str) -> float | None:
        """When the replacements of a node were ordered; None: none were."""
        return taken_over_since(node, self.claims)

    def price_for(self, nodes: Iterable[str]) -> int:
        """What the replacements of nodes cost an hour, in billionths."""
        wanted = set(nodes)
        return sum(claim.nanos_per_hour for claim in self.claims if not wanted.isdisjoint(claim.replaces))


@dataclass(frozen=True, slots=True)
class _Vain:
    """A machine that was bought instead of a node, and is to go itself."""

    node: str
    instead_of: str
    why: str
    is_empty: bool


def _in_vain(snapshot: ClusterSnapshot, policy: Policy, now: float) -> Iterator[_Vain]:
    """Machines that were outgoing as they came, while what they were bought to replace is there.

    What is bought now is then no better than what it replaces: of an image with the old kubelet one node after another
    was replaced by its like, for ever, and all pods were disturbed each time.
    """
    nodes = {node.name: node for node in snapshot.cluster.nodes}
    grounds = Grounds.of(snapshot, policy, now)
    for claim in snapshot.claims:
        node = nodes.get(claim.node or "")
        replaced = [name for name in claim.replaces if name in nodes]
        if node is None or not replaced:
            continue
        going = outgoing(node, claim, grounds.at(claim.rented_since))
        if going is not None:
            empty = is_empty([pod for pod in snapshot.cluster.pods if pod.node == node.name], now)
            yield from (_Vain(node.name, name, going.why, empty) for name in replaced)


def emptied(
    candidates: Sequence[DrainCandidate], replacements: Replacements, rescheduler: Rescheduler
) -> list[tuple[DrainCandidate, list[Move]]]:
    """The replaced nodes that can be emptied, with their moves: all, or so many that it pays, or none.

    Outgoing ones go whatever their replacements cost. What these are rented longer for their work was part of the
    decision to buy them: one machine instead of two is never worth it for the first of them alone.

    What is decided is carried out in the simulation; the rows of emptied nodes stay closed.
    """
    done: list[tuple[DrainCandidate, list[Move]]] = []
    row_of = rescheduler.sim.table.row_of
    bought = [row_of[name] for name in replacements.nodes if name in row_of]
    bargained = _with_bought_for_nothing(rescheduler, bought)
    with rescheduler.sim.fork() as branch:
        for candidate in candidates:
            moves = bargained.empty(candidate, agreed_at=replacements.bought_at(candidate.node.name))
            if not isinstance(moves, KeptNode):
                done.append((candidate, moves))
        saved = sum(candidate.price for candidate, _ in done)
        is_worth = saved > replacements.price_for(candidate.node.name for candidate in candidates)
        if done and (is_worth or all(candidate.outgoing is not None for candidate, _ in done)):
            branch.commit()
            rescheduler.held.update(bargained.held.difference(bought))
            return done
    return []


def _with_bought_for_nothing(rescheduler: Rescheduler, bought: Sequence[int]) -> Rescheduler:
    """Who empties nodes where what was bought for that adds nothing: pods went past it to machines of no higher price,
    which they then held for ever, and it was given back unused.
    """
    rentals, held = rescheduler.rentals.without(bought), rescheduler.held.union(bought)
    judge = LeastAdded(rescheduler.sim, rentals, held)
    placer = Placer(rescheduler.policy, rescheduler.placer.pools, judge, borrows=rescheduler.placer.borrows)
    return replace(rescheduler, rentals=rentals, placer=placer, held=held)


class Consolidator:
    """Looks for sets of nodes that a cheaper set would replace, group by group."""

    def __init__(self, rescheduler: Rescheduler, snapshot: ClusterSnapshot, pods_on: dict[str, list[Pod]]) -> None:
        self._rescheduler = rescheduler
        self._snapshot = snapshot
        self._pods_on = pods_on

    def best(self, group: NodeGroup, candidates: Iterable[DrainCandidate], at_once: int) -> list[Replacing]:
        """Of the one, two, … least used nodes, `at_once` at most, those whose replacement saves most, if that is worth
        the disruption.
        """
        rules, now = group.cleaning.consolidation, self._rescheduler.now
        ripe = [
            each
            for each in candidates
            if now - each.claim.since >= rules.after_s
            and not self._ends_soon(each)
            and self._rescheduler.guessed(each, each.work) is None
        ]
        ripe.sort(key=lambda candidate: candidate.rank)
        found: list[Replacing] = []
        for size in range(min(at_once, len(ripe)), 0, -1):
            replacing = self._tried(group, ripe[:size])
            if replacing is not None:
                found.append(replacing)
        return sorted(found, key=lambda replacing: (-replacing.saving, len(replacing.candidates)))[:1]

    def _ends_soon(self, candidate: DrainCandidate) -> bool:
        policy, now = self._rescheduler.policy, self._rescheduler.now
        is_batch = all(pod.kind is WorkKind.BATCH for pod in candidate.work)
        return is_batch and max((remaining_s(pod, policy, now) for pod in candidate.work), default=0.0) < SOON_S

    def _tried(self, group: NodeGroup, nodes: Sequence[DrainCandidate]) -> Replacing | None:
        """The cheapest replacement of a set, if it holds all pods in a what-if and is worth it; nothing is changed."""
        price = sum(candidate.price for candidate in nodes)
        least = max(1.0, group.cleaning.consolidation.min_saving * price)
        if price - self.bound(group, nodes) < least:
            return None  # told in microseconds, and nearly always so in a cluster that is packed well
        offers = self.offers_for(group, nodes)
        saving = price - sum(offer.price for offer in offers)
        if not offers or saving < least:
            return None
        moved = self.rehearsed(nodes, offers)
        if moved is None or not self._is_worth(group, saving, moved):
            return None
        return Replacing(group, tuple(nodes), offers, saving)

    def instead_of(self, group: NodeGroup, node: DrainCandidate) -> list[Replacing]:
        """What takes over from a node that is to go whatever that costs, if anything would."""
        offers = () if self._ends_soon(node) and not node.is_urgent else self.offers_for(group, [node])
        if not offers or self.rehearsed([node], offers) is None:
            return []
        return [Replacing(group, (node,), offers, node.price - sum(offer.price for offer in offers))]

    def offers_for(self, group: NodeGroup, nodes: Sequence[DrainCandidate]) -> tuple[Offer, ...]:
        """The machines to buy instead of nodes; none, where nothing would take all their pods, or all have room."""
        bought = self._bought(group, nodes)
        return () if bought is None else tuple(machine.offer for machine in bought.machines)

    def bound(self, group: NodeGroup, nodes: Sequence[DrainCandidate]) -> int:
        """What a replacement costs at least, were work fluid and all room on the other nodes free for it."""
        rescheduler, sim = self._rescheduler, self._rescheduler.sim
        axis, flavours = sim.table.axis, rescheduler.policy.flavours_of(group)
        gone = {sim.table.row_of[candidate.node.name] for candidate in nodes}
        open_rows = [row for row in np.flatnonzero(sim.table.is_open[: len(sim.table)]).tolist() if row not in gone]
        demand = -np.maximum(sim.table.free[:, open_rows], 0).sum(axis=1)
        for candidate in nodes:
            for pod in candidate.work:
                demand += rescheduler.book.vector(pod.requests)
        learned = learned_allocatable(self._snapshot, rescheduler.policy.catalogue)
        capacities = [
            np.maximum(axis.vector(f.allocatable), axis.vector(learned.get(f.name, f.allocatable))).tolist()
            for f in flavours
        ]
        return lower_bound_nanos(np.maximum(demand, 0).tolist(), capacities, [f.nanos_per_hour for f in flavours])

    def _bought(self, group: NodeGroup, nodes: Sequence[DrainCandidate]) -> Attempt | None:
        """What the cheapest mix would buy for what finds no room once the nodes are gone; None: not for all of it."""
        rescheduler, sim = self._rescheduler, self._rescheduler.sim
        movable = [rescheduler.movable(candidate) for candidate in nodes]
        if any(isinstance(pods, KeptNode) for pods in movable):
            return None
        mixing = msgspec.structs.replace(
            group, autoscaling=AutoscalingAlgorithm.CHEAPEST_MIX, mix_budget_s=min(group.mix_budget_s, BUDGET_S)
        )
        policy = msgspec.structs.replace(rescheduler.policy, groups=(mixing,))
        with sim.fork():
            for candidate in nodes:
                sim.vacate(sim.table.row_of[candidate.node.name])
            demands: dict[int, Demand] = {}
            for candidate, pods in zip(nodes, movable, strict=True):
                row = sim.table.row_of[candidate.node.name]
                for pod in pods if not isinstance(pods, KeptNode) else ():
                    sim.unplace(rescheduler.book.class_of(pod), row)
                    cls = rescheduler.moved(pod, group.cleaning.migration)
                    demands.setdefault(id(cls), Demand(cls, 0)).count += 1
            for demand in demands.values():
                demand.count -= rescheduler.placer.anywhere().place(sim, demand.cls, demand.count)
            left = [demand for demand in demands.values() if demand.count]
            offers = offers_of(sim, policy, self._snapshot, [demand.cls for demand in left])
            rental = ExpectedRental(policy, [demand.cls for demand in left], self._snapshot.taken_at)
            found = attempt(sim, policy, self._snapshot, left, rescheduler.placer.anywhere(), offers, rental, hints=())
        return None if any(demand.count for demand in found.left) else found

    def rehearsed(self, nodes: Sequence[DrainCandidate], offers: Sequence[Offer]) -> int | None:
        """How many pods move when the replacements are there, each node emptied as it will be; None: it fails."""
        rescheduler, sim = self._rescheduler, self._rescheduler.sim
        with sim.fork():
            runtime = nodes[0].node.runtime  # nodes of one group are made of one image: they restore what those do
            bare = (offer.node(rescheduler.policy, f"replacement-{i}") for i, offer in enumerate(offers))
            machines = [msgspec.structs.replace(machine, runtime=runtime) for machine in bare]
            rows = sim.add_nodes(machines)
            room = Pool(offers[0].group.name, slice(rows.start, rows.stop))
            placer = Placer(rescheduler.policy, [*rescheduler.placer.pools, room], borrows=rescheduler.placer.borrows)
            rehearsing = replace(rescheduler, placer=placer)
            moved = 0
            for candidate in nodes:
                moves = rehearsing.empty(candidate)
                if isinstance(moves, KeptNode):
                    return None
                moved += len(moves)
        return moved

    def _is_worth(self, group: NodeGroup, saving: int, moved: int) -> bool:
        """Savings against disruption, each as a share of the group's: in whole numbers but for the ratio itself."""
        policy, price, pods = self._rescheduler.policy, 0, 0
        for node in self._snapshot.cluster.nodes:
            paid = policy.catalogue.price(node.flavour, node.zone)
            if node.cluster == policy.cluster and node.group == group.name and paid is not None:
                price += paid.nanos_per_hour
                pods += sum(pod.is_work for pod in self._pods_on.get(node.name, ()))
        return saving * pods >= group.cleaning.consolidation.ratio * moved * price


def proposals_of(
    replacing: Iterable[Replacing], snapshot: ClusterSnapshot, policy: Policy, first: int = 0
) -> Iterator[Proposal]:
    """What replacements begin with: purchases, numbered from `first`, after those that the plan has made already."""
    number = count(first)
    for each in replacing:
        what, currency = f"replaces {', '.join(each.nodes)}", policy.catalogue.currency
        what += f", {each.outgoing.which}" if each.outgoing is not None else ""
        what += f", saves {price_text(each.saving)} {currency} an hour" if each.saving > 0 else ""
        reason = each.outgoing.reason if each.outgoing is not None else ProposalReason.CONSOLIDATED
        launches = tuple(
            Launch(
                claim=claim_id(policy, snapshot, offer.group.name, next(number)),
                group=offer.group.name,
                flavour=offer.flavour.name,
                zone=offer.zone,
                nanos_per_hour=offer.price,
                pods=(),
                why=what,
                replaces=each.nodes,
            )
            for offer in each.offers
        )
        releases = tuple(Release(old.node.name, old.claim.id) for old in each.candidates)
        yield Proposal(reason, (), launches, releases, value=each.saving, message=what)


def may_look_at(group: NodeGroup, looked_at: float | None, now: float) -> bool:
    """Whether a group may be looked at: not again soon, whatever came of the last time."""
    return bool(group.cleaning.consolidation.enabled) and has_cooled_down(group, looked_at, now)


def has_cooled_down(group: NodeGroup, looked_at: float | None, now: float) -> bool:
    return looked_at is None or now - looked_at >= group.cleaning.consolidation.cool_down_s
