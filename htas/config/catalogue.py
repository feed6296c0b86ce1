"""The price file: flavours and how they are billed."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from htas.config.values import Millicores, Nanos, Seconds, Section, Units
from htas.model.constraints import Effect, Taint
from htas.model.flavours import Billing, Catalogue, Flavour
from htas.model.resources import Resources


class TaintSetting(Section):
    key: str = Field(min_length=1)
    value: str = ""
    effect: Effect

    def model(self) -> Taint:
        return Taint(self.key, self.effect, self.value)


class ReservedSetting(Section):
    """What the system keeps of a machine for itself (kubelet, container runtime, operating system)."""

    cpu: Millicores = 0
    memory: Units = 0


class FlavourSetting(Section):
    name: str = Field(min_length=1)
    cpu: Millicores = Field(gt=0)
    memory: Units = Field(gt=0)
    pods: int = Field(default=110, gt=0, le=100_000)
    ephemeral_storage: Units = 0
    extended: dict[str, Units] = Field(default_factory=dict)
    price_per_hour: Nanos
    reserved: ReservedSetting = ReservedSetting()
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[TaintSetting, ...] = ()
    stock: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        if self.reserved.cpu >= self.cpu or self.reserved.memory >= self.memory:
            raise ValueError("reserved leaves nothing of the machine; reserve less than its cpu and memory")
        if standard := sorted({"cpu", "memory", "pods", "ephemeral-storage"} & set(self.extended)):
            raise ValueError(f"extended holds {', '.join(standard)}, which has a key of its own")
        return self

    def model(self) -> Flavour:
        amounts = {"cpu": self.cpu, "memory": self.memory, "pods": self.pods, **self.extended}
        return Flavour(
            name=self.name,
            capacity=Resources.of({**amounts, "ephemeral-storage": self.ephemeral_storage}),
            nanos_per_hour=self.price_per_hour,
            reserved=Resources(self.reserved.cpu, self.reserved.memory),
            zones=self.zones,
            labels=self.labels,
            taints=tuple(taint.model() for taint in self.taints),
            stock=self.stock,
        )


class BillingSetting(Section):
    """Rental is rounded up to `granularity` and is never less than `minimum`."""

    granularity: Seconds = Field(default=60.0, ge=1)
    minimum: Seconds = Field(default=60.0, ge=0)


class CatalogueSetting(Section):
    """The price file as a whole."""

    currency: str = "USD"
    billing: BillingSetting = BillingSetting()
    flavours: tuple[FlavourSetting, ...] = Field(min_length=1)

    def model(self) -> Catalogue:
        billing = Billing(int(self.billing.granularity), int(self.billing.minimum))
        return Catalogue(tuple(flavour.model() for flavour in self.flavours), self.currency, billing)
