"""Value types of the configuration: each says what is wrong and what to write instead."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from htas.model.money import PriceError, parse_price
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?")


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, keys are in camelCase."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)


def _seconds(value: Any) -> float:
    if isinstance(value, float) and not isinstance(value, bool):
        return value  # a default, already in seconds; the loader hands every written value over as text
    text = str(value)
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(f"{text!r} is not a duration; write a number with ms, s, m, h or d, such as 20s or 1h30m")
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def _milli(value: Any) -> int:
    return to_milli(_quantity(value))


def _units(value: Any) -> int:
    return to_units(_quantity(value))


def _quantity(value: Any) -> Any:
    try:
        amount = parse_quantity(str(value))
    except QuantityError as error:
        raise ValueError(str(error)) from None
    if amount < 0:
        raise ValueError(f"{value!s} is negative")
    return amount


def _nanos(value: Any) -> int:
    try:
        return parse_price(str(value))
    except PriceError as error:
        raise ValueError(f'{error}; write a price an hour such as "0.1371"') from None


def _dns_label(value: Any) -> str:
    if not isinstance(value, str) or not _DNS_LABEL.fullmatch(value):
        raise ValueError(f"{value!r} is no name: up to 30 of a-z, 0-9 and -, not beginning or ending with -")
    return value


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration, written as 200ms, 20s, 5m or 1h30m."""
Millicores = Annotated[int, BeforeValidator(_milli)]
Units = Annotated[int, BeforeValidator(_units)]
"""Bytes or another whole amount, written as a Kubernetes quantity."""
Nanos = Annotated[int, BeforeValidator(_nanos)]
"""A price an hour, kept in billionths."""
Name = Annotated[str, BeforeValidator(_dns_label)]
"""Part of node and machine names, so a DNS label; short enough for cluster-group-digest to stay below 63 characters."""
