"""What is wrong with a configuration, in words a person can act upon, each with its file, line and key."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from htas.config.document import Document, Steps, key_text
from htas.config.price_units import by_another_unit, key_meant
from htas.config.values import shown
from htas.model.extra_specs import EXAMPLE, devices, is_of_nova
from htas.model.snapshot import Problem
from htas.ports import MOST_TOLD, GivenError, first_told

_M = TypeVar("_M", bound=BaseModel)

UNKNOWN = "unknown key; remove it"
DECIMAL_COMMA = "unknown key: a comma ends a value here; write the number with a point"
"""`{pricePerHour: 0,192}` is a price of 0 and a key 192: who removed that had machines for nothing."""
REMOVED = {
    "route": "is no key any more; remove it: archives go from node to node, or write migration.transfer: registry",
    "authorizedKeysFile": "is no key any more; remove it: the daemon's own key is lent for a copy (docs/migration.md)",
    "gatherFor": "is no key any more; remove it: HTAS launches with the next cycle (cycles.batchIdle, cycles.batchMax)",
    "waitingPerPodHour": "is no key any more; remove it: pods wait only for room that frees up soon",
    "notices": "is no key any more; remove it, and have Alertmanager send the chart's alerts (docs/alerting.md)",
    "pullSecret": "is no key any more; remove it, and give the registry's credentials to kubelets (docs/migration.md)",
}
"""Keys of earlier versions, of which it is worth saying what took their place."""
CALLED = {"disk": "ephemeralStorage", "ram": "memory"} | dict.fromkeys(
    ("hourlyPrice", "hourlyRate", "priceHourly", "perHour"), "pricePerHour"
)
"""What others call keys of ours."""
EXTRA_SPECS = frozenset({"extraSpecs", "extra_specs", "properties"})
LETTER_OR_TWO = 2
"""So short a key begins too many others."""
MOST_HINTS = MOST_TOLD
"""Looking for what was meant costs 2 ms a key: in a file with a thousand wrong ones nobody would wait for it."""


class ConfigurationError(GivenError):
    """Everything that is wrong with a configuration and its price file; in words the first problems of many."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(first_told([f"{problem.where}: {problem.what}" for problem in problems]))
        self.problems = problems


def parsed(model: type[_M], document: Document, raw: Any, steps: Steps, problems: list[Problem]) -> _M | None:
    """The settings written at `steps`; what is wrong with them is added to `problems`."""
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        problems.extend(_told(model, document, steps, error))
        return None


def near(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """`; did you mean nodeGroups?`, or nothing."""
    found = difflib.get_close_matches(name, sorted(known), 1, likeness)
    return f"; did you mean {found[0]}?" if found else ""


def _told(model: type[BaseModel], document: Document, base: Steps, error: ValidationError) -> Iterator[Problem]:
    """Pydantic's list, without what only follows from another problem."""
    items = error.errors(include_url=False)
    above = {item["loc"][:depth] for item in items for depth in range(len(item["loc"]))}
    by_other_units = {
        (*loc[:-1], key_meant(str(loc[-1]), keys_of(section)))
        for item in items
        if item["type"] == "extra_forbidden" and (section := section_at(model, (loc := item["loc"])[:-1])) is not None
    }
    for number, item in enumerate(items):
        steps = item["loc"]
        own = steps if item["type"] == "extra_forbidden" else _as_written(model, steps)
        place = base + own
        written, is_hinted = document.at(place), number < MOST_HINTS
        if steps in above or (written is None and own in by_other_units):
            continue
        yield Problem(document.place(place), _what(item, model, written, base, is_hinted=is_hinted))


def _as_written(model: type[BaseModel], steps: Steps) -> Steps:
    """Pydantic says `[key]` of a mapping's key, and names a default it checked by the field, not the key."""
    if not steps or steps[-1] == "[key]":
        return steps[:-1]
    section = section_at(model, steps[:-1])
    field = section.model_fields.get(str(steps[-1])) if section is not None else None
    return (*steps[:-1], field.alias) if field is not None and field.alias else steps


def _what(item: Mapping[str, Any], model: type[BaseModel], written: Any, base: Steps, *, is_hinted: bool) -> str:
    steps, bounds = item["loc"], item.get("ctx", {})
    match item["type"]:
        case "extra_forbidden" if (
            foreign := elsewhere(str(steps[-1]), written, section_at(model, steps[:-1]))
        ) is not None:
            return foreign
        case "extra_forbidden":
            return _unknown(str(steps[-1]), section_at(model, steps[:-1]), model, base) if is_hinted else UNKNOWN
        case "missing":
            return "missing; this key is required"
        case "value_error":
            return str(item["msg"]).removeprefix("Value error, ")
        case "enum" | "literal_error":
            return _none_of(written, str(bounds["expected"]))
        case "greater_than_equal":
            return f"{shown(written)} is too small; write at least {_bound_text(bounds['ge'], written)}"
        case "greater_than":
            return f"{shown(written)} is too small; write more than {_bound_text(bounds['gt'], written)}"
        case "less_than_equal":
            return f"{shown(written)} is too great; write at most {_bound_text(bounds['le'], written)}"
        case "too_short":
            return "is empty; write at least one"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"found {shown(written)} where a mapping of keys to values belongs; write its keys or remove it"
        case "tuple_type" | "list_type":
            return f"found {shown(written)} where a list belongs; write it as [...] or remove the key"
        case _:
            return f"{str(item['msg'])[0].lower()}{str(item['msg'])[1:]} (found {shown(written)})"


def elsewhere(name: str, written: Any, section: type[BaseModel] | None) -> str | None:
    """What to write for a key of price lists and of Nova that HTAS says otherwise; None: it is none of these."""
    if (by_hour := by_another_unit(name, written, keys_of(section) if section is not None else ())) is not None:
        return by_hour
    specs = written if name in EXTRA_SPECS and isinstance(written, dict) else {name: written}
    if name not in EXTRA_SPECS and not is_of_nova(name):
        return None
    found, _ = devices({str(key): str(value) for key, value in specs.items()})
    each = ", ".join(f"{resource}: {count}" for resource, count in found.extended)
    example = f"extended: {{{each}}}" if each else EXAMPLE
    return f"is Nova's word; write the resource that its nodes report to Kubernetes, {example}"


def _bound_text(bound: float, written: Any) -> str:
    """A bound in the units of what it bounds: 600 is 10m where 11m was written."""
    if not bound or not isinstance(written, str) or not written[-1:].isalpha():
        return f"{bound:g}"
    if bound % 60 == 0:
        return f"{bound / 3600:g}h" if bound % 3600 == 0 else f"{bound / 60:g}m"
    return f"{bound:g}s"


def _none_of(written: Any, expected: str) -> str:
    allowed = expected.replace("'", "")
    if allowed.startswith("<"):  # a member of an enumeration, as Python prints it: <Colour.RED: red>
        allowed = allowed.partition(": ")[2].rstrip(">")
    hint = near(written, allowed.replace(" or ", ", ").split(", ")) if isinstance(written, str) else ""
    return f"found {shown(written)}; write {allowed}{hint}"


def _unknown(name: str, section: type[BaseModel] | None, whole: type[BaseModel], base: Steps) -> str:
    """Suggests a key of this section much like it first, then where this one belongs, then a key a little like it."""
    if name in REMOVED:
        return REMOVED[name]
    if name.isdigit():
        return DECIMAL_COMMA
    here = keys_of(section) if section is not None else set()
    hint = _meant(name, here) or near(name, here, 0.8)
    if not hint and (place := _place_of(name, whole)) is not None:
        where = key_text((*base, *place))
        return f"is no key here; it belongs {f'in {where}' if where else 'at the top of the file'}"
    hint = hint or near(name, here) or near(name, _all_keys(whole), 0.8)
    return f"unknown key{hint}" if hint else UNKNOWN


def _meant(name: str, here: Collection[str]) -> str:
    """A key that begins so, or that others call so: `price` is pricePerHour."""
    longer = sorted(key for key in here if len(name) > LETTER_OR_TWO and key.startswith(name))
    meant = longer[0] if longer else CALLED.get(name, "")
    return f"; did you mean {meant}?" if meant in here else ""


def _place_of(name: str, model: type[BaseModel]) -> Steps | None:
    """The keys that lead to the section that has this very key, the outermost; None: there is none."""
    sections: list[tuple[Steps, type[BaseModel]]] = [((), model)]
    for steps, section in sections:
        if name in keys_of(section):
            return steps
        inner = ((field.alias or key, _section_in(field.annotation)) for key, field in section.model_fields.items())
        sections += [((*steps, key), found) for key, found in inner if found is not None]
    return None


def keys_of(section: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in section.model_fields.items()}


def section_at(model: type[BaseModel], steps: Steps) -> type[BaseModel] | None:
    """The section that stands at `steps`; None where there is none."""
    section: type[BaseModel] | None = model
    for step in steps:
        if isinstance(step, int):
            continue  # a list's field names its items' section already
        fields = section.model_fields.items() if section is not None else ()
        section = next((_section_in(field.annotation) for name, field in fields if (field.alias or name) == step), None)
    return section


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part)) is not None), None)


def _all_keys(model: type[BaseModel]) -> set[str]:
    keys = keys_of(model)
    for field in model.model_fields.values():
        section = _section_in(field.annotation)
        if section is not None:
            keys |= _all_keys(section)
    return keys
