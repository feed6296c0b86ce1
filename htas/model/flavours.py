"""Flavours: the machine types the cloud sells, with their prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from htas.model.billing import Billing, Cap, Price
from htas.model.constraints import Taint
from htas.model.resources import NOTHING, Resources


class ZonePrice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a flavour costs in one zone, its fee included."""

    zone: str
    nanos_per_hour: int
    cap: Cap | None = None


class Flavour(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine type. `capacity` is what the machine has, `reserved` what the system keeps of it for itself.

    `nanos_per_hour` is all that one costs: its price and the node's fixed fee, which `fee_nanos_per_hour` tells apart.
    `prices` are those of its zones where they differ; `nanos_per_hour` and `cap` are then those of the cheapest zone.
    No `zones`: the cloud has no zones, or it does not matter. `stock` is how many the cloud can give at once, if known.
    `retired`: bought no more, and its nodes are emptied before others.
    """

    name: str
    capacity: Resources
    nanos_per_hour: int
    reserved: Resources = NOTHING
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    stock: int | None = None
    fee_nanos_per_hour: int = 0
    retired: bool = False
    cap: Cap | None = None
    prices: tuple[ZonePrice, ...] = ()

    def price_in(self, zone: str | None) -> Price | None:
        """What a machine of it costs in a zone; None: prices differ by zone, and none is known for this one."""
        if not self.prices:
            return Price(self.nanos_per_hour, self.cap)
        return next((Price(each.nanos_per_hour, each.cap) for each in self.prices if each.zone == zone), None)

    def nanos_in(self, zone: str | None) -> int:
        """Its price an hour in a zone; that of its cheapest zone where none is known for this one."""
        return next((each.nanos_per_hour for each in self.prices if each.zone == zone), self.nanos_per_hour)

    @property
    def allocatable(self) -> Resources:
        return self.capacity if self.reserved is NOTHING else self.capacity - self.reserved


class Learned(Resources, frozen=True, omit_defaults=True):
    """What machines of a flavour offer, as learned from one, and what the price file promised then. Without
    that it does not count."""

    promised: Resources | None = None


class Catalogue(msgspec.Struct, frozen=True):
    """The price list. Flavour names are unique."""

    flavours: tuple[Flavour, ...] = ()
    currency: str = "USD"
    billing: Billing = Billing()

    def named(self, name: str | None) -> Flavour | None:
        for flavour in self.flavours:  # asked for every node several times a plan: no generator
            if flavour.name == name:
                return flavour
        return None

    def price(self, flavour: str | None, zone: str | None) -> Price | None:
        """What a machine of a flavour costs in a zone; None: nobody says."""
        found = self.named(flavour)
        return found.price_in(zone) if found is not None else None


def dominating(flavour: Flavour, others: Iterable[Flavour]) -> Flavour | None:
    """The cheapest other flavour that is at least as large in everything for no more money; None: there is none.

    One of the same size and price does not count, nor one that is not sold in all its zones, lacks a label, or bears
    a taint that it does not.
    """
    better = [other for other in others if other is not flavour and _is_better(other, flavour)]
    return min(better, key=lambda each: (each.nanos_per_hour, each.name), default=None)


def _is_better(other: Flavour, flavour: Flavour) -> bool:
    more, less = other.allocatable, flavour.allocatable
    extended = dict(more.extended)
    holds_as_much = (
        more.cpu_m >= less.cpu_m
        and more.memory_bytes >= less.memory_bytes
        and more.ephemeral_bytes >= less.ephemeral_bytes
        and more.pods >= less.pods
        and all(extended.get(name, 0) >= amount for name, amount in less.extended)
    )
    stands_in = (
        (not other.zones or (bool(flavour.zones) and set(flavour.zones) <= set(other.zones)))
        and flavour.labels.items() <= other.labels.items()
        and set(other.taints) <= set(flavour.taints)
        and other.stock is None
    )
    zones = flavour.zones or (None,)
    is_same = more == less and all(other.price_in(zone) == flavour.price_in(zone) for zone in zones)
    is_no_dearer = all(_costs_no_more(other.price_in(zone), flavour.price_in(zone)) for zone in zones)
    return holds_as_much and stands_in and is_no_dearer and not is_same


def _costs_no_more(one: Price | None, other: Price | None) -> bool:
    """Whether a machine at one price costs no more than at the other, however long it is held."""
    if one is None or other is None or one.nanos_per_hour > other.nanos_per_hour:
        return False
    if other.cap is None or one.cap is None:
        return other.cap is None
    return one.cap.nanos <= other.cap.nanos and one.cap.fee_nanos_per_hour <= other.cap.fee_nanos_per_hour


class MachineSize(msgspec.Struct, frozen=True):
    """A flavour as the cloud has it: a name, a size and its devices, without a price."""

    name: str
    cpu_m: int
    memory_bytes: int
    disk_bytes: int = 0
    extra_specs: Mapping[str, str] = {}
    """Nova's extra specs, among them its words for devices (`extra_specs.devices`)."""

    def is_of(self, flavour: Flavour) -> bool:
        """Whether a price file's flavour has this size."""
        return (self.cpu_m, self.memory_bytes) == (flavour.capacity.cpu_m, flavour.capacity.memory_bytes)

    @property
    def text(self) -> str:
        return f"{self.cpu_m / 1000:g} cores, {self.memory_bytes / 2**30:.4g} GiB"


def differences(catalogue: Catalogue, sizes: Iterable[MachineSize]) -> list[str]:
    """Where a price file and the cloud's own flavours disagree, in words, flavour by flavour."""
    there, told = {size.name: size for size in sizes}, []
    for flavour in catalogue.flavours:
        size = there.pop(flavour.name, None)
        if size is None:
            told.append(f"flavour {flavour.name}: the cloud does not have it, so it is never launched")
        elif not size.is_of(flavour):
            told.append(f"flavour {flavour.name}: the cloud says {size.text}; the price file's size is wrong")
    return told + [f"flavour {name}: has no price, so it is never launched" for name in sorted(there)]
