"""A YAML file as its author wrote it: numbers keep their text, every key knows its line, double keys are told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from htas.files import RefusedFileError, read_file
from htas.model.snapshot import Problem
from htas.yaml_bounds import Bounds, YamlBoundsError

Steps: TypeAlias = tuple[str | int, ...]
"""Where a value stands: the keys and positions that lead to it."""


MOST_BYTES = 2**20
"""As much as a ConfigMap holds: some 7,000 flavours."""


class Document:
    """A file that is a mapping of keys to values."""

    def __init__(self, file: str, root: yaml.MappingNode, raw: dict[str, Any]) -> None:
        self.file = file
        self.raw = raw
        self._root = root
        self._keys: dict[int, dict[str, tuple[int, yaml.Node]]] = {}

    def place(self, steps: Steps = ()) -> str:
        """`file:line key`; the line of the nearest key there is, where the key itself is missing."""
        key = key_text(steps)
        return f"{self.file}:{self._line(steps)}" + (f" {key}" if key else "")

    def at(self, steps: Steps) -> Any:
        """What is written there; None where nothing is."""
        value: Any = self.raw
        for step in steps:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def _line(self, steps: Steps) -> int:
        node: yaml.Node = self._root
        line = node.start_mark.line
        for step in steps:
            entry = self._entry(node, step)
            if entry is None:
                break
            line, node = entry
        return line + 1

    def _entry(self, node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
        """The line (from 0) and the node of one step."""
        if isinstance(node, yaml.MappingNode):
            return self._entries(node).get(step) if isinstance(step, str) else None
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return node.value[step].start_mark.line, node.value[step]
        return None

    def _entries(self, node: yaml.MappingNode) -> Mapping[str, tuple[int, yaml.Node]]:
        """A mapping's entries by key, walked through once: 16,000 wrong keys took 15 s to be placed one by one."""
        if id(node) not in self._keys:
            self._keys[id(node)] = {
                key.value: (key.start_mark.line, value)  # a merged-in key stands before the mapping's own, which wins
                for key, value in node.value
                if isinstance(key, yaml.ScalarNode)
            }
        return self._keys[id(node)]


def read_document(path: Path) -> tuple[Document | None, list[Problem]]:
    """Read a file; without a document where it is no mapping at all, else with the keys that are written twice."""
    file = str(path)
    try:
        loader = _Loader(read_file(path, MOST_BYTES).decode("utf-8-sig"))
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            return None, [Problem(file, "is empty or no mapping; write keys and values, such as `cluster: demo`")]
        doubles = list(_doubles(root, file))
        return Document(file, root, loader.construct_document(root)), doubles
    except RefusedFileError as error:
        return None, [Problem(file, error.why)]
    except OSError as error:
        return None, [Problem(file, f"cannot be read: {error.strerror}; check the path and its permissions")]
    except UnicodeDecodeError:
        return None, [Problem(file, "cannot be read: it is not UTF-8 text; save it as UTF-8")]
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        return None, [Problem(f"{file}:{mark.line + 1 if mark else 1}", f"malformed YAML: {said}")]
    except yaml.YAMLError as error:
        return None, [Problem(file, f"malformed YAML: {' '.join(str(error).split())}")]
    except YamlBoundsError as error:
        return None, [Problem(f"{file}:{error.line}", error.why)]


def key_text(steps: Steps) -> str:
    """`nodeGroups[1].labels["example.com/a"]`"""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if step.replace("_", "").replace("-", "").isalnum() else f'["{step}"]'
    return text.removeprefix(".")


def _doubles(root: yaml.Node, file: str) -> Iterator[Problem]:
    """Keys written twice, each node once however often an alias repeats it."""
    seen: set[int] = set()
    waiting: list[tuple[Steps, yaml.Node]] = [((), root)]
    while waiting:
        steps, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [((*steps, i), item) for i, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue  # told when it is constructed
                line = key.start_mark.line + 1
                if key.value in first:
                    where = f"{file}:{line} {key_text((*steps, key.value))}"
                    yield Problem(where, f"is written twice, first in line {first[key.value]}; remove one")
                first.setdefault(key.value, line)
                waiting.append(((*steps, key.value), value))


class _Loader(yaml.SafeLoader):
    """YAML of mappings, lists, text, true, false and null. All else stays text, keys always: no `NO` becomes false."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._bounds = Bounds()

    def get_event(self) -> Any:
        event = super().get_event()  # type: ignore[no-untyped-call]
        self._bounds.take(event)
        return event

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(problem="a key must be text", problem_mark=key.start_mark)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}


_YAML = "tag:yaml.org,2002:"
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_YAML) in ("map", "seq", "str", "bool", "null")
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag.removeprefix(_YAML) in ("null", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_YAML}bool", re.compile("(?:[Tt]rue|TRUE|[Ff]alse|FALSE)$"), list("tTfF"))
