"""The price file: flavours and how they are billed."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from htas.config.values import (
    Count,
    ExtendedResource,
    Labels,
    LabelValue,
    MachineCores,
    MachineMemory,
    Millicores,
    Nanos,
    NodeKey,
    NodeName,
    Section,
    Switch,
    Text,
    Units,
    WholeSeconds,
    WholeUnits,
    each_once,
    shown,
)
from htas.model.billing import Alignment, Billing, Cap
from htas.model.constraints import Effect, Taint
from htas.model.flavours import Catalogue, Flavour, ZonePrice
from htas.model.money import price_text
from htas.model.resources import Resources

DAY_S = 86_400


class TaintSetting(Section):
    """A taint as Kubernetes has it."""

    key: NodeKey = Field(description="The taint's key, such as example.com/gpu.")
    value: LabelValue = Field(default="", description="Its value; most taints need none.")
    effect: Effect = Field(description="NoSchedule, PreferNoSchedule or NoExecute.")

    def model(self) -> Taint:
        return Taint(self.key, self.effect, self.value)


def _no_two_alike(taints: tuple[TaintSetting, ...]) -> tuple[TaintSetting, ...]:
    seen: set[tuple[str, Effect]] = set()
    for taint in taints:
        if (taint.key, taint.effect) in seen:
            raise ValueError(f"{taint.key}:{taint.effect} is there twice, which Kubernetes refuses; remove one")
        seen.add((taint.key, taint.effect))
    return taints


Taints = Annotated[tuple[TaintSetting, ...], AfterValidator(_no_two_alike)]


class ReservedSetting(Section):
    """What the system keeps of a machine for itself (kubelet, container runtime, operating system)."""

    cpu: Millicores = Field(default=0, description="Cores. 0: HTAS learns the allocatable of real nodes anyway.")
    memory: Units = Field(default=0, description="Bytes. 0: likewise.")


def _acts_after_an_hour(cap: int | None, dearest: int | None) -> int | None:
    """A cap that is no less than an hour's price."""
    if cap is not None and dearest is not None and cap < dearest:
        what = f"{price_text(cap)} is less than one hour costs, {price_text(dearest)}"
        raise ValueError(f"{what}; write the most that a calendar month costs, or remove it")
    return cap


class ZonePriceSetting(Section):
    """What a flavour costs in one zone."""

    zone: NodeName = Field(description="A zone that sells it.")
    per_hour: Nanos = Field(description="Price an hour there, taken exactly as written.")
    monthly_cap: Nanos | None = Field(
        default=None, description="The most that a calendar month costs there. null: the flavour's monthlyCap."
    )

    @field_validator("monthly_cap")
    @classmethod
    def _is_no_hours_price(cls, cap: int | None, info: ValidationInfo) -> int | None:
        return _acts_after_an_hour(cap, info.data.get("per_hour"))


class FlavourSetting(Section):
    """A machine type."""

    name: NodeName = Field(description="The cloud's name of it; nodes bear it as their instance type.")
    cpu: MachineCores = Field(gt=0, description="Cores.")
    memory: MachineMemory = Field(gt=0, description="Bytes.")
    pods: Count = Field(
        default=110, gt=0, le=100_000, description="Most pods on one node; 110 is the kubelet's own default."
    )
    ephemeral_storage: Units = Field(
        default=0,
        description="Bytes of local disk for pods. 0: what its nodes show; before there is one, HTAS launches it for no"
        " pod that requests ephemeral-storage.",
    )
    extended: dict[ExtendedResource, WholeUnits] = Field(
        default_factory=dict, description="Other resources by name in whole units, such as nvidia.com/gpu. None."
    )
    zones: tuple[NodeName, ...] = Field(default=(), description="Zones that sell it. None: zones do not matter.")
    prices: tuple[ZonePriceSetting, ...] = Field(
        default=(), description="Its prices by zone, where they differ; in place of pricePerHour and zones."
    )
    price_per_hour: Nanos | None = Field(
        default=None,
        validate_default=True,
        description="Price an hour, in the file's currency, taken exactly as written. Required where prices has none.",
    )
    monthly_cap: Nanos | None = Field(
        default=None,
        description="The most that a calendar month of one machine costs, whatever its hours come to; the fee is"
        " charged beside it. null: no such limit.",
    )
    fee_per_hour: Nanos | None = Field(
        default=None, description="What a node costs in addition, such as a licence. null: billing.feePerHour."
    )
    reserved: ReservedSetting = Field(
        default=ReservedSetting(), description="What pods cannot have of it, in cores and bytes."
    )
    labels: Labels = Field(default_factory=dict, description="Labels its nodes register with. None.")
    taints: Taints = Field(default=(), description="Taints its nodes register with. None.")
    stock: Count | None = Field(default=None, description="Most machines of it at once. null: not known.")
    retired: Switch = Field(
        default=False,
        description="HTAS launches it no more, drains its nodes first, and launches others for their pods.",
    )

    @field_validator("prices")
    @classmethod
    def _each_zone_once(
        cls, prices: tuple[ZonePriceSetting, ...], info: ValidationInfo
    ) -> tuple[ZonePriceSetting, ...]:
        each_once((price.zone for price in prices), "write one price for it")
        if prices and info.data.get("zones"):
            raise ValueError("name the zones already; remove the flavour's key zones")
        return prices

    @field_validator("price_per_hour")
    @classmethod
    def _is_one_price(cls, nanos: int | None, info: ValidationInfo) -> int | None:
        if "prices" in info.data and nanos is None and not info.data["prices"]:
            raise ValueError('missing; write it such as "0.1371", or prices by zone')
        if nanos is not None and info.data.get("prices"):
            raise ValueError("there are prices by zone, too; remove one of both")
        return nanos

    @field_validator("monthly_cap")
    @classmethod
    def _is_no_hours_price(cls, cap: int | None, info: ValidationInfo) -> int | None:
        by_zone = [each.per_hour for each in info.data.get("prices", ()) if each.monthly_cap is None]
        return _acts_after_an_hour(cap, max(by_zone, default=info.data.get("price_per_hour")))

    @field_validator("reserved")
    @classmethod
    def _something_is_left(cls, reserved: ReservedSetting, info: ValidationInfo) -> ReservedSetting:
        for key in ("cpu", "memory"):
            if key in info.data and getattr(reserved, key) >= info.data[key]:
                raise ValueError(f"{key} leaves nothing of the machine; reserve less than the flavour's {key}")
        return reserved

    def model(self, fee: int = 0) -> Flavour:
        """`fee` is what nodes cost beside their price where the flavour does not say."""
        fee = fee if self.fee_per_hour is None else self.fee_per_hour

        def capped(most: int | None) -> Cap | None:
            most = self.monthly_cap if most is None else most
            return None if most is None else Cap(most, fee)

        prices = tuple(ZonePrice(each.zone, each.per_hour + fee, capped(each.monthly_cap)) for each in self.prices)
        cheapest = min(prices, key=lambda each: each.nanos_per_hour, default=None)
        amounts = {"cpu": self.cpu, "memory": self.memory, "pods": self.pods, **self.extended}
        return Flavour(
            name=self.name,
            capacity=Resources.of({**amounts, "ephemeral-storage": self.ephemeral_storage}),
            nanos_per_hour=(self.price_per_hour or 0) + fee if cheapest is None else cheapest.nanos_per_hour,
            fee_nanos_per_hour=fee,
            reserved=Resources(self.reserved.cpu, self.reserved.memory),
            zones=self.zones or tuple(each.zone for each in prices),
            labels=self.labels,
            taints=tuple(taint.model() for taint in self.taints),
            stock=self.stock,
            retired=self.retired,
            cap=capped(None) if cheapest is None else cheapest.cap,
            prices=prices,
        )


class BillingSetting(Section):
    """Rental is rounded up to `granularity` and is never less than `minimum`."""

    granularity: WholeSeconds = Field(
        default=60.0, ge=1, description="Seconds. A minute: any part of one is charged in full (paper 3.1.2)."
    )
    minimum: WholeSeconds = Field(default=60.0, ge=0, description="Seconds. A minute: one period is always charged.")
    alignment: Alignment = Field(
        default=Alignment.START,
        description="From when periods are counted. start: from each machine's start; clock: from midnight UTC, so that"
        " with granularity 1h the hours of the clock are billed.",
    )
    time_zone: Text = Field(
        default="UTC", description="Whose calendar months monthlyCap is for, such as Europe/Amsterdam."
    )
    fee_per_hour: Nanos = Field(
        default=0,
        description="What every node costs in addition to its price, such as a licence by the node. 0: nothing.",
    )

    @field_validator("alignment")
    @classmethod
    def _divides_the_day(cls, alignment: Alignment, info: ValidationInfo) -> Alignment:
        granularity = int(info.data.get("granularity", DAY_S))
        if alignment is Alignment.CLOCK and DAY_S % granularity:
            raise ValueError(f"a day is no whole number of periods of {granularity}s; write a granularity such as 1h")
        return alignment

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            return name if name == "UTC" else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(
                f"{shown(name)} is no time zone that this machine knows; write UTC or one such as Europe/Amsterdam"
            ) from None

    def model(self) -> Billing:
        return Billing(int(self.granularity), int(self.minimum), self.alignment, self.time_zone)


class CatalogueSetting(Section):
    """The price file as a whole."""

    currency: Text = Field(default="USD", max_length=12, description="What prices are in; printed, never converted.")
    billing: BillingSetting = Field(default=BillingSetting(), description="How rental is charged.")
    flavours: tuple[FlavourSetting, ...] = Field(min_length=1, description="What HTAS may launch.")

    def model(self) -> Catalogue:
        billing = self.billing.model()
        fee = self.billing.fee_per_hour
        return Catalogue(tuple(flavour.model(fee) for flavour in self.flavours), self.currency, billing)
