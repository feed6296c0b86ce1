"""Limits of namespaces on launched machines."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from htas.config.values import Millicores, Nanos, Section, Text
from htas.model.policy import NamespaceLimit

_PATTERN = re.compile(r"[a-z0-9*?]([-a-z0-9*?]*[a-z0-9*?])?")


def checked_patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of namespaces with `*` and `?`; raises ValueError."""
    for name in names:
        if len(name) > 63 or not _PATTERN.fullmatch(name):
            raise ValueError(f"{name!r} is no namespace; write one, or a pattern such as team-*")
    return names


class NamespaceLimitSetting(Section):
    """A bound for each of some namespaces, on launched machines."""

    names: tuple[Text, ...] = Field(
        min_length=1, description="Namespaces, with * and ? as in a shell. Of several entries the first counts."
    )
    max_cpu: Millicores | None = Field(
        default=None, description="Cores of launched machines that each may be charged. null: no bound."
    )
    max_price_per_hour: Nanos | None = Field(
        default=None, description="Price per hour of launched machines that each may be charged. null: no bound."
    )

    @field_validator("names")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return checked_patterns(names)

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if self.max_cpu is None and self.max_price_per_hour is None:
            raise ValueError("bounds nothing; write maxCpu or maxPricePerHour")
        return self

    def model(self) -> NamespaceLimit:
        return self.filled(NamespaceLimit, max_cpu_m=self.max_cpu, max_nanos_per_hour=self.max_price_per_hour)
