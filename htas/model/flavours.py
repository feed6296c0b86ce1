"""Flavours: the machine types the cloud sells, with their prices."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.constraints import Taint
from htas.model.money import billed_seconds
from htas.model.resources import NOTHING, Resources


class Billing(msgspec.Struct, frozen=True):
    """How rental is charged: rounded up to `granularity_s`, at least `minimum_s`."""

    granularity_s: int = 60
    minimum_s: int = 60

    def billed_seconds(self, held_s: float) -> int:
        return billed_seconds(held_s, self.granularity_s, self.minimum_s)


class Flavour(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine type. `capacity` is what the machine has, `reserved` what the system keeps of it for itself.

    No `zones`: the cloud has no zones, or it does not matter. `stock` is how many the cloud can give at once, if known.
    """

    name: str
    capacity: Resources
    nanos_per_hour: int
    reserved: Resources = NOTHING
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    stock: int | None = None

    @property
    def allocatable(self) -> Resources:
        return self.capacity - self.reserved


class Catalogue(msgspec.Struct, frozen=True):
    """The price list. Flavour names are unique."""

    flavours: tuple[Flavour, ...] = ()
    currency: str = "USD"
    billing: Billing = Billing()

    def named(self, name: str | None) -> Flavour | None:
        return next((flavour for flavour in self.flavours if flavour.name == name), None)
