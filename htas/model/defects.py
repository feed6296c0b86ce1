"""Defects of HTAS that cost a cycle one of its steps."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Step(StrEnum):
    """A step of a cycle that binding can do without. Metrics, logs and alerts use these words."""

    RECORDS = "records"
    """What is on record, read once at the start."""
    REPAIRS = "repairs"
    """Claims, machines and drains taken further."""
    JOURNAL = "journal"
    IDENTITY = "identity"
    """Whose machine each node is."""
    PINS = "pins"
    ALLOCATABLE = "allocatable"
    """What nodes offer compared with the price file."""
    RUN_LENGTHS = "run-lengths"
    EXPECTATIONS = "expectations"
    """What was issued and is not observed yet."""
    FACTS = "facts"
    """All else that a plan goes by."""
    MOVES = "requested-moves"
    SEARCHES = "searches"
    APPROVALS = "approvals"
    BINDS = "binds"
    LAUNCHES = "launches"
    PROPOSALS = "proposals"
    REARRANGEMENT = "rearrangement"
    ANSWERS = "answers"
    """What came of calls to the cluster and the cloud."""
    EVENTS = "events"
    HISTORY = "history"
    REPORTS = "reports"
    """Status, metrics and pages."""

    @property
    def is_fact(self) -> bool:
        """Whether a plan rests on it: without it, the plan only binds."""
        return self in _FACTS


_FACTS = frozenset(
    {
        Step.REPAIRS,
        Step.JOURNAL,
        Step.IDENTITY,
        Step.PINS,
        Step.ALLOCATABLE,
        Step.RUN_LENGTHS,
        Step.EXPECTATIONS,
        Step.FACTS,
        Step.SEARCHES,
    }
)


class Defect(msgspec.Struct, frozen=True):
    """A step that raised an exception. The cycle did without it."""

    step: Step
    error: str

    @property
    def message(self) -> str:
        """In words, with what the cycle does without it."""
        is_needed = self.step.is_fact or self.step is Step.APPROVALS
        left_out = "pods are bound, nothing is launched or drained" if is_needed else "the rest goes on"
        return f"a defect of htas: {self.step} failed, {left_out}: {self.error}"
