"""Loads a configuration file and its price file; every mistake in both is told at once, with its place."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from htas.config.catalogue import CatalogueSetting
from htas.config.settings import Configuration, SandboxSetting, SqliteSetting
from htas.model.flavours import Catalogue
from htas.model.policy import Limits, NodeGroup, Policy
from htas.model.snapshot import Problem
from htas.ports import HTASError

_M = TypeVar("_M", bound=BaseModel)
LATER = {"kwok": "provider", "openstack": "provider", "cassandra": "store"}
"""Keys of the design that this release does not have yet."""


class ConfigurationError(HTASError):
    """Everything that is wrong with a configuration."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(f"{problem.where}: {problem.what}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that is fit to run."""

    policy: Policy
    sandbox: SandboxSetting
    sqlite: SqliteSetting
    directory: Path


def load_configuration(path: Path) -> Loaded:
    """Read a configuration and the price file it names; raises ConfigurationError with all problems of both."""
    problems: list[Problem] = []
    raw = _read(path, problems)
    settings = _parsed(Configuration, raw, str(path), problems)
    catalogue = _catalogue(raw, path, problems)
    if settings is not None and catalogue is not None:
        problems += _mismatches(settings, catalogue, str(path))
    if problems or settings is None or catalogue is None:
        raise ConfigurationError(tuple(problems))
    return Loaded(_policy(settings, catalogue), settings.provider.sandbox, settings.store.sqlite, path.parent)


def load_catalogue(path: Path) -> Catalogue:
    """Read a price file; raises ConfigurationError."""
    problems: list[Problem] = []
    catalogue = _catalogue_of(_read(path, problems), str(path), "", problems)
    if problems or catalogue is None:
        raise ConfigurationError(tuple(problems))
    return catalogue


def _catalogue(raw: Any, path: Path, problems: list[Problem]) -> Catalogue | None:
    """The price file a configuration names, or has in place."""
    named = raw.get("flavours") if isinstance(raw, dict) else None
    if isinstance(named, dict):
        return _catalogue_of(named, str(path), "flavours.", problems)
    if not isinstance(named, str):
        return None  # told already: the key is missing or of the wrong type
    try:
        return load_catalogue(path.parent / named)
    except ConfigurationError as error:
        problems.extend(error.problems)
        return None


def _catalogue_of(raw: Any, file: str, prefix: str, problems: list[Problem]) -> Catalogue | None:
    settings = _parsed(CatalogueSetting, raw, file, problems, prefix)
    listed = raw.get("flavours") if isinstance(raw, dict) else None
    names = [item.get("name") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    doubles = [name for name, count in Counter(names).items() if count > 1 and name is not None]
    problems.extend(
        Problem(f"{file}: {prefix}flavours", f"{name} is defined more than once; rename or remove one")
        for name in doubles
    )
    return settings.model() if settings is not None and not doubles else None


def _policy(settings: Configuration, catalogue: Catalogue) -> Policy:
    return Policy(
        cluster=settings.cluster,
        catalogue=catalogue,
        groups=tuple(group.model() for group in settings.node_groups),
        scheduler_name=settings.scheduler_name,
        limits=settings.limits.limits(),
        cycles=settings.cycles.model(),
        timeouts=settings.timeouts.model(),
        run_lengths=settings.run_lengths.model(),
        max_wait_for_capacity_s=settings.max_wait_for_capacity,
    )


def _mismatches(settings: Configuration, catalogue: Catalogue, file: str) -> Iterator[Problem]:
    """What is wrong between groups, limits and flavours."""
    groups = [group.model() for group in settings.node_groups]
    for name, count in Counter(group.name for group in groups).items():
        if count > 1:
            yield Problem(f"{file}: nodeGroups", f"{count} groups are named {name}; give each its own name")
    policy = Policy(settings.cluster, catalogue, tuple(groups))
    for i, group in enumerate(groups):
        where = f"{file}: nodeGroups[{i}].flavours"
        for pattern in group.flavours:
            if not policy.flavours_of(NodeGroup(group.name, flavours=(pattern,))):
                near = difflib.get_close_matches(pattern, [f.name for f in catalogue.flavours], 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield Problem(where, f"{pattern!r} matches no flavour of the price file{hint}")
        flavours = policy.flavours_of(group)
        for limits, key in ((group.limits, f"nodeGroups[{i}]"), (settings.limits.limits(), "limits")):
            if flavours and not any(_within(flavour, limits) for flavour in flavours):
                what = f"no flavour of group {group.name} fits within these limits; raise them or offer a smaller one"
                yield Problem(f"{file}: {key}", what)


def _within(flavour: Any, limits: Limits) -> bool:
    return all(
        limit is None or amount <= limit
        for amount, limit in (
            (1, limits.max_nodes),
            (flavour.capacity.cpu_m, limits.max_cpu_m),
            (flavour.capacity.memory_bytes, limits.max_memory_bytes),
            (flavour.nanos_per_hour, limits.max_nanos_per_hour),
        )
    )


class _Exact(yaml.SafeLoader):
    """YAML whose numbers keep their text, so that a price is exactly what was written; double keys are refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is written twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Exact.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("bool", "null", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read(path: Path, problems: list[Problem]) -> Any:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_Exact)  # the loader is a SafeLoader
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        problems.append(Problem(str(path), f"cannot be read: {reason}"))
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problems.append(Problem(f"{path}:{mark.line + 1 if mark else 1}", f"malformed YAML: {error.problem}"))
        return None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problems.append(Problem(str(path), f"malformed YAML: {error}"))
        return None
    if not isinstance(raw, dict):
        problems.append(Problem(str(path), "is empty or no mapping of keys to values"))
        return None
    return raw


def _parsed(model: type[_M], raw: Any, file: str, problems: list[Problem], prefix: str = "") -> _M | None:
    if raw is None:
        return None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems.extend(_told(model, f"{file}: {prefix}", error))
        return None


def _told(model: type[BaseModel], place: str, error: ValidationError) -> Iterator[Problem]:
    """The problems in pydantic's list that a person needs: none that only follows from another."""
    items = error.errors(include_url=False)
    later = {item["loc"][:-1] for item in items if item["loc"] and item["loc"][-1] in LATER}
    for item in items:
        where = item["loc"]
        follows = any(other["loc"] != where and other["loc"][: len(where)] == where for other in items)
        if follows or (item["type"] == "missing" and where[:-1] in later):
            continue
        yield Problem((place + _key(where)).rstrip(": "), _what(item, where, model))


def _key(steps: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _what(item: Mapping[str, Any], steps: tuple[int | str, ...], model: type[BaseModel]) -> str:
    match item["type"]:
        case "extra_forbidden":
            name = str(steps[-1])
            if name in LATER:
                return f"{LATER[name]} {name} is not available in this release"
            near = difflib.get_close_matches(name, sorted(_all_keys(model)), 1)
            return "unknown key" + (f"; did you mean {near[0]}?" if near else "; remove it")
        case "missing":
            return "missing; this key is required"
        case "value_error":
            return str(item["msg"]).removeprefix("Value error, ")
        case _:
            return f"{str(item['msg'])[0].lower()}{str(item['msg'])[1:]} (found {item['input']!r})"


def _all_keys(model: type[BaseModel]) -> set[str]:
    """Every key of the settings tree, for suggestions."""
    keys: set[str] = set()
    schema = model.model_json_schema()
    for part in [schema, *schema.get("$defs", {}).values()]:
        keys.update(part.get("properties", {}))
    return keys
