"""Limits: how many machines of an offer may still be bought, and what forbids more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from htas.model.claims import ClaimState
from htas.model.flavours import Flavour
from htas.model.money import price_text
from htas.model.policy import Limits, Policy
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.machines import owned_machines
from htas.planning.provision.offers import Offer

UNLIMITED = 10**9


@dataclass(frozen=True, slots=True)
class Bound:
    """At most `count` machines more; `reason` and `what` say what sets this bound."""

    count: int
    reason: Unplaced
    what: str


NO_LIMITS = Limits()
UNBOUNDED = Bound(UNLIMITED, Unplaced.LIMIT_REACHED, "")


@dataclass(slots=True)
class _Used:
    """What is owned within one scope, machines on their way counted."""

    nodes: int = 0
    cpu_m: int = 0
    memory_bytes: int = 0
    nanos: int = 0

    def add(self, flavour: Flavour | None, zone: str | None, count: int = 1) -> None:
        """Machines of a flavour in a zone; None: of one that the catalogue no longer has."""
        self.nodes += count
        if flavour is not None:
            self.cpu_m += count * flavour.capacity.cpu_m
            self.memory_bytes += count * flavour.capacity.memory_bytes
            self.nanos += count * flavour.nanos_in(zone)


class Allowance:
    """Counts what is owned and bought against every limit: the group's, the cluster's, the cloud's."""

    def __init__(self, policy: Policy, snapshot: ClusterSnapshot) -> None:
        self._policy = policy
        self._headroom = snapshot.headroom
        self._cloud_problem = snapshot.cloud_problem
        self._store_problem = snapshot.store_problem
        self._backoffs = [backoff for backoff in snapshot.backoffs if backoff.until > snapshot.taken_at]
        self._cluster = _Used()
        self._groups = {group.name: _Used() for group in policy.groups}
        self._bought = _Used()
        self._flavours: Counter[str] = Counter()
        self._zones: Counter[tuple[str, str | None]] = Counter()
        granted = self._headroom.instances, self._headroom.cpu_m, self._headroom.memory_bytes
        problems = self._cloud_problem or self._store_problem or self._backoffs
        self._has_room_for_all = granted == (None, None, None) and policy.limits == NO_LIMITS and not problems
        for (group, flavour, zone), count in Counter(owned_machines(policy, snapshot)).items():
            self._count(group, flavour, zone, count)
        for claim in snapshot.claims:
            if claim.state is ClaimState.WANTED and claim.instance is None:  # in nobody's quota yet, but soon
                self._bought.add(policy.catalogue.named(claim.flavour), claim.zone)

    def _count(self, group: str, flavour_name: str, zone: str | None, count: int) -> None:
        flavour = self._policy.catalogue.named(flavour_name)
        self._flavours[flavour_name] += count
        self._zones[group, zone] += count
        self._cluster.add(flavour, zone, count)
        if group in self._groups:
            self._groups[group].add(flavour, zone, count)

    def nodes_of(self, group: str) -> int:
        """Machines of a group, those on their way and those bought here included."""
        return self._groups[group].nodes

    def in_zone(self, offer: Offer) -> int:
        return self._zones[offer.group.name, offer.zone]

    def take(self, offer: Offer, count: int) -> None:
        """Count machines as bought (negative: given back)."""
        for used in (self._cluster, self._groups[offer.group.name], self._bought):
            used.add(offer.flavour, offer.zone, count)
        self._flavours[offer.flavour.name] += count
        self._zones[offer.group.name, offer.zone] += count

    def bound(self, offer: Offer) -> Bound:
        """The tightest bound on buying more of an offer."""
        if self._has_room_for_all and offer.flavour.stock is None and offer.group.limits == NO_LIMITS:
            return UNBOUNDED  # as nearly always: asked for every offer before every purchase
        bounds = [
            *_within(offer.group.limits, self._groups[offer.group.name], offer, f"group {offer.group.name}"),
            *_within(self._policy.limits, self._cluster, offer, "the cluster"),
            *self._cloud(offer),
        ]
        return min(bounds, key=lambda bound: bound.count, default=UNBOUNDED)

    def rows(self) -> list[tuple[Callable[[Offer], int], int]]:
        """(what a machine of an offer uses, what is left) of every limit, stock and quota on more than one machine."""
        rows: list[tuple[Callable[[Offer], int], int]] = []
        for name, used, limits in (
            *((group.name, self._groups[group.name], group.limits) for group in self._policy.groups),
            (None, self._cluster, self._policy.limits),
        ):
            for most, have, uses in (
                (limits.max_nodes, used.nodes, _one),
                (limits.max_cpu_m, used.cpu_m, _cpu),
                (limits.max_memory_bytes, used.memory_bytes, _memory),
                (limits.max_nanos_per_hour, used.nanos, _price),
            ):
                rows += [(_of_group(name, uses), most - have)] if most is not None else []
        for flavour in self._policy.catalogue.flavours:
            if flavour.stock is not None:
                rows.append((_of_flavour(flavour.name), flavour.stock - self._flavours[flavour.name]))
        headroom, bought = self._headroom, self._bought
        for granted, asked, uses in (
            (headroom.instances, bought.nodes, _one),
            (headroom.cpu_m, bought.cpu_m, _cpu),
            (headroom.memory_bytes, bought.memory_bytes, _memory),
        ):
            if granted is not None:
                rows.append((uses, granted - asked))
        return rows

    def _cloud(self, offer: Offer) -> list[Bound]:
        flavour, headroom, bought = offer.flavour, self._headroom, self._bought
        bounds = [
            Bound(0, Unplaced.BACKING_OFF, f"{backoff.flavour or 'every flavour'} failed: {backoff.reason}")
            for backoff in self._backoffs
            if backoff.flavour in (None, flavour.name) and backoff.zone in (None, offer.zone)
        ]
        if self._store_problem:
            what = f"the journal, which cannot be written ({self._store_problem}),"
            bounds.append(Bound(0, Unplaced.STORE_UNWRITABLE, what))
        if self._cloud_problem:
            bounds.append(
                Bound(0, Unplaced.CLOUD_UNREACHABLE, f"the cloud, which does not answer ({self._cloud_problem}),")
            )
        if flavour.stock is not None:
            left = flavour.stock - self._flavours[flavour.name]
            bounds.append(Bound(max(0, left), Unplaced.QUOTA_REACHED, f"the stock of {flavour.name} ({flavour.stock})"))
        for name, granted, asked, each in (
            ("instances", headroom.instances, bought.nodes, 1),
            ("cpu", headroom.cpu_m, bought.cpu_m, flavour.capacity.cpu_m),
            ("memory", headroom.memory_bytes, bought.memory_bytes, flavour.capacity.memory_bytes),
        ):
            if granted is not None and each:
                left = (granted - asked) // each
                bounds.append(Bound(max(0, left), Unplaced.QUOTA_REACHED, f"the cloud's quota of {name}"))
        return bounds


def _within(limits: Limits, used: _Used, offer: Offer, scope: str) -> list[Bound]:
    """The bounds one scope's limits set on an offer."""
    capacity = offer.flavour.capacity
    bounds = []
    for name, limit, have, each in (
        ("maxNodes", limits.max_nodes, used.nodes, 1),
        ("maxCpu", limits.max_cpu_m, used.cpu_m, capacity.cpu_m),
        ("maxMemory", limits.max_memory_bytes, used.memory_bytes, capacity.memory_bytes),
        ("maxPricePerHour", limits.max_nanos_per_hour, used.nanos, offer.price),
    ):
        if limit is not None and each:
            shown = price_text(limit) if name == "maxPricePerHour" else str(limit)
            bounds.append(Bound(max(0, (limit - have) // each), Unplaced.LIMIT_REACHED, f"{name} ({shown}) of {scope}"))
    return bounds


def _one(offer: Offer) -> int:
    return 1


def _cpu(offer: Offer) -> int:
    return offer.flavour.capacity.cpu_m


def _memory(offer: Offer) -> int:
    return offer.flavour.capacity.memory_bytes


def _price(offer: Offer) -> int:
    return offer.price


def _of_group(name: str | None, uses: Callable[[Offer], int]) -> Callable[[Offer], int]:
    """What counts against one group's limit; None: against the cluster's."""
    return lambda offer: uses(offer) if name is None or offer.group.name == name else 0


def _of_flavour(name: str) -> Callable[[Offer], int]:
    return lambda offer: int(offer.flavour.name == name)
