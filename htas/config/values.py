"""Value types of the configuration: each says what is wrong and what to write instead.

The loader hands every written number over as its text (see `document`), so that a price is exactly what was written;
Python numbers come only from defaults, which are in the model's units already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from htas.config.names import (
    NAME,
    NAMESPACE,
    QUALIFIED_NAME,
    SHORT_LABEL,
    checked_condition,
    checked_extended_resource,
    checked_label_value,
    checked_namespace,
    checked_node_key,
    checked_node_name,
    checked_short_name,
)
from htas.model.money import DEAREST, NANOS, PriceError, parse_price, with_point
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units
from htas.model.versions import VERSION

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_UNITS_S = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_NOT_FINITE = re.compile(r"[+-]?\.?(?:nan|inf|infinity)", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)
LONGEST_S = 3650 * 86400
MOST = 2**60
"""Amounts stay below it: sums over thousands of nodes are then still far from overflowing where it could matter."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a value looks like in a file, for JSON schemas: an amount is a number in the model, and `8Gi` in the file.

    Marks a value type: text of a `form` (a regular expression for all of it), or a number where one may be written.

    A schema refuses nothing that the loader takes; what it cannot say (a limit below another) the loader still tells.
    """

    form: str
    number: Literal["integer", "number"] | None = None
    minimum: int | None = None

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = {_BOUNDS.get(key, key): value for key, value in handler(core_schema).items()}
        text = {"pattern": f"^({self.form})$"}
        if self.number is None:
            lengths = {key: found[key] for key in ("maxLength",) if key in found}
            return {"type": "string", **text, **lengths}
        bounds = {key: found[key] for key in _BOUNDS.values() if key in found}
        least = {"minimum": self.minimum} if self.minimum is not None and "exclusiveMinimum" not in bounds else {}
        return {"type": [self.number, "string"], **text, **least, **bounds}


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, keys are in camelCase."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)

    def filled(self, kind: type[_Struct], **others: Any) -> _Struct:
        """A struct of the model with what the settings of its fields' names say; a time, `drain` here, is `drain_s`
        there. `others` are its fields that have another name here, or another form.
        """
        fields = ((field, field.removesuffix("_s")) for field in kind.__struct_fields__ if field not in others)
        stated = {field: getattr(self, name) for field, name in fields if name in type(self).model_fields}
        return kind(**stated, **others)


class OneOf(Section):
    """A choice: exactly one of the keys."""

    chooses: ClassVar[str]
    """What is chosen, for messages."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        names = type(self).model_fields
        stated = [name for name in names if getattr(self, name) is not None]
        if len(stated) != 1:
            what = f"names {' and '.join(stated)}" if stated else f"names no {self.chooses}"
            raise ValueError(f"{what}; write one, {' or '.join(names)}")
        return self


def each_once(names: Iterable[str], advice: str) -> None:
    """Raises ValueError, with what to do, for a name that is there twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{name} is there more than once; {advice}")


def shown(value: Any) -> str:
    """A value as it stands in the file, for messages; what may be long is only named."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "...")
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return str(value)


def _text(value: Any, kind: str = "text") -> str:
    if value is None:
        raise ValueError("has no value; write one or remove the key")
    if isinstance(value, str):
        return value
    hint = "; put it in quotes if it is meant as it stands" if kind == "text" and isinstance(value, bool) else ""
    raise ValueError(f"found {shown(value)} where {kind} belongs{hint}")


def _nonempty(value: Any) -> str:
    text = _text(value)
    if not text.strip():
        raise ValueError("is empty; write a text or remove the key")
    if not text.isprintable():
        raise ValueError(f"{shown(text)} holds a control character; remove it")
    return text


def _path_or_content(value: Any) -> Any:
    return value if isinstance(value, dict | list) else _nonempty(value)


def seconds(value: Any) -> float:
    if isinstance(value, float):
        return value
    text = _text(value, "a duration")
    if _DECIMAL.fullmatch(text) and not text.startswith(("+", "-")):
        raise ValueError(f"{text!r} has no unit; write it with ms, s, m, h or d, such as {text}s")
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(f"{shown(text)} is not a duration; write a number with ms, s, m, h or d, such as 20s or 1h30m")
    length = sum((Fraction(number) * _UNITS_S[unit] for number, unit in _PART.findall(text)), Fraction(0))
    if length > LONGEST_S:
        raise ValueError(f"{shown(text)} is longer than ten years; write less")
    return float(length)


def _whole_seconds(value: Any) -> float:
    length = seconds(value)
    if not length.is_integer():
        raise ValueError(f"{shown(value)} is no whole number of seconds; clouds bill by the second at the finest")
    return length


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = _text(value, "a whole number")
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a whole number; write digits alone, such as 3")
    return int(text)


def _real(value: Any) -> float:
    if isinstance(value, float):
        return value
    text = _text(value, "a decimal number")
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a decimal number; write one such as 0.5")
    return float(text)


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is neither true nor false; write one of them, without quotes")


def _quantity(value: Any) -> Fraction:
    text = _text(value, "a quantity")
    try:
        amount = parse_quantity(text)
    except QuantityError:
        raise ValueError(
            f"{shown(text)} is not a quantity; write a number, alone or with n u m k M G T P E Ki Mi Gi Ti Pi Ei"
        ) from None
    if amount < 0:
        raise ValueError(f"{text!r} is negative; write 0 or more")
    if amount >= MOST:
        raise ValueError(f"{text!r} is more than any machine has; write less than 1Ei")
    return amount


def _milli(value: Any) -> int:
    return value if _is_default(value) else to_milli(_quantity(value))


def _units(value: Any) -> int:
    return value if _is_default(value) else to_units(_quantity(value))


def _machine_cores(value: Any) -> int:
    milli = _milli(value)
    if not _is_default(value) and 0 < _quantity(value) * 1000 < 1:
        raise ValueError(f"{shown(value)} is less than a thousandth of a core; write cores, such as 4 or 1500m")
    return milli


SMALLEST_BYTES = 64 * 2**20
"""A machine with less memory runs no kubelet: a number without its unit, which are bytes then."""
_AMOUNT_ALONE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _machine_memory(value: Any) -> int:
    units = _units(value)
    if _is_default(value) or not 0 < units < SMALLEST_BYTES:
        return units
    number = _AMOUNT_ALONE.match(str(value))
    meant = ""
    if number is not None:
        amount = Fraction(number[0])
        meant = f"; did you mean {number[0]}{'Gi' if amount < 2048 else 'Mi' if amount < 2**22 else 'Ki'}?"
    raise ValueError(f"{shown(value)} is {units} bytes, which is no machine's memory{meant}")


def _whole_units(value: Any) -> int:
    amount = _quantity(value)
    if amount.denominator != 1:
        raise ValueError(f"{value!r} is no whole number; Kubernetes counts extended resources in whole units")
    return int(amount)


def _is_default(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _nanos(value: Any) -> int:
    if _is_default(value):
        return int(value)
    text = _text(value, "a price")
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f'{text!r} is not a finite number; write a price an hour such as "0.1371"')
    if advice := with_point(text):
        raise ValueError(advice)
    if not _DECIMAL.fullmatch(text) or len(text) > 25:
        raise ValueError(f'{shown(text)} is not a decimal number; write a price an hour such as "0.1371"')
    try:
        nanos = parse_price(text) if Fraction(text) * NANOS <= DEAREST else None
    except PriceError as error:
        raise ValueError(f'{error}; write a price an hour such as "0.1371"') from None
    if nanos is None:
        raise ValueError(f"{shown(text)} is above a million an hour; choose a larger unit of currency")
    return nanos


def _kubelet_version(value: Any) -> str:
    """Never without its v: to YAML 1.30 is a number, which a chart's values make 1.3."""
    text = _text(value, "a version")
    if not VERSION.fullmatch(text):
        raise ValueError(f"{shown(text)} is no version of a kubelet; write one such as v1.34 or v1.34.1")
    return text


def _name(check: Callable[[str], str]) -> BeforeValidator:
    return BeforeValidator(lambda value: check(_text(value)))


_DURATION = Written(rf"({_PART.pattern})+")
_AMOUNT = Written(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?", "number", 0)
_WHOLE = Written(_INTEGER.pattern, "integer")
_NUMBER = Written(_DECIMAL.pattern, "number")

Seconds = Annotated[float, BeforeValidator(seconds), _DURATION]
"""A duration, written as 200ms, 20s, 5m or 1h30m."""
WholeSeconds = Annotated[float, BeforeValidator(_whole_seconds), _DURATION]
Millicores = Annotated[int, BeforeValidator(_milli), _AMOUNT]
"""Cores, written as a Kubernetes quantity: 2 or 1500m."""
MachineCores = Annotated[int, BeforeValidator(_machine_cores), _AMOUNT]
"""Cores of a machine: one of less than a milli-core is a mistake."""
MachineMemory = Annotated[int, BeforeValidator(_machine_memory), _AMOUNT]
"""Bytes of a machine: one of a few is a mistake, mostly for gibibytes."""
Units = Annotated[int, BeforeValidator(_units), _AMOUNT]
"""Bytes, written as a Kubernetes quantity: 8Gi."""
WholeUnits = Annotated[int, BeforeValidator(_whole_units), _AMOUNT]
"""A count of an extended resource."""
Nanos = Annotated[int, BeforeValidator(_nanos), Written(_DECIMAL.pattern.removeprefix("[+-]?"), "number", 0)]
"""A price an hour, kept in billionths."""
Integer = Annotated[int, BeforeValidator(_whole), _WHOLE]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=0), _WHOLE]
Share = Annotated[float, BeforeValidator(_real), Field(ge=0, le=1), _NUMBER]
Real = Annotated[float, BeforeValidator(_real), Field(allow_inf_nan=False), _NUMBER]
Switch = Annotated[bool, BeforeValidator(_switch)]
Text = Annotated[str, BeforeValidator(_nonempty), Written(r".*\S.*")]
KubeletVersion = Annotated[str, BeforeValidator(_kubelet_version), Written(VERSION.pattern)]
"""A version of Kubernetes, written as nodes tell their kubelet's: v1.34 or v1.34.1."""
Source = Annotated[str | list[Any] | dict[str, Any], BeforeValidator(_path_or_content)]
"""The path of a file, or what would stand in it."""
Name = Annotated[str, _name(checked_short_name), Written(SHORT_LABEL.pattern)]
Namespace = Annotated[str, _name(checked_namespace), Written(NAMESPACE.pattern)]
NodeKey = Annotated[str, _name(checked_node_key), Written(QUALIFIED_NAME.pattern)]
Condition = Annotated[str, _name(checked_condition), Written(QUALIFIED_NAME.pattern)]
"""The type of a condition of nodes that says at True that something is wrong: KernelDeadlock, DiskPressure."""
LabelValue = Annotated[str, _name(checked_label_value), Written(rf"({NAME.pattern})?")]
NodeName = Annotated[str, _name(checked_node_name), Written(NAME.pattern)]
ExtendedResource = Annotated[str, _name(checked_extended_resource), Written(QUALIFIED_NAME.pattern)]
Labels = dict[NodeKey, LabelValue]
