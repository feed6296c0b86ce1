"""Limits of namespaces on launched machines, and on pods that they pin."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from htas.config.values import Count, Millicores, Nanos, Seconds, Section, Text
from htas.model.policy import NamespaceLimit

_PATTERN = re.compile(r"[a-z0-9*?]([-a-z0-9*?]*[a-z0-9*?])?")


def checked_patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of namespaces with `*` and `?`; raises ValueError."""
    for name in names:
        if len(name) > 63 or not _PATTERN.fullmatch(name):
            raise ValueError(f"{name!r} is no namespace; write one, or a pattern such as team-*")
    return names


class NamespaceLimitSetting(Section):
    """A bound for each of some namespaces. Pods are charged for the machine they are on, by their share of its use."""

    names: tuple[Text, ...] = Field(
        min_length=1, description="Namespaces, with * and ? as in a shell. Of several entries the first counts."
    )
    max_cpu: Millicores | None = Field(default=None, description="Cores that each may have. null: no bound.")
    max_price_per_hour: Nanos | None = Field(
        default=None, description="Price an hour that each may have. null: no bound."
    )

    max_pins: Count | None = Field(
        default=None,
        description="Running pods that each may pin by annotations (do-not-disrupt, safe-to-evict, migrate), for want "
        "of a controller or by data on the node. Beyond it the oldest count. null: any number.",
    )
    max_pinned_price_per_hour: Nanos | None = Field(
        default=None, description="Price per hour that its pinned pods may be charged. null: no bound."
    )
    pinned_for: Seconds | None = Field(
        default=None, description="How long after its start a pod may stay pinned. null: for ever."
    )

    @field_validator("names")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return checked_patterns(names)

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        limit = self.model()
        if not limit.limits_machines and not limit.limits_pins:
            keys = "maxCpu, maxPricePerHour, maxPins, maxPinnedPricePerHour or pinnedFor"
            raise ValueError(f"bounds nothing; write {keys}")
        return self

    def model(self) -> NamespaceLimit:
        return self.filled(
            NamespaceLimit,
            max_cpu_m=self.max_cpu,
            max_nanos_per_hour=self.max_price_per_hour,
            max_pinned_nanos_per_hour=self.max_pinned_price_per_hour,
        )
