"""The reference of the configuration and the price file's keys, from the settings' models: they refuse all else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from htas.config import values
from htas.config.catalogue import CatalogueSetting
from htas.config.settings import Configuration
from htas.model.money import NANOS

SOURCE = "path, or its content"
_FORMS: dict[Any, str] = {
    values.Seconds: "duration",
    values.WholeSeconds: "duration",
    values.Millicores: "cores",
    values.MachineCores: "cores",
    values.MachineMemory: "bytes",
    values.Units: "bytes",
    values.WholeUnits: "count",
    values.Nanos: "price",
    values.Count: "count",
    values.Integer: "number",
    values.Share: "0 to 1",
    values.Real: "decimal",
    values.Switch: "true, false",
    values.Source: SOURCE,
}
"""How a value is written; what is not here is text, and tells its own form when it is refused."""
_BY_CHECK = {kind.__metadata__[0].func: word for kind, word in _FORMS.items()}

HEAD = """# Configuration
Every key, with its default. `htas check --config FILE` names every mistake of a file at once, each with its line.
Durations are written `200ms`, `20s`, `5m`, `1h30m`; cores and bytes as Kubernetes quantities (`1500m`, `8Gi`); prices
as decimals in quotes, an hour's. A key that is not known is refused. The same with the reasons behind the defaults is
in [config/htas.yaml](../../config/htas.yaml).

"""


def configuration_page() -> str:
    """docs/reference/configuration.md: a section for each mapping, in the order of the file."""
    return HEAD + "\n".join(_sections(Configuration, "", "The file"))


PRICE_FILE_HEAD = """# Price file
Every key of the price file, with its default. [Prices and bills](../prices.md) has an example with all of them.
A key that is not known is refused.

| key | default | written as | what it is |
|---|---|---|---|
"""


def price_file_page() -> str:
    """docs/reference/price-file.md: every key of the price file by the path to it, in the order of the file."""
    return PRICE_FILE_HEAD + "\n".join(_flat(CatalogueSetting, "")) + "\n"


def _flat(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        section = section_in(field.annotation)
        place = f"{path}{field.alias or name}" + ("[]" if section is not None and _is_many(field.annotation) else "")
        default = "its own" if section is not None and not field.is_required() else _default(field)
        yield f"| `{place}` | {default} | {_cell(_form(field, section))} | {_cell(_said(field))} |"
        if section is not None:
            yield from _flat(section, f"{place}.")


def _sections(model: type[BaseModel], path: str, title: str) -> Iterator[str]:
    yield f"## {title}\n"
    if path:
        yield f"{(model.__doc__ or '').strip()}\n"
    yield "| key | default | written as | what it is |\n|---|---|---|---|"
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        key = field.alias or name
        section, many = section_in(field.annotation), _is_many(field.annotation)
        place = f"{path}{key}" + ("[]" if many else "")
        if section is not None:
            inner.append((place, section))
        told = (_key(key, place, section), _default(field), _cell(_form(field, section)), _cell(_said(field)))
        yield f"| {' | '.join(told)} |"
    yield ""
    for place, section in inner:
        yield from _sections(section, f"{place}.", f"`{place}` {{ #{_anchor(place)} }}")


def _key(key: str, place: str, section: type[BaseModel] | None) -> str:
    return f"[`{key}`](#{_anchor(place)})" if section is not None else f"`{key}`"


def _said(field: FieldInfo) -> str:
    return (field.description or "").strip()


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see there"
    return f"`{_cell(_written(value, _words(field)))}`"


def _written(value: Any, words: Sequence[str]) -> str:
    """A default as one would write it in the file: the model's 60.0 is `1m` there."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case BaseModel():
            pairs = ((field.alias or name, field) for name, field in type(value).model_fields.items())
            shown = {key: getattr(value, name) for (key, _), name in zip(pairs, type(value).model_fields, strict=True)}
            return "{" + ", ".join(f"{key}: {_written(item, ())}" for key, item in shown.items()) + "}"
        case Mapping():
            return "{" + ", ".join(f"{key}: {_written(item, ())}" for key, item in value.items()) + "}"
        case tuple() | list():
            return "[" + ", ".join(_written(item, ()) for item in value) + "]"
        case int() | float():
            return _amount(value, words)
        case _:
            return str(value)


def _amount(value: float, words: Sequence[str]) -> str:
    if "duration" in words:
        return _duration(value)
    if "cores" in words:
        return f"{value / 1000:g}"
    if "price" in words:
        return f'"{value / NANOS:g}"'
    if "bytes" in words and value:
        size, unit = next(((size, unit) for size, unit in _UNITS if value % size == 0), (1, ""))
        return f"{value // size:g}{unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


_UNITS = ((2**30, "Gi"), (2**20, "Mi"), (10**6, "M"), (2**10, "Ki"))
_PARTS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "m"), (1.0, "s"), (0.001, "ms"))


def _duration(length_s: float) -> str:
    for size, unit in _PARTS:
        if length_s >= size and abs(length_s / size - round(length_s / size)) < 1e-9:
            return f"{round(length_s / size)}{unit}"
    return "0s"


def _form(field: FieldInfo, section: type[BaseModel] | None) -> str:
    words = list(dict.fromkeys(_words(field)))
    if section is not None:
        words = ["list of mappings"] if _is_many(field.annotation) else ["mapping"]
    elif _is_many(field.annotation) and SOURCE not in words:
        words = [f"list of {', '.join(words) or 'texts'}"]
    elif _is_mapping(field.annotation):
        words = ["mapping"]
    words = words or ["text"]
    return ", ".join(words) + (" or null" if type(None) in get_args(field.annotation) else "")


def _words(field: FieldInfo) -> list[str]:
    return [*_checked_by(field.metadata), *_named(field.annotation)]


def _checked_by(metadata: Sequence[Any]) -> list[str]:
    return [_BY_CHECK[check] for item in metadata if (check := getattr(item, "func", None)) in _BY_CHECK]


def _named(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(member.value) for member in annotation)
    elif get_origin(annotation) is Literal:
        yield from (str(item) for item in get_args(annotation))
    else:
        yield from _checked_by(getattr(annotation, "__metadata__", ()))
        for part in get_args(annotation):
            yield from _named(part)


def _is_many(annotation: Any) -> bool:
    return any(get_origin(part) in (tuple, list) for part in (annotation, *get_args(annotation)))


def _is_mapping(annotation: Any) -> bool:
    return any(get_origin(part) is dict for part in (annotation, *get_args(annotation)))


def section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := section_in(part)) is not None), None)


def _anchor(place: str) -> str:
    return place.lower().replace("[]", "").replace(".", "-").strip("-")


def _cell(text: str) -> str:
    """Text within a table; what looks like a tag of HTML is text, too."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
