"""Selectors and requirements: how Kubernetes objects name one another by labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NAME = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Label keys, as in `example.com/name`; values are as names are, or empty (apimachinery, util/validation)."""


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One condition on one label. NotIn and DoesNotExist also hold where the label is missing."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether Kubernetes can read it (apimachinery, labels.NewRequirement).

        API servers admit some that it cannot: `NotIn` with a value that no label may have, such as "not a label", or
        `Gt` with "-5", which begins as no label's value may.
        """
        prefix, slash, name = self.key.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
            return False
        if not all(value == "" or _NAME.fullmatch(value) for value in self.values):
            return False
        match self.operator:
            case Operator.IN | Operator.NOT_IN:
                return bool(self.values)
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                return not self.values
        return len(self.values) == 1 and _INTEGER.fullmatch(self.values[0]) is not None and _is_int64(self.values[0])

    def holds_for(self, value: str | None) -> bool:
        """Whether it holds for a label's value (None: the label is missing). Gt and Lt compare integers."""
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        bound = self.values[0] if len(self.values) == 1 else ""
        if value is None or not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bound):
            return False
        return int(value) > int(bound) if self.operator is Operator.GT else int(value) < int(bound)


def _is_int64(text: str) -> bool:
    return -(2**63) <= int(text) < 2**63


class LabelSelector(msgspec.Struct, frozen=True, omit_defaults=True):
    """All requirements must hold; without any it selects everything (matchLabels become In requirements)."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.holds_for(labels.get(requirement.key)) for requirement in self.requirements)
