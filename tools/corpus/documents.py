"""Snapshots and policies as JSON without default values, and back; and where two lists of lines differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

Read = TypeVar("Read")
Document = dict[str, Any]


class LostError(Exception):
    """A recorded field that the code of today does not read."""


def brief(value: object) -> Any:
    """A structure as JSON has it, without fields that have their default values; sets are sorted."""
    if isinstance(value, msgspec.Struct):
        fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
        return {field.encode_name: brief(each) for field, each in fields if each != _default(field)}
    if isinstance(value, Mapping):
        return {str(key): brief(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [brief(each) for each in value]
    return msgspec.json.decode(msgspec.json.encode(value, order="deterministic"))


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def read(document: Document, kind: type[Read]) -> Read:
    """The structure that a document is of; raises LostError where a field of it is read no more."""
    made = msgspec.convert(document, kind)
    lost = next(lost_fields(document, made, kind.__name__), None)
    if lost is not None:
        raise LostError(
            f"{lost}: recorded, but not read any more; give it its new name in the questions' file,"
            " or leave it out: python -m tools.corpus renew"
        )
    return made


def lost_fields(recorded: Any, made: Any, where: str) -> Iterator[str]:
    """Paths of what is recorded and has no field now."""
    if isinstance(recorded, Mapping):
        is_struct = isinstance(made, msgspec.Struct)
        names = {field.encode_name: field.name for field in msgspec.structs.fields(made)} if is_struct else {}
        for key, value in recorded.items():
            if is_struct and key not in names:
                yield f"{where}.{key}"
            else:
                now = getattr(made, names[key]) if is_struct else made[key]
                yield from lost_fields(value, now, f"{where}.{key}")
    elif isinstance(recorded, list) and isinstance(made, list | tuple):
        for index, value in enumerate(recorded):
            yield from lost_fields(value, made[index], f"{where}[{index}]")


def text_of(line: Document) -> str:
    return msgspec.json.encode(line).decode()


def differences(recorded: Sequence[str], now: Iterable[str]) -> list[str]:
    """Lines that are gone (-) and new (+), in their order; where only the order differs, the first that moved."""
    now = list(now)
    gone, new = Counter(recorded) - Counter(now), Counter(now) - Counter(recorded)
    found = [f"- {line}" for line in _each(recorded, gone)] + [f"+ {line}" for line in _each(now, new)]
    if not found and list(recorded) != now:
        at = next(index for index, (old, line) in enumerate(zip(recorded, now, strict=True)) if old != line)
        found = [f"in another order from line {at + 1}: {now[at]}"]
    return found


def _each(lines: Iterable[str], wanted: Counter[str]) -> Iterator[str]:
    for line in lines:
        if wanted[line] > 0:
            wanted[line] -= 1
            yield line
