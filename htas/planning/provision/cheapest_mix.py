"""Buying the mix: waiting classes become items, offers become kinds, patterns become machines with their pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from htas.model.policy import AutoscalingAlgorithm
from htas.planning.cluster.classes import Ints
from htas.planning.place.demand import Demand
from htas.planning.place.placing import BestFit, fill
from htas.planning.provision.greedy import GreedyProvisioner
from htas.planning.provision.offers import Offer
from htas.planning.provision.steady import NEARLY_AS_GOOD
from htas.planning.provision.trimming import FilledMachine
from htas.planning.rental.new_machines import ExpectedRental
from htas.planning.solvers.cheapest_mix.finish import Counts, within_limits
from htas.planning.solvers.cheapest_mix.instance import Effort, Limit, MixProblem, Pattern, pattern_of
from htas.planning.solvers.cheapest_mix.mix import cheapest

MOST_ITEMS = 300
"""With more kinds of items a linear programme over patterns takes too long; the greedy buys for them."""


@dataclass(slots=True)
class _Item:
    """Demands that are alike for buying."""

    demands: list[Demand] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(demand.count for demand in self.demands)


def buy_mix(
    provisioner: GreedyProvisioner, demands: Sequence[Demand], hints: Sequence[FilledMachine], rental: ExpectedRental
) -> None:
    """Buy the cheapest mix for the demands that have no wishes about other pods; their counts become what is left.

    `hints` are the machines that the greedy would buy. Where work comes steadily, flavours that are dear once they are
    full are left to the greedy, for what fits no other. Where no mix is found within the limits nothing is bought.
    """
    least = NEARLY_AS_GOOD * max(map(provisioner.worth, provisioner.offers), default=0.0)
    offers = [
        offer
        for offer in provisioner.offers
        if provisioner.worth(offer) >= least
        and offer.group.autoscaling is AutoscalingAlgorithm.CHEAPEST_MIX
        and provisioner.allowance.bound(offer).count > 0
    ]
    wanted = [
        demand
        for demand in demands
        if demand.count and not demand.cls.is_dynamic and any(offer.could_hold(demand.cls) for offer in offers)
    ]
    if not wanted:
        return
    work = _Work.of(offers, wanted, rental)
    if len(work.items) > MOST_ITEMS:
        return
    budget_s = max(offer.group.mix_budget_s for offer in offers)
    mix = _solved(work, provisioner, work.patterns_of(hints), Effort(1000.0 * budget_s))
    for pattern, count in sorted((mix or {}).items(), key=lambda item: (item[0].kind, item[0].counts)):
        _buy(provisioner, work, pattern, count)


def _solved(work: _Work, provisioner: GreedyProvisioner, hints: Counts, effort: Effort) -> Counts | None:
    """The mix; limits come into it only if they forbid the one that is cheapest without them."""
    free = cheapest(work.instance, hints, effort)
    limits = tuple(
        Limit(tuple(usage(offers[0]) for offers in work.kinds), left) for usage, left in provisioner.allowance.rows()
    )
    limited = work.instance.within(limits)
    if free is not None and within_limits(limited, free.counts):
        return free.counts
    bound = cheapest(limited, hints, Effort(max(effort.left, 0.3 * effort.spent)))
    return bound.counts if bound is not None else None


@dataclass(frozen=True, slots=True)
class _Work:
    """An instance, and what its items and kinds stand for."""

    instance: MixProblem
    items: list[_Item]
    item_of: Mapping[int, int]
    """By the class's identity."""
    kinds: list[list[Offer]]
    """Each kind's offers: the same flavour of a group in several zones where it costs the same."""

    @classmethod
    def of(cls, offers: Sequence[Offer], demands: Sequence[Demand], rental: ExpectedRental) -> _Work:
        holds = sorted({rental.hold(demand.cls) for demand in demands})
        items: dict[tuple[object, ...], _Item] = {}
        for demand in demands:
            takers = tuple(offer.would_take(demand.cls) for offer in offers)
            key = demand.cls.requests.tobytes(), holds.index(rental.hold(demand.cls)), takers
            items.setdefault(key, _Item()).demands.append(demand)
        examples = [item.demands[0].cls for item in items.values()]
        kinds: dict[tuple[object, ...], list[Offer]] = {}
        for offer in offers:
            takes = tuple(offer.would_take(example) for example in examples)
            kinds.setdefault((offer.kind, offer.free.tobytes(), takes), []).append(offer)
        used = np.flatnonzero(np.array([example.requests for example in examples]).any(axis=0))
        instance = MixProblem(
            requests=np.array([example.requests[used] for example in examples], dtype=np.int64),
            counts=np.array([item.count for item in items.values()], dtype=np.int64),
            levels=np.array([level for _, level, _ in items], dtype=np.int64),
            free=np.array([offers[0].free[used] for offers in kinds.values()], dtype=np.int64),
            prices=np.array([offers[0].price for offers in kinds.values()], dtype=np.int64),
            takes=np.array([key[2] for key in kinds], dtype=np.bool_),
            holds=tuple(holds),
        )
        whose = {id(demand.cls): i for i, item in enumerate(items.values()) for demand in item.demands}
        return cls(instance, list(items.values()), whose, list(kinds.values()))

    def patterns_of(self, machines: Sequence[FilledMachine]) -> Counts:
        """Machines bought otherwise as patterns, as far as their contents are items."""
        kind_of = {id(offer): number for number, offers in enumerate(self.kinds) for offer in offers}
        found: Counts = {}
        for machine in machines:
            counts: Ints = np.zeros(len(self.items), dtype=np.int64)
            for cls, count in machine.contents:
                if id(cls) in self.item_of:
                    counts[self.item_of[id(cls)]] += count
            if counts.any() and id(machine.offer) in kind_of:
                pattern = pattern_of(self.instance, kind_of[id(machine.offer)], counts)
                found[pattern] = found.get(pattern, 0) + 1
        return found


def _buy(provisioner: GreedyProvisioner, work: _Work, pattern: Pattern, count: int) -> None:
    """Machines of one pattern, zone by zone in balance, each filled with what the pattern holds."""
    offers = work.kinds[pattern.kind]
    for _ in range(count):
        open_offers = [offer for offer in offers if provisioner.allowance.bound(offer).count > 0]
        wanted = [(work.items[i], n) for i, n in enumerate(pattern.counts) if n and work.items[i].count]
        if not open_offers or not wanted:
            return
        offer = min(open_offers, key=lambda offer: (provisioner.allowance.in_zone(offer), offer.zone or ""))
        row = provisioner.add(offer, 1).start
        for item, most in wanted:
            _fill(provisioner, item, most, row)


def _fill(provisioner: GreedyProvisioner, item: _Item, most: int, row: int) -> None:
    for demand in item.demands:
        count = min(demand.count, most)
        if count:
            placed = fill(provisioner.sim, demand.cls, count, slice(row, row + 1), BestFit())
            demand.count -= placed
            most -= placed
