"""Selectors and requirements: how Kubernetes objects name one another by labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

_INTEGER = re.compile(r"[+-]?\d+")


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


class LabelSelector(msgspec.Struct, frozen=True, omit_defaults=True):
    """All requirements must hold; without any it selects everything (matchLabels become In requirements)."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.holds_for(labels.get(requirement.key)) for requirement in self.requirements)
