"""Settings that reach the policy by their names: none is left behind, and no name is misspelt."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import pytest

from htas.config.cleaning import CleaningSetting, ConsolidationSetting
from htas.config.edge import EdgeSetting
from htas.config.fallback import FallbackSetting
from htas.config.groups import GroupSetting
from htas.config.namespaces import NamespaceLimitSetting
from htas.config.timing import CyclesSetting, RunLengthsSetting, TimeoutsSetting
from htas.config.values import Section
from htas.model.edge import Tier
from htas.model.policy import Workload


def as_model(section: Section) -> msgspec.Struct:
    match section:
        case CleaningSetting():
            return section.model(Workload.ANY, is_simulated=False)
        case ConsolidationSetting():
            return section.model(may_shrink=False)
        case GroupSetting():
            return section.model(is_simulated=False)
        case _:
            return section.model()  # type: ignore[attr-defined]


WHOLES: tuple[Section, ...] = (
    CleaningSetting(),
    ConsolidationSetting(),
    EdgeSetting(),
    FallbackSetting(),
    GroupSetting(name="a", tier=Tier.EDGE),
    NamespaceLimitSetting(names=("a",), max_pins=1),
    CyclesSetting(),
    RunLengthsSetting(),
    TimeoutsSetting(),
)


def another(value: Any) -> Any:
    """A value of the same kind, or for what is not stated one of some kind."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case str():
            return f"{value}b"
        case tuple():
            return ("another",)
        case dict():
            return {"another": "label"}
        case Section():
            name = next(iter(type(value).model_fields))
            return value.model_copy(update={name: another(getattr(value, name))})
        case _:
            return (value or 0) + 2  # what is left to derivation may come to 1 (batchIdle)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        (section, name)
        for section in WHOLES
        for name in type(section).model_fields
        if name not in ("taints", "startup_taints", "scheduling")
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_every_setting_changes_the_model(section: Section, name: str) -> None:
    changed = section.model_copy(update={name: another(getattr(section, name))})
    assert as_model(changed) != as_model(section)
