"""How much HTAS does by itself, and what it would manage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from htas.config.namespaces import checked_patterns
from htas.config.values import LabelValue, NodeKey, Seconds, Section, Text
from htas.model.modes import Approval, Charge, Otherwise


class RecommendSetting(Section):
    """With `mode: recommend`: what HTAS would manage."""

    schedulers: tuple[Text, ...] = Field(
        default=("default-scheduler",),
        description="schedulerName of the pods it would schedule, besides its own. Others stay where they are.",
    )
    namespaces: tuple[Text, ...] = Field(
        default=("*",), min_length=1, description="Namespaces of those pods, with * and ? as in a shell."
    )
    without: tuple[Text, ...] = Field(default=(), description="Namespaces of them that it would not touch, likewise.")
    nodes: Mapping[NodeKey, LabelValue] = Field(
        default={},
        description="Labels of the nodes it would drain and delete: all of them. {}: every node whose instance type has"
        " a price, except the control plane's.",
    )
    startup: Seconds | None = Field(
        default=None, description="How long a launch would take. null: the longest of the groups' startup."
    )

    @field_validator("namespaces", "without")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return checked_patterns(names)

    def model(self) -> Charge:
        return Charge(self.schedulers, self.namespaces, self.without, dict(self.nodes), self.startup)


class ApprovalSetting(Section):
    """With `mode: approve`: how long a proposal waits for approval, and what happens then."""

    within: Seconds = Field(
        default=1800.0, gt=0, description="How long a proposal waits for approval or rejection; 30m."
    )
    otherwise: Literal["reject", "carry-out"] = Field(
        default="reject", description="What happens without an answer: reject, or carry-out."
    )
    again: Seconds = Field(
        default=14400.0,
        description="How long HTAS does not repeat a rejected proposal, unless it has changed; 4h.",
    )

    def model(self) -> Approval:
        return Approval(self.within, Otherwise(self.otherwise), self.again)
